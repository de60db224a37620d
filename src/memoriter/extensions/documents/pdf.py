"""Text of PDF files, page by page."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Iterator, Sequence

from pypdf import PdfReader

from memoriter.errors import SourceError
from memoriter.extensions.documents import FRONT_MATTER, MAX_CHARS

MAX_PAGES = 2_000
#: A page that a program made wrongly can take very long. No further page is read after this time.
MAX_SECONDS = 60.0
#: Pages that a remark names.
MAX_NAMED = 5

# Damaged files are reported by memoriter in one sentence.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def read(data: bytes) -> tuple[str, str | None]:
    """Return the text of a PDF file with a heading for each page, and a remark about pages without text."""
    try:
        return _read(PdfReader(io.BytesIO(data)))
    except SourceError:
        raise
    except Exception as error:  # a damaged file may fail in any way
        raise SourceError("The PDF file is damaged, or made in a way that cannot be read.") from error


def _read(file: PdfReader) -> tuple[str, str | None]:
    if file.is_encrypted and not file.decrypt(""):
        raise SourceError("The PDF file needs a password. Save a copy without one to index it.")
    total = len(file.pages)
    pages, size, ends = list[str](), 0, time.monotonic() + MAX_SECONDS
    for page in _first(file):
        pages.append(page)
        size += len(page)
        if size > MAX_CHARS or time.monotonic() > ends:
            break
    empty = [number for number, text in enumerate(pages, 1) if not text]
    if len(empty) == len(pages):
        raise SourceError(f"None of the {total} pages has text. They are probably scanned images.")
    text = "\n\n".join(f"# Page {number}\n\n{text}" for number, text in enumerate(pages, 1) if text)
    remarks = [
        f"{_name_pages(empty)} without text, probably scanned" if empty else "",
        f"only the first {len(pages)} of {total} pages are indexed" if len(pages) < total else "",
    ]
    return f"{FRONT_MATTER}{text}\n", "; ".join(filter(None, remarks)) or None


def _first(file: PdfReader) -> Iterator[str]:
    for number in range(min(len(file.pages), MAX_PAGES)):
        # A lone surrogate comes from a font without a table of characters.
        text = file.pages[number].extract_text().encode("utf-8", "replace").decode()
        yield "\n".join(line.strip() for line in text.splitlines()).strip()


def _name_pages(pages: Sequence[int]) -> str:
    """Return the pages in words.

    >>> _name_pages([3]), _name_pages([1, 2, 3, 4, 5, 6])
    ('page 3', 'pages 1, 2, 3, 4, 5 and 1 more')
    """
    if len(pages) == 1:
        return f"page {pages[0]}"
    more = f" and {len(pages) - MAX_NAMED} more" if len(pages) > MAX_NAMED else ""
    return f"pages {', '.join(map(str, pages[:MAX_NAMED]))}{more}"
