"""Remove benchmark text from the training data.

A line is dropped if it equals a benchmark text, or a sentence or question of one, ignoring case,
spaces and punctuation. It is also dropped if at least half of its 8-unit shingles occur in the
benchmarks (a unit is a word or a Han character). Lines shorter than a shingle are only compared
exactly.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.training.config import DataConfig
from lab.training.corpus import Line

_UNIT = re.compile(r"[\u3400-\u9fff]|[a-z0-9]+")
_SENTENCE = re.compile(r"(?<=[.!?。！？；;])\s*|\n+")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def units(text: str) -> list[str]:
    """Return the words and Han characters of a text, lower-cased."""
    return _UNIT.findall(text.lower())


class Benchmarks:
    """The texts of the benchmarks, normalised, and hashes of their shingles."""

    def __init__(self, texts: Iterable[str], config: DataConfig) -> None:
        self.config = config
        self.codes: dict[str, int] = {}
        self.exact: set[str] = set()
        hashes = [np.zeros(0, np.uint64)]
        for text in texts:
            for part in {text, text.partition(": ")[2], *_SENTENCE.split(text)}:
                found = units(part)
                if len(found) >= 3:
                    self.exact.add(" ".join(found))
            hashes.append(self._shingles(units(text), learn=True))
        self.shingles = np.unique(np.concatenate(hashes))

    def _shingles(self, found: Sequence[str], learn: bool = False) -> np.ndarray:
        size = self.config.shingle
        if len(found) < size:
            return np.zeros(0, np.uint64)
        if learn:
            codes = [self.codes.setdefault(unit, len(self.codes) + 1) for unit in found]
        else:
            codes = [self.codes.get(unit, 0) for unit in found]
        values = np.array(codes, np.uint64)
        mixed = np.zeros(len(values) - size + 1, np.uint64)
        for offset in range(size):
            mixed = mixed * _FACTOR + values[offset : offset + len(mixed)]
            mixed ^= mixed >> np.uint64(29)
        # A shingle with a unit that the benchmarks never use cannot match, so skip the look-up.
        known = np.convolve(values == 0, np.ones(size), "valid") == 0
        return np.where(known, mixed, np.uint64(0))

    def verdict(self, text: str) -> str:
        """Return "exact", "near" or "" (free)."""
        found = units(text)
        if " ".join(found) in self.exact:
            return "exact"
        hashes = self._shingles(found)
        alive = hashes[hashes != 0]
        if len(alive) == 0 or len(alive) < self.config.near_duplicate * len(hashes):
            return ""
        place = np.searchsorted(self.shingles, alive)
        inside = self.shingles[np.minimum(place, len(self.shingles) - 1)] == alive
        share = inside.sum() / len(hashes)
        return "near" if share >= self.config.near_duplicate else ""


def benchmark_texts(folder: Path) -> Iterator[str]:
    """Yield every text of the benchmarks: items, questions and answers."""
    for path in sorted(folder.rglob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for row in lines:
                yield from _strings(json.loads(row))


def _strings(item: dict[str, Any]) -> Iterator[str]:
    for key in ("text", "query", "answer"):
        if isinstance(item.get(key), str):
            yield item[key]


def free(lines: Iterable[Line], benchmarks: Benchmarks, counts: Counter[str]) -> Iterator[Line]:
    """Yield the lines that are in no benchmark. Count all lines and dropped lines by source."""
    for line in lines:
        counts[f"{line.source}/read"] += 1
        found = benchmarks.verdict(line.text) or (line.other and benchmarks.verdict(line.other))
        if found:
            counts[f"{line.source}/{found}"] += 1
        else:
            yield line
