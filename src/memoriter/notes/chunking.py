"""Where may a text be cut?

By whole lines, under a budget: before a heading rather than between paragraphs, between paragraphs rather than
between lines, and not inside a code fence that fits. A heading stays with its text, and a chunk knows the headings it
stands under and the day of its note. Front matter is no chunk: what it says of the note stands above its chunks as a
heading does. Only a line that is itself over the budget is cut into pieces.

What a chunk is worth to a query is not its concern, nor who embeds it.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from memoriter.records import Chunk, Document, Trust
from memoriter.text.front_matter import read_front_matter
from memoriter.text.markdown import Structure, structure_of
from memoriter.text.measure import last_boundary, split_lines, width

CHUNKER_VERSION = 2
"""Raised when the same text is cut otherwise; an index made by another version is built anew."""

# How full a chunk must be, as a share of the target, for a heading of this level to begin a new one. Subjects that
# share a chunk blur each other's vector, so sections part early; but a chunk of one line says too little to be found.
_FULL_ENOUGH = {1: 0.25, 2: 0.25, 3: 0.5}
_FULL_ENOUGH_BELOW = 0.75

# How good a cut before a line is, from worst to best; a heading's is above all of them.
_INSIDE, _LINE, _ITEM, _PARAGRAPH = range(4)
_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s")

_DAY_IN_NAME = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")
_DAY_IN_FIELD = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")

Path = tuple[tuple[int, str], ...]  # the headings in force, outermost first, each with its level


@dataclass(slots=True)
class _Unit:
    """Lines that are not parted: one line, a fence that fits, or a heading with what follows it."""

    start: int  #: index of its first line
    end: int  #: index after its last line that is not blank
    width: int  #: from its first line to the end of its last that is not blank
    gap: int  #: width of the blank lines after it
    level: int  #: of the heading it begins with, or 0
    path: Path  #: headings in force above it
    border: int  #: how good a cut right before it is
    is_heading: bool  #: whether it is nothing but headings so far

    @property
    def full_width(self) -> int:
        return self.width + 1 + self.gap


def chunk_markdown(
    document: Document, *, tokens: int = 512, overlap: int = 64, target: int = 16
) -> list[Chunk]:
    """Cut a document into chunks of at most ``tokens`` (four Latin letters or one Chinese character each).

    A chunk ends at the first heading, paragraph or list item after ``target`` tokens: notes hold many small things,
    and a chunk of few is found more surely and costs a prompt less. Running text is kept whole up to the limit; where
    it must be cut, the next chunk begins with the lines before the cut, up to ``overlap`` tokens of them.
    """
    lines = split_lines(document.text)
    structure = structure_of(lines)
    budget = max(32, tokens * 4)
    units = list(_units(lines, structure, budget))
    date, trust = _date(document.path, structure), _trust(structure)
    seen: Counter[str] = Counter()
    chunks = []
    for first, last in _cuts(units, budget, min(target * 4, budget), min(overlap * 4, budget // 2)):
        start, end = units[first].start, units[last].end
        # The title of the front matter is often the first heading again.
        headings = tuple(dict.fromkeys(title for _, title in units[first].path if title))
        for text in _pieces("\n".join(lines[start:end]), budget):
            chunk = Chunk("", document.path, document.source, start + 1, end, text, headings, date, trust)
            chunks.append(_named(chunk, seen))
    return chunks


def trust_of_note(lines: Sequence[str]) -> Trust:
    """Whose words a note says it holds, by its front matter."""
    return _trust(structure_of(lines))


def chunk_passages(document: Document, *, tokens: int = 512) -> list[Chunk]:
    """A transcript's passages as chunks; a passage over the budget is one long turn, and cut into pieces."""
    chunks = []
    for passage in document.passages:
        for number, text in enumerate(_pieces(passage.text, max(32, tokens * 4))):
            # The place is part of the id: a transcript only grows, so a line never moves, and words like "yes" repeat.
            key = "\0".join((document.source, document.path, str(passage.start_line), str(number), text))
            id_ = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
            place = (passage.start_line, passage.end_line)
            chunks.append(
                Chunk(id_, document.path, document.source, *place, text, (), passage.date, passage.trust)
            )
    return chunks


# ---- what stays together --------------------------------------------------------------------------------------


def _units(lines: Sequence[str], structure: Structure, budget: int) -> Iterator[_Unit]:
    """The document's lines as units; a heading takes in what follows it, as far as the budget allows."""
    held: _Unit | None = None  # a heading that waits for its text
    for block in _blocks(lines, structure, budget):
        unit = block
        if held and held.full_width + block.width <= budget:
            held.width = held.full_width + block.width
            held.end, held.gap, held.is_heading = block.end, block.gap, block.is_heading
            unit = held
        elif held:
            yield held
        held = unit if unit.is_heading else None
        if not held:
            yield unit
    if held:
        yield held


def _blocks(lines: Sequence[str], structure: Structure, budget: int) -> Iterator[_Unit]:
    """The smallest runs of lines that belong together, with the headings above each."""
    above = _above_all(lines, structure, budget)
    path, first = above or ((), ())
    ends = _ends_of_blocks(structure)
    start = structure.front_matter if above else 0
    blank = _blank_from(lines, start)
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
        blank = _blank_from(lines, end)
        gap = sum(map(width, lines[end : end + blank])) + blank if blank else 0
        yield _Unit(number, end, size, gap, level, (*path, *first), border, level > 0)
        first = ()
        if heading:
            path = (*path, (level, heading.title))
        elif number == 0 and structure.fields.get("title"):
            path = ((0, structure.fields["title"]),)
        number = end + blank


