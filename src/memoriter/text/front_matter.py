"""Read front matter: a block of "name: value" lines between two "---" lines at the top of a note.

It is read line by line without a YAML parser, so that a block with errors is still useful.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

#: Lines within which the block must end.
_MAX_LINES = 200
#: Characters of a line that is read as a field.
_MAX_LINE = 1000
#: Characters of a title, and of tags and aliases, that are added to every chunk.
_MAX_SUBJECT = 200

_FIELD = re.compile(r"([A-Za-z_][\w-]*)\s*:\s*(.*?)\s*")
_NAMED = re.compile(r"([^\s:#\-\[\]{}\"'][^:]{0,60}?)\s*:(?:\s+(.*))?")
_UNDER_A_NAME = (" ", "\t", "-", "]", "}")
_BLOCK_MARK = re.compile(r"[|>][+-]?\d?")

#: Names of fields about the subject of the note.
_SUBJECT = frozenset({"tags", "tag", "aliases", "alias", "keywords", "标签", "標籤", "别名", "別名"})
#: Names of fields that chunks have otherwise, or that are only for programs.
_OMITTED = frozenset({"title", "date", "created", "updated", "modified", "trust", "approval"})
_OMITTED |= {"session", "started", "ended", "messages", "made_by"}


class FrontMatter(NamedTuple):
    """The text that front matter adds to the chunks of a note."""

    #: Tags and aliases, for every chunk.
    subject: str = ""
    #: Everything else, for the first chunk.
    rest: str = ""
    #: For every chunk.
    title: str = ""


def front_matter_lines(lines: Sequence[str]) -> int:
    """Return the number of lines of the front matter with its "---" lines, or 0."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    ends = (n for n, line in enumerate(lines[1:_MAX_LINES], 2) if line.rstrip() in ("---", "..."))
    return next(ends, 0)


def front_matter_fields(lines: Sequence[str]) -> dict[str, str]:
    """Return the values on the same line as their name, by lower-case name."""
    found = (_FIELD.fullmatch(line) for line in lines if len(line) < _MAX_LINE)
    return {match[1].lower(): match[2].strip("\"'") for match in found if match}


def read_front_matter(lines: Sequence[str]) -> FrontMatter | None:
    """Read the lines between the "---" lines. A long title or list of tags becomes part of ``rest``.

    Return None if the lines are not names and values.
    """
    values = _values(lines)
    if values is None:
        return None
    title = values.get("title", "")
    subject = ", ".join(value for name, value in values.items() if name in _SUBJECT)
    others = [f"{name}: {values[name]}" for name in values if name not in _SUBJECT | _OMITTED]
    if len(subject) > _MAX_SUBJECT:
        subject, others = "", [subject, *others]
    if len(title) > _MAX_SUBJECT:
        title, others = "", [title, *others]
    return FrontMatter(subject, "; ".join(others), title)


def _values(lines: Sequence[str]) -> Mapping[str, str] | None:
    """Return the value of each name. List items and continued lines are joined. Return None for any other text."""
    values: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if match := _NAMED.fullmatch(line.rstrip()):
            name = match[1].lower()
            values.setdefault(name, []).extend(_parts(match[2] or ""))
        elif name and line[:1] in _UNDER_A_NAME:
            values[name] += _parts(line)
        elif line.strip() and not line.startswith("#"):
            return None
    if not values and any(map(str.strip, lines)):  # lines with only "#" are headings, not comments
        return None
    return {name: ", ".join(parts) for name, parts in values.items() if parts}


def _parts(value: str) -> Iterator[str]:
    """Yield the items of one value, such as ``["a", b]``, ``- a`` or ``"a"``. A block mark such as ``>-`` has none."""
    value = value.strip().removeprefix("- ").strip()
    if _BLOCK_MARK.fullmatch(value) or value in ("null", "~", "-"):
        return
    if value.startswith("[") and value.endswith("]"):
        yield from (item for part in value[1:-1].split(",") if (item := part.strip().strip("\"'")))
    elif value := value.strip("\"'"):
        yield value
