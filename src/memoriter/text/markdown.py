"""Find the front matter, headings and code fences of a Markdown text.

Lines are identified by their index, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memoriter.text.front_matter import front_matter_fields, front_matter_lines

#: Characters of a heading that are used as its title.
_MAX_TITLE = 200

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_NOT_A_TITLE = re.compile(r"\s*(?:[-*+>|]|\d+[.)]\s)|\s{4}|\t")
_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)")


class Heading(NamedTuple):
    """A heading. It has two lines if the title is underlined."""

    level: int
    title: str
    lines: int = 1


@dataclass(slots=True)
class Structure:
    """The parts of a Markdown text."""

    #: Number of lines of the front matter.
    front_matter: int = 0
    #: Fields of the front matter, by lower-case name.
    fields: dict[str, str] = field(default_factory=dict)
    #: Headings by their first line.
    headings: dict[int, Heading] = field(default_factory=dict)
    #: First line of each fence, and the line after it.
    fences: dict[int, int] = field(default_factory=dict)


def structure_of(lines: Sequence[str]) -> Structure:
    """Find the parts in one pass. An unclosed fence reaches to the end, as in rendered Markdown."""
    length = front_matter_lines(lines)
    found = Structure(length, front_matter_fields(lines[1 : length - 1]) if length else {})
    fence, opened = "", 0
    previous = ""
    for number in range(found.front_matter, len(lines)):
        line = lines[number]
        mark = line.lstrip(" ")[:1]
        if fence:
            if mark == fence[0] and _closes(line, fence):
                found.fences[opened] = number + 1
                fence = ""
        elif mark and mark in "`~" and (match := _FENCE.fullmatch(line)):
            fence, opened = match[1] or match[2], number
        elif mark and mark in "#=-":
            _read_heading(lines, number, previous, found)
        previous = "" if fence or number in found.headings else line
    if fence:
        found.fences[opened] = len(lines)
    return found


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and not bare.strip(fence[0]) and not line.startswith("    ")


def _read_heading(lines: Sequence[str], number: int, previous: str, found: Structure) -> None:
    line = lines[number]
    if len(line) > 10 * _MAX_TITLE:
        return
    if match := _ATX.fullmatch(line):
        found.headings[number] = Heading(len(match[1]), (match[2] or "").strip()[:_MAX_TITLE])
    elif (match := _UNDERLINE.fullmatch(line)) and _may_be_title(previous):
        level = 1 if match[1][0] == "=" else 2
        found.headings[number - 1] = Heading(level, previous.strip(), lines=2)


def _may_be_title(line: str) -> bool:
    return 0 < len(line.strip()) <= _MAX_TITLE and not _NOT_A_TITLE.match(line)
