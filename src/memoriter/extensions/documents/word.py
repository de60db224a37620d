"""Text of Word files, with their headings, lists and tables."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator

import docx
from docx.table import Table
from docx.text.paragraph import Paragraph

from memoriter.errors import SourceError
from memoriter.extensions.documents import FRONT_MATTER, MAX_CHARS

#: Size of the unpacked parts of a file. A small file can be packed so that it fills the memory.
MAX_UNPACKED = 256 * 1024 * 1024
_HEADING = re.compile(r"heading ([1-6])", re.IGNORECASE)


def read(data: bytes) -> tuple[str, str | None]:
    """Return the text of a Word file as Markdown, and a remark if it is cut."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
        text = _text(data) if unpacked <= MAX_UNPACKED else None
    except Exception as error:  # a damaged file may fail in any way
        raise SourceError("The Word file is damaged, has a password, or is not a .docx file.") from error
    if text is None:
        raise SourceError("The Word file is too large when it is unpacked, so its text is not read.")
    if not text:
        raise SourceError("The Word file has no text.")
    return f"{FRONT_MATTER}{text}\n", "only its beginning is indexed" if len(text) > MAX_CHARS else None


def _text(data: bytes) -> str:
    """Return the blocks of a file, up to the limit."""
    lines, size = list[str](), 0
    for line in _lines(docx.Document(io.BytesIO(data))):
        lines.append(line)
        size += len(line)
        if size > MAX_CHARS:
            break
    return "\n\n".join(lines)


def _lines(document: docx.document.Document) -> Iterator[str]:
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            for row in block.rows:
                yield "| " + " | ".join(" ".join(cell.text.split()) for cell in row.cells) + " |"
        elif isinstance(block, Paragraph) and block.text.strip():
            style = (block.style.name if block.style else "") or ""
            heading = _HEADING.match(style)
            mark = "#" * int(heading[1]) + " " if heading else "- " if style.startswith("List") else ""
            yield mark + block.text.strip()
