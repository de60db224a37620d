"""What a note says of itself in front matter: a block between two "---" at the very top, with "name: value" lines.

Read line by line and tolerantly, without a YAML parser: a block that is half right still says something. Which day and
whose words a note has is decided by ``chunking``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

_MAX_LINES = 200  #: within which it must close
_MAX_LINE = 1000  #: characters of a line that is read for a field
_MAX_SUBJECT = 200  #: characters of a title, and of tags and aliases, that every chunk of a note may carry

_FIELD = re.compile(r"([A-Za-z_][\w-]*)\s*:\s*(.*?)\s*")
_NAMED = re.compile(r"([^\s:#\-\[\]{}\"'][^:]{0,60}?)\s*:(?:\s+(.*))?")
_UNDER_A_NAME = (" ", "\t", "-", "]", "}")
_BLOCK_MARK = re.compile(r"[|>][+-]?\d?")

#: What the whole note is about, beside its title.
_SUBJECT = frozenset({"tags", "tag", "aliases", "alias", "keywords", "标签", "標籤", "别名", "別名"})
#: What a chunk knows otherwise, and what programs note for themselves.
_UNSAID = frozenset({"title", "date", "created", "updated", "modified", "trust"})
_UNSAID |= {"session", "started", "ended", "messages", "made_by"}


class FrontMatter(NamedTuple):
    """What the front matter adds to the text of a note."""

    subject: str = ""  #: tags and aliases, for every chunk
    rest: str = ""  #: everything else, for the first chunk
    title: str = ""  #: for every chunk as well


def front_matter_lines(lines: Sequence[str]) -> int:
    """How many lines it has, with its two rules; 0 without one."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    ends = (n for n, line in enumerate(lines[1:_MAX_LINES], 2) if line.rstrip() in ("---", "..."))
    return next(ends, 0)


def front_matter_fields(lines: Sequence[str]) -> dict[str, str]:
    """The values that stand on the line of their name, by lower-case name."""
    found = (_FIELD.fullmatch(line) for line in lines if len(line) < _MAX_LINE)
    return {match[1].lower(): match[2].strip("\"'") for match in found if match}


def read_front_matter(lines: Sequence[str]) -> FrontMatter | None:
    """What the lines between the rules say, in words; a long title or list of tags counts as the rest.

    None when they are no names and values: then somebody has put rules around a text.
    """
    values = _values(lines)
    if values is None:
        return None
    title = values.get("title", "")
    subject = ", ".join(value for name, value in values.items() if name in _SUBJECT)
    others = [f"{name}: {values[name]}" for name in values if name not in _SUBJECT | _UNSAID]
    if len(subject) > _MAX_SUBJECT:
        subject, others = "", [subject, *others]
    if len(title) > _MAX_SUBJECT:
        title, others = "", [title, *others]
    return FrontMatter(subject, "; ".join(others), title)


def _values(lines: Sequence[str]) -> Mapping[str, str] | None:
    """Each name's value; the items of a list, and lines under a name, are joined. None for any other text."""
    said: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if match := _NAMED.fullmatch(line.rstrip()):
            name = match[1].lower()
            said.setdefault(name, []).extend(_parts(match[2] or ""))
        elif name and line[:1] in _UNDER_A_NAME:
            said[name] += _parts(line)
        elif line.strip() and not line.startswith("#"):
            return None
    if not said and any(map(str.strip, lines)):  # remarks alone are headings
        return None
    return {name: ", ".join(parts) for name, parts in said.items() if parts}


def _parts(value: str) -> Iterator[str]:
    """The items of one value without their marks: ``["a", b]``, ``- a``, ``"a"``, and nothing for ``>-``."""
    value = value.strip().removeprefix("- ").strip()
    if _BLOCK_MARK.fullmatch(value) or value in ("null", "~", "-"):
        return
    if value.startswith("[") and value.endswith("]"):
        yield from (item for part in value[1:-1].split(",") if (item := part.strip().strip("\"'")))
    elif value := value.strip("\"'"):
        yield value
