"""Find the front matter, headings, code fences and tags of a Markdown text.

Lines are identified by their index, from 0.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memoriter.errors import BadArgument

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


_TAGS = re.compile(
    r"(?:[*_]{1,2})?(?:tags?|keywords?|标签|標籤|关键词|關鍵詞)(?:[*_]{1,2})?\s*[:：](?:[*_]{1,2})?\s*(?P<tags>\S.*)"
    r"|(?P<hashtags>#[^\s#]+(?:\s+#[^\s#]+)*)",
    re.IGNORECASE,
)
_TAG_SEPARATORS = re.compile(r"[,，、;；]|\s(?=#)")
#: A line of tags is short, and so is each tag. Anything else is a sentence about tags.
_MAX_TAG_LINE, _MAX_TAG_WORDS = 200, 3
#: Characters of tags that are added to every chunk of a section.
_MAX_TAGS = 400


def tag_list(tags: Sequence[str]) -> tuple[str, ...]:
    """Return tags as a tuple. A single text is an error, because it would become one tag for each letter."""
    if isinstance(tags, str):
        raise BadArgument(f"`tags` must be a list of texts, such as [{tags!r}].", "tags")
    return tuple(tags)


@dataclass(frozen=True, slots=True)
class TagLines:
    """The lines of tags in a note, and to which sections they belong."""

    lines: frozenset[int]
    #: The first line of each section with tags, in order, and all tags that apply to it.
    starts: Sequence[int]
    texts: Sequence[str]

    def above(self, number: int) -> str:
        """Return the tags of the section of this line."""
        place = bisect_right(self.starts, number) - 1
        return self.texts[place] if place >= 0 else ""


def find_tags(lines: Sequence[str], structure: Structure) -> TagLines:
    """Find lines that consist of tags. They apply to their section and to the sections below its heading.

    If a note consists only of such lines, they are its text.
    """
    fenced = {line for start, end in structure.fences.items() for line in range(start, end)}
    body = range(structure.front_matter, len(lines))
    own = {n: text for n in body if n not in fenced if (text := _tags_in(lines, n, structure))}
    if all(number in own or not lines[number].strip() for number in body):
        return TagLines(frozenset(), (), ())
    starts, texts, open_ = [0], [""], [(0, "")]  # the sections that are open: level and tags
    sections = [(0, 0), *((n, heading.level) for n, heading in sorted(structure.headings.items()))]
    for (start, level), (end, _) in zip(sections, [*sections[1:], (len(lines), 0)], strict=True):
        while level and open_[-1][0] >= level:
            open_.pop()
        tags = (own[number] for number in range(start, end) if number in own)
        mine = ", ".join(filter(None, [open_[-1][1], *tags]))[:_MAX_TAGS]
        open_.append((level, mine))
        starts.append(start)
        texts.append(mine)
    return TagLines(frozenset(own), starts, texts)


def _tags_in(lines: Sequence[str], number: int, structure: Structure) -> str:
    """Return the tags of a line that consists of tags and stands alone or below a heading, or an empty text."""
    line = lines[number].strip()
    found = (
        _TAGS.fullmatch(line) if 0 < len(line) <= _MAX_TAG_LINE and number not in structure.headings else None
    )
    if not found or not _stands_alone(lines, number, structure):
        return ""
    text = found["tags"] or found["hashtags"]
    tags = [tag.strip(" #*_`[]") for tag in _TAG_SEPARATORS.split(text)]
    if any(
        len(tag.split()) > _MAX_TAG_WORDS or tag.endswith((".", "。", "!", "！", "?", "？")) for tag in tags
    ):
        return ""
    return ", ".join(filter(None, tags))


def _stands_alone(lines: Sequence[str], number: int, structure: Structure) -> bool:
    before = number == structure.front_matter or not lines[number - 1].strip()
    after = number + 1 == len(lines) or not lines[number + 1].strip() or number + 1 in structure.headings
    return (before or _ends_heading(number - 1, structure)) and after


def _ends_heading(number: int, structure: Structure) -> bool:
    heading, underlined = structure.headings.get(number), structure.headings.get(number - 1)
    return (heading is not None and heading.lines == 1) or (underlined is not None and underlined.lines == 2)
