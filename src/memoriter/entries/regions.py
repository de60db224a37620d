"""Names for the regions of the map, from the words of the entries in each.

A word names a region if many of its entries contain it and few others do. The names are made for every request and
never stored: a stored name could repeat a forgotten text.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from memoriter.records import Point, Region
from memoriter.text.tokens import find_words

#: The map is divided into this many columns and rows.
GRID = 5
MAX_REGIONS = 12
#: Entries that a region has at least.
MIN_ENTRIES = 3
#: Texts that are read, an even sample, so that a large map is named as quickly as a small one.
MAX_TEXTS = 2_000
#: Characters of a text that are read.
MAX_CHARS = 300
#: Words in a name.
MAX_WORDS = 2


def name_regions(points: Sequence[Point]) -> tuple[Region, ...]:
    """Return the regions of the map that contain most entries, each with a name, most entries first."""
    cells = _cells(points)
    share = max(1, len(points) // MAX_TEXTS)
    words = {place: [_words(point.entry.text) for point in cell[::share]] for place, cell in cells.items()}
    everywhere = Counter(token for texts in words.values() for text in texts for token in text)
    taken = set[str]()
    regions = list[Region]()
    for place in sorted(cells, key=lambda place: (-len(cells[place]), place))[:MAX_REGIONS]:
        cell = cells[place]
        if len(cell) >= MIN_ENTRIES and (name := _name(words[place], everywhere, taken)):
            x, y = (sum(axis) / len(cell) for axis in zip(*((one.x, one.y) for one in cell), strict=True))
            regions.append(Region(name, round(x, 5), round(y, 5), len(cell)))
    return tuple(regions)


def _cells(points: Sequence[Point]) -> dict[tuple[int, int], list[Point]]:
    cells = defaultdict[tuple[int, int], list[Point]](list)
    columns, rows = _scale([point.x for point in points]), _scale([point.y for point in points])
    for point, column, row in zip(points, columns, rows, strict=True):
        cells[column, row].append(point)
    return cells


def _scale(values: Sequence[float]) -> Iterator[int]:
    """Yield the column of each value."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    width = (high - low) or 1.0
    return (min(GRID - 1, int((value - low) / width * GRID)) for value in values)


def _words(text: str) -> dict[str, str]:
    """Return the tokens of a text that can be part of a name, each with the word as it is written."""
    text = text[:MAX_CHARS]
    return {
        tokens[0] if text[start].isascii() else text[start:end]: text[start:end]
        for start, end, tokens in find_words(text)
        if tokens and end - start > 1 and not text[start].isdigit()
    }


def _name(texts: Sequence[dict[str, str]], everywhere: Counter[str], taken: set[str]) -> str:
    """Return the words that are typical of the texts, and add them to those that are taken."""
    counts = Counter(token for text in texts for token in text)
    least = 2 if len(texts) > 1 else 1

    def weight(token: str) -> float:
        elsewhere = everywhere[token] - counts[token]
        return counts[token] / len(texts) * math.log1p(counts[token] / (elsewhere + 1))

    chosen = list[str]()
    for token in sorted(counts, key=lambda token: (-weight(token), token)):
        if counts[token] < least or len(chosen) == MAX_WORDS:
            break
        if token not in taken and not _overlaps(token, chosen):
            chosen.append(token)
    taken.update(chosen)
    return " · ".join(_as_written(token, texts) for token in chosen)


def _overlaps(token: str, chosen: Iterable[str]) -> bool:
    """Return whether two pairs of Chinese characters share one, so that they may be parts of one word."""
    return not token.isascii() and any(set(token) & set(other) for other in chosen)


def _as_written(token: str, texts: Iterable[dict[str, str]]) -> str:
    ((word, _),) = Counter(text[token] for text in texts if token in text).most_common(1)
    return word