def _above_all(lines: Sequence[str], structure: Structure, budget: int) -> tuple[Path, Path] | None:
    """What the front matter puts above every chunk, and above the first alone.

    None where it is text like any other: it is no names and values, there is no other text, or it says too much to
    stand above something.
    """
    end = structure.front_matter
    if not end or _blank_from(lines, end) == len(lines) - end:
        return None
    said = read_front_matter(lines[1 : end - 1])
    if said is None or width(said.rest) > budget // 2:
        return None
    every = tuple((0, text) for text in (said.title, said.subject) if text)
    return every, ((0, said.rest),) if said.rest else ()


def _ends_of_blocks(structure: Structure) -> dict[int, int]:
    """First line → line after the last, of every block that is more than a line."""
    underlined = {start: start + 2 for start, heading in structure.headings.items() if heading.lines == 2}
    front_matter = {0: structure.front_matter} if structure.front_matter else {}
    return {**structure.fences, **underlined, **front_matter}


def _blank_from(lines: Sequence[str], start: int) -> int:
    """How many blank lines begin here."""
    end = start
    while end < len(lines) and not lines[end].strip():
        end += 1
    return end - start


def _border(line: str, level: int, *, after_blank: bool) -> int:
    """How good a cut before this line is: at a heading, a paragraph, a line of its own, or within a list's item."""
    if level:
        return 10 - level
    if line[0] in " \t":
        return _INSIDE
    if after_blank:
        return _PARAGRAPH
    return _ITEM if _LIST_ITEM.match(line) else _LINE


# ---- where it is cut ------------------------------------------------------------------------------------------


def _cuts(units: Sequence[_Unit], budget: int, target: int, overlap: int) -> Iterator[tuple[int, int]]:
    """First and last unit of each chunk. Chunks share units only where one section goes on in the next."""
    first = fresh = 0  # ``first`` may lie before ``fresh``: the units between were in the last chunk already
    while fresh < len(units):
        used = sum(unit.full_width for unit in units[first:fresh])
        if used + units[fresh].width > budget:
            first, used = fresh, 0
        after = _filled(units, fresh, used, budget, target)
        yield first, after - 1
        fresh = after
        first = _carried(units, first, fresh, overlap)


def _filled(units: Sequence[_Unit], fresh: int, used: int, budget: int, target: int) -> int:
    """The unit before which a chunk that begins with ``fresh`` ends."""
    at = fresh
    goes_on = fresh > 0 and not units[fresh].level  # the rest of a section is not mixed with the next
    while at < len(units) and (at == fresh or used + units[at].width <= budget):
        level = units[at].level if at > fresh else 0
        if level and (used >= target * _full_enough(level) or (goes_on and level <= 2)):
            return at
        if at > fresh and used >= target and units[at].border >= _ITEM:
            return at
        used += units[at].full_width
        at += 1
    return at if at == len(units) else _best_border(units, fresh, at)


def _full_enough(level: int) -> float:
    return _FULL_ENOUGH.get(level, _FULL_ENOUGH_BELOW)


def _best_border(units: Sequence[_Unit], fresh: int, at: int) -> int:
    """The best place to cut in the second half of a full chunk, the latest of equals."""
    half = sum(unit.full_width for unit in units[fresh:at]) / 2
    best, left = at, 0
    for place in range(at - 1, fresh, -1):
        left += units[place].full_width
        if left > half:
            break
        if units[place].border > units[best].border:
            best = place
    return best


def _carried(units: Sequence[_Unit], first: int, fresh: int, overlap: int) -> int:
    """The unit with which the next chunk begins: some units back where running text was cut."""
    at, room = fresh, overlap
    if fresh < len(units) and units[fresh].border < _ITEM:
        while at - 1 > first and not units[at - 1].is_heading and units[at - 1].full_width <= room:
            at -= 1
            room -= units[at].full_width
    return at


def _pieces(text: str, budget: int) -> Iterator[str]:
    """The text itself, or the pieces of a single line that is over the budget."""
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
    """How many characters of the text fit into the budget."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if width(text[:middle]) <= budget else (low, middle - 1)
    return low


# ---- what a chunk knows ---------------------------------------------------------------------------------------


def _named(chunk: Chunk, seen: Counter[str]) -> Chunk:
    """The chunk with its id, which does not change when lines above it come or go."""
    seen[chunk.embedding_text] += 1
    key = "\0".join((chunk.source, chunk.path, chunk.embedding_text, str(seen[chunk.embedding_text])))
    return replace(chunk, id=hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32])


def _trust(structure: Structure) -> Trust:
    """Whose words the note says it holds. It can only claim less than a note is worth, never more."""
    claimed = structure.fields.get("trust", "").strip("\"' ")
    return "untrusted" if claimed == "untrusted" else "agent" if claimed == "agent" else "owner"


def _date(path: str, structure: Structure) -> str | None:
    """The note's own day: what its front matter says, else what its file's name says."""
    field = structure.fields.get("date") or structure.fields.get("created") or ""
    name = path.rpartition("/")[2]
    days = [
        *(match.groups() for match in _DAY_IN_FIELD.finditer(field)),
        *(match.group(1, 3, 4) for match in _DAY_IN_NAME.finditer(name)),
    ]
    for year, month, day in days:
        with suppress(ValueError):  # 2026-13-45 is a number, not a day
            return datetime.date(int(year), int(month), int(day)).isoformat()
    return None
