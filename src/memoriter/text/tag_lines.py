"""Tags, and the lines of a Markdown text that consist of them: `Tags: backup, ops`, `标签：备份、运维`, `#backup #ops`.

Such a line says what the text around it is about. It is not an answer to a query.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from memoriter.errors import BadArgument
from memoriter.text.markdown import Structure

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
