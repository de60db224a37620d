"""Split notes and transcripts into chunks for the index.

Chunks consist of whole lines and have a size limit. The best place to split is before a heading, then between
paragraphs, then between lines. A code fence that fits is not split. A heading stays with its text, and a chunk has the
headings above it and the date of its note. Front matter and a line of tags are not chunks; their content is added above
the chunks, like a heading. Only a line that is longer than the limit is split into pieces.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from memoriter.records import TRUST_LEVELS, Chunk, Document, Trust, least_trusted
from memoriter.text import TOKENIZER_VERSION
from memoriter.text.markdown import Structure, find_tags, read_front_matter, structure_of
from memoriter.text.tokens import last_boundary, split_lines, width

CHUNKER_VERSION = 3
"""Increased when the same text gives other chunks. The index is then rebuilt."""

# How full a chunk must be, as a share of the target, for a heading of this level to start a new one. Several subjects
# in one chunk blur its vector, so sections are split early. But a chunk of one line is hard to find.
_FULL_ENOUGH = {1: 0.25, 2: 0.25, 3: 0.5}
_FULL_ENOUGH_BELOW = 0.75

# How good a split before a line is, from worst to best. A heading is better than all of these.
_INSIDE, _LINE, _ITEM, _PARAGRAPH = range(4)
_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s")

_DAY_IN_NAME = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")
_DAY_IN_FIELD = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")

#: The headings above a line, outermost first, each with its level.
HeadingPath = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules that turn files into rows. After a change of the signature every row is rebuilt."""

    tokens: int = 512
    overlap: int = 64
    target: int = 16
    #: The oldest unused vectors are deleted above this size, about 150,000 chunks of 768 dimensions.
    cache_limit_bytes: int = 512 << 20
    #: The trust of folders that is lower than the owner's, with the folders.
    lowered: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        sizes = f"({self.tokens}/{self.overlap}/{self.target})"
        return ", ".join(
            (f"chunker {CHUNKER_VERSION} {sizes}", f"tokenizer {TOKENIZER_VERSION}", *self.lowered)
        )


@dataclass(slots=True)
class _Unit:
    """Lines that stay together: one line, a fence that fits, or a heading with the text after it."""

    #: Index of the first line.
    start: int
    #: Index after the last line that is not blank.
    end: int
    #: Width from ``start`` to ``end``.
    width: int
    #: Width of the blank lines after it.
    gap: int
    #: Level of the heading it starts with, or 0.
    level: int
    #: Headings above it.
    path: HeadingPath
    #: How good a split before it is.
    border: int
    #: Whether it consists only of headings so far.
    is_heading: bool
    #: The tags of its sections.
    tags: tuple[str, ...] = ()

    @property
    def full_width(self) -> int:
        return self.width + 1 + self.gap


def chunk_markdown(
    document: Document, *, tokens: int = 512, overlap: int = 64, target: int = 16
) -> list[Chunk]:
    """Split a document into chunks of at most ``tokens`` (four Latin letters or one Chinese character each).

    A chunk ends at the first heading, paragraph or list item after ``target`` tokens. Notes contain many small facts,
    and a small chunk is easier to find and takes less space in a prompt. Running text stays together up to the limit.
    If it must be split, the next chunk repeats up to ``overlap`` tokens of the lines before the split.
    """
    lines = split_lines(document.text)
    structure = structure_of(lines)
    budget = max(32, tokens * 4)
    whole = list(_units(lines, structure, budget))
    pages = document.path.lower().endswith(".pdf")
    date, trust = _date(document.path, structure), least_trusted(document.trust, _trust(structure))
    seen: Counter[str] = Counter()
    chunks = []
    cuts = (
        (units, first, last)
        for units in (_by_page(whole) if pages else [whole])
        for first, last in _cuts(units, budget, min(target * 4, budget), min(overlap * 4, budget // 2))
    )
    for units, first, last in cuts:
        start, end = units[first].start, units[last].end
        # The title in the front matter is often repeated as the first heading.
        titles = [title for _, title in units[first].path]
        tags = [text for unit in units[first : last + 1] for text in unit.tags]
        headings = tuple(dict.fromkeys(filter(None, [*titles, *tags])))
        for text in _pieces("\n".join(lines[start:end]), budget):
            chunk = Chunk("", document.path, document.source, start + 1, end, text, headings, date, trust)
            chunks.append(_with_id(chunk, seen))
    return chunks


#: The value of ``approval`` in the front matter of a note that waits for the owner's approval.
PENDING = "pending"


def trust_of_note(lines: Sequence[str], most: Trust = "owner") -> Trust:
    """Return the trust that a note claims in its front matter, and at ``most`` that of its folder."""
    return least_trusted(most, _trust(structure_of(lines)))


def chunk_passages(document: Document, *, tokens: int = 512) -> list[Chunk]:
    """Return the passages of a transcript as chunks. A passage over the limit is one long turn and is split."""
    chunks = []
    for passage in document.passages:
        for number, text in enumerate(_pieces(passage.text, max(32, tokens * 4))):
            # The line is part of the id. A transcript only grows, so lines never move, and texts such as "yes" repeat.
            key = "\0".join((document.source, document.path, str(passage.start_line), str(number), text))
            id_ = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
            place = (passage.start_line, passage.end_line)
            chunks.append(
                Chunk(id_, document.path, document.source, *place, text, (), passage.date, passage.trust)
            )
    return chunks


# ---- units ----------------------------------------------------------------------------------------------------


def _units(lines: Sequence[str], structure: Structure, budget: int) -> Iterator[_Unit]:
    """Group the lines into units. A heading is joined with the text after it if both fit."""
    held: _Unit | None = None  # a heading whose text has not been seen yet
    for block in _blocks(lines, structure, budget):
        unit = block
        if held and held.full_width + block.width <= budget:
            held.width = held.full_width + block.width
            held.end, held.gap, held.is_heading = block.end, block.gap, block.is_heading
            held.tags += block.tags
            unit = held
        elif held:
            yield held
        held = unit if unit.is_heading else None
        if not held:
            yield unit
    if held:
        yield held


def _blocks(lines: Sequence[str], structure: Structure, budget: int) -> Iterator[_Unit]:
    """Yield the smallest groups of lines that belong together, with the headings above each."""
    above = _above_all(lines, structure, budget)
    path, first = above or ((), ())
    ends = _ends_of_blocks(structure)
    start = structure.front_matter if above else 0
    tags = find_tags(lines, structure)
    blank = _blank_from(lines, start, tags.lines)
    number = start + blank
    while number < len(lines):
        end = ends.get(number, number + 1)
        size = width(lines[number])
        if end > number + 1:
            whole = sum(map(width, lines[number:end])) + end - number - 1
            end, size = (end, whole) if whole <= budget else (number + 1, size)
        heading = structure.headings.get(number)
        level = heading.level if heading else 0
        if heading:
            path = tuple(outer for outer in path if outer[0] < level)
        border = _border(lines[number], level, after_blank=blank > 0)
        blank = _blank_from(lines, end, tags.lines)
        gap = sum(map(width, lines[end : end + blank])) + blank if blank else 0
        yield _Unit(number, end, size, gap, level, (*path, *first), border, level > 0, (tags.above(number),))
        first = ()
        if heading:
            path = (*path, (level, heading.title))
        elif number == 0 and structure.fields.get("title"):
            path = ((0, structure.fields["title"]),)
        number = end + blank


def _above_all(
    lines: Sequence[str], structure: Structure, budget: int
) -> tuple[HeadingPath, HeadingPath] | None:
    """Return what the front matter adds above every chunk, and above the first chunk only.

    Return None if the front matter is treated as text: it does not consist of names and values, there is no other
    text, or it is too long.
    """
    end = structure.front_matter
    if not end or _blank_from(lines, end) == len(lines) - end:
        return None
    matter = read_front_matter(lines[1 : end - 1])
    if matter is None or width(matter.rest) > budget // 2:
        return None
    every = tuple((0, text) for text in (matter.title, matter.subject) if text)
    return every, ((0, matter.rest),) if matter.rest else ()


def _ends_of_blocks(structure: Structure) -> dict[int, int]:
    """Map the first line of each block with several lines to the line after it."""
    underlined = {start: start + 2 for start, heading in structure.headings.items() if heading.lines == 2}
    front_matter = {0: structure.front_matter} if structure.front_matter else {}
    return {**structure.fences, **underlined, **front_matter}


def _blank_from(lines: Sequence[str], start: int, besides: Container[int] = ()) -> int:
    """Count the lines from here that are blank, or one of the lines ``besides``."""
    end = start
    while end < len(lines) and (not lines[end].strip() or end in besides):
        end += 1
    return end - start


def _border(line: str, level: int, *, after_blank: bool) -> int:
    """Rate a split before this line."""
    if level:
        return 10 - level
    if line[0] in " \t":
        return _INSIDE
    if after_blank:
        return _PARAGRAPH
    return _ITEM if _LIST_ITEM.match(line) else _LINE


# ---- splits ---------------------------------------------------------------------------------------------------


def _cuts(units: Sequence[_Unit], budget: int, target: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last unit of each chunk. Chunks overlap only if a section continues in the next chunk."""
    first = fresh = 0  # units from ``first`` to ``fresh`` are repeated from the last chunk
    while fresh < len(units):
        used = sum(unit.full_width for unit in units[first:fresh])
        if used + units[fresh].width > budget:
            first, used = fresh, 0
        after = _find_end(units, fresh, used, budget, target)
        yield first, after - 1
        fresh = after
        first = _find_next_start(units, first, fresh, overlap)


def _find_end(units: Sequence[_Unit], fresh: int, used: int, budget: int, target: int) -> int:
    """Return the unit before which a chunk that starts with ``fresh`` ends."""
    at = fresh
    goes_on = fresh > 0 and not units[fresh].level  # do not mix the rest of a section with the next
    while at < len(units) and (at == fresh or used + units[at].width <= budget):
        level = units[at].level if at > fresh else 0
        if level and (used >= target * _full_enough(level) or (goes_on and level <= 2)):
            return at
        if at > fresh and used >= target and units[at].border >= _ITEM:
            return at
        used += units[at].full_width
        at += 1
    return at if at == len(units) else _best_border(units, fresh, at)


def _by_page(units: Sequence[_Unit]) -> Iterator[Sequence[_Unit]]:
    """Yield the units of each page. A citation names one page, so a chunk has no more."""
    starts = [at for at, unit in enumerate(units) if unit.level == 1 or not at]
    for start, end in zip(starts, [*starts[1:], len(units)], strict=True):
        yield units[start:end]


def _full_enough(level: int) -> float:
    return _FULL_ENOUGH.get(level, _FULL_ENOUGH_BELOW)


def _best_border(units: Sequence[_Unit], fresh: int, at: int) -> int:
    """Return the best split in the second half of a full chunk, and the last one of equals."""
    half = sum(unit.full_width for unit in units[fresh:at]) / 2
    best, left = at, 0
    for place in range(at - 1, fresh, -1):
        left += units[place].full_width
        if left > half:
            break
        if units[place].border > units[best].border:
            best = place
    return best


def _find_next_start(units: Sequence[_Unit], first: int, fresh: int, overlap: int) -> int:
    """Return the first unit of the next chunk. If running text was split, it starts some units earlier."""
    at, room = fresh, overlap
    if fresh < len(units) and units[fresh].border < _ITEM:
        while at - 1 > first and not units[at - 1].is_heading and units[at - 1].full_width <= room:
            at -= 1
            room -= units[at].full_width
    return at


def _pieces(text: str, budget: int) -> Iterator[str]:
    """Yield the text, or the pieces of a single line that is over the limit."""
    at = 0
    while width(window := text[at : at + budget + 1]) > budget:
        fitting = _longest(window, budget)
        cut = last_boundary(window, fitting, fitting * 3 // 4)
        if window[:cut].strip():
            yield window[:cut]
        at += cut
    if window.strip():
        yield window


def _longest(text: str, budget: int) -> int:
    """Return how many characters of the text fit."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if width(text[:middle]) <= budget else (low, middle - 1)
    return low


# ---- properties of a chunk ------------------------------------------------------------------------------------


def _with_id(chunk: Chunk, seen: Counter[str]) -> Chunk:
    """Add the id of a chunk. It does not change when lines above the chunk are added or removed."""
    seen[chunk.embedding_text] += 1
    key = "\0".join((chunk.source, chunk.path, chunk.embedding_text, str(seen[chunk.embedding_text])))
    return replace(chunk, id=hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32])


def _trust(structure: Structure) -> Trust:
    """Return the trust that the note claims. It can only lower the trust of a note."""
    claimed = structure.fields.get("trust", "").strip("\"' ")
    if structure.fields.get("approval", "").strip("\"' ") == PENDING:
        return "untrusted"
    return next((level for level in TRUST_LEVELS if level == claimed), "owner")


def _date(path: str, structure: Structure) -> str | None:
    """Return the date of a note, from its front matter or its file name."""
    field = structure.fields.get("date") or structure.fields.get("created") or ""
    name = path.rpartition("/")[2]
    days = [
        *(match.groups() for match in _DAY_IN_FIELD.finditer(field)),
        *(match.group(1, 3, 4) for match in _DAY_IN_NAME.finditer(name)),
    ]
    for year, month, day in days:
        with suppress(ValueError):  # such as 2026-13-45
            return datetime.date(int(year), int(month), int(day)).isoformat()
    return None
