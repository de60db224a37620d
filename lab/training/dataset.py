"""Assemble the training data: texts of both languages, long texts, pairs and queries.

A text has the number of its position in the list of its language, a pair that of its position in
`pairs`. The result is two compressed text files and one array file, which can be moved to another
machine and checked by a digest. An `Ask` is a query with the text that it should find.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from lab.training import corpus, queries
from lab.training.config import DIALOGUES, DOCUMENTS, PARALLEL_DOCUMENTS, DataConfig
from lab.training.corpus import Line
from lab.training.queries import Ask

LANGUAGES = ("en", "zh")
_QUESTIONED = ("drcd", "xquad")  # questions follow their passage
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 5, "dict_size": 1 << 26}]


@dataclass(frozen=True)
class Dataset:
    """The training data; `asks` and `pair_asks` are (query, text) by number."""

    texts: dict[str, list[str]]
    long: dict[str, np.ndarray]
    asks: dict[str, np.ndarray]
    pairs: np.ndarray
    pair_long: np.ndarray
    pair_plain: np.ndarray  # False for dictionary entries, which are not sentences
    pair_asks: np.ndarray

    def digest(self) -> str:
        """Return a hash of texts and numbers, to check whether cached results are still valid."""
        found = hashlib.sha256()
        for language in LANGUAGES:
            found.update("\n".join(self.texts[language]).encode())
            found.update(self.asks[language].tobytes())
        found.update(self.pairs.tobytes() + self.pair_asks.tobytes())
        return found.hexdigest()[:16]


class Builder:
    """Collects and numbers texts in one pass over the sources."""

    def __init__(self, config: DataConfig) -> None:
        self.config = config
        self.rng = random.Random(config.seed)
        self.numbers: dict[str, dict[str, int]] = {language: {} for language in LANGUAGES}
        self.long: dict[str, set[int]] = {language: set() for language in LANGUAGES}
        self.asks: dict[str, list[Ask]] = {language: [] for language in LANGUAGES}
        self.pairs: dict[tuple[int, int], int] = {}
        self.pair_source: list[str] = []
        self.pair_long: list[bool] = []
        self.pair_asks: set[tuple[int, int]] = set()
        self.kinds: Counter[str] = Counter()

    def number(self, language: str, text: str) -> int:
        """Return the number of a text, and add the text if it is new."""
        return self.numbers[language].setdefault(text, len(self.numbers[language]))

    def add(self, language: str, lines: Sequence[Line]) -> None:
        """Add the lines of one language."""
        for source, run in corpus.runs(lines):
            texts = [line.text for line in run]
            if source in DIALOGUES:
                self._dialogue(language, texts)
            else:
                self._document(language, source, texts)

    def _dialogue(self, language: str, texts: list[str]) -> None:
        asks, rng = self.asks[language], self.rng
        spoken = [queries.speak(text, rng) for text in texts]
        for text in spoken:
            self.number(language, text)
        asks += [Ask("turn", texts[q], spoken[a]) for q, a in queries.turns(texts)]
        for turn, answer in pairwise(texts):
            asks += filter(None, [queries.asked_about(turn, answer, rng)])
        for text in texts:
            asks += filter(None, [queries.restated(text, rng)])
        for text in spoken:
            asks += filter(None, [queries.keywords(text, rng), queries.lead(text, rng)])
        for stretch in corpus.joined(texts, self.config, rng):
            names = rng.sample(queries.ENGLISH_NAMES if language == "en" else queries.CHINESE_NAMES, 2)
            mark = ": " if language == "en" else "："
            self._long(language, [names[i % 2] + mark + texts[p] for i, p in enumerate(stretch)])

    def _document(self, language: str, source: str, texts: list[str]) -> None:
        asks, limit = self.asks[language], self.config.long_max
        for text in texts:
            self.number(language, text)
            asks += filter(None, [queries.lead(text, self.rng), queries.keywords(text, self.rng)])
        if source in _QUESTIONED:
            for question, passage in queries.passages(texts, limit):
                asks.append(Ask("passage", texts[question], queries.glue([texts[i] for i in passage])))
        if source in DOCUMENTS:
            for heading, section in queries.headings(texts, limit):
                asks.append(Ask("heading", texts[heading], queries.glue([texts[i] for i in section])))
            for stretch in corpus.joined(texts, self.config, self.rng):
                self._long(language, [texts[i] for i in stretch])

    def _long(self, language: str, texts: list[str]) -> None:
        if self.rng.random() > self.config.long_share:
            return
        text = queries.glue(texts)
        self.long[language].add(self.number(language, text))
        self.asks[language] += filter(None, [queries.lead(text, self.rng), queries.keywords(text, self.rng)])

    def add_pairs(self, lines: Sequence[Line]) -> None:
        """Add the parallel lines."""
        for source, run in corpus.runs(lines):
            places = [self._pair(source, line.text, line.other) for line in run]
            texts = [line.text for line in run]
            limit = self.config.long_max
            if source in PARALLEL_DOCUMENTS:
                for heading, section in queries.headings(texts, limit):
                    found = self._join(source, [run[i] for i in section])
                    self.pair_asks.add((places[heading], found))
                for stretch in corpus.joined(texts, self.config, self.rng):
                    self._join(source, [run[i] for i in stretch])
            elif source in _QUESTIONED:
                for question, passage in queries.passages(texts, limit):
                    self.pair_asks.add((places[question], places[passage[-1]]))
            elif source in ("multiwoz_zh", "crosswoz_en"):
                self.pair_asks.update((places[q], places[a]) for q, a in queries.turns(texts))

    def _pair(self, source: str, english: str, chinese: str, long: bool = False) -> int:
        key = (self.number("en", english), self.number("zh", chinese))
        if key not in self.pairs:
            self.pair_source.append(source)
            self.pair_long.append(long)
        return self.pairs.setdefault(key, len(self.pairs))

    def _join(self, source: str, lines: Sequence[Line]) -> int:
        english = queries.glue([line.text for line in lines])
        chinese = queries.glue([line.other for line in lines])
        long = corpus.length(english) >= self.config.long_min
        if long:
            self.long["en"].add(self.number("en", english))
            self.long["zh"].add(self.number("zh", chinese))
        return self._pair(source, english, chinese, long)

    def finish(self) -> Dataset:
        """Number the queries and return the data."""
        numbered = {}
        for language in LANGUAGES:
            kept = queries.wanted(self.asks[language], self.config, self.rng)
            self.kinds.update(f"{language}/{ask.kind}" for ask in kept)
            rows = [(self.number(language, a.query), self.number(language, a.text)) for a in kept]
            numbered[language] = np.array(rows, np.int64).reshape(-1, 2)
        return Dataset(
            texts={language: list(self.numbers[language]) for language in LANGUAGES},
            long={language: np.array(sorted(self.long[language]), np.int64) for language in LANGUAGES},
            asks=numbered,
            pairs=np.array(list(self.pairs), np.int64).reshape(-1, 2),
            pair_long=np.array(self.pair_long, bool),
            pair_plain=np.array([source != "cedict" for source in self.pair_source], bool),
            pair_asks=np.array(sorted(self.pair_asks), np.int64).reshape(-1, 2),
        )


def build(
    english: Iterable[Line], chinese: Iterable[Line], pairs: Iterable[Line], config: DataConfig
) -> tuple[Dataset, Counter[str]]:
    """Build the data from the lines of the three files. Return it with the number of queries by kind."""
    builder = Builder(config)
    builder.add_pairs(list(pairs))
    builder.add("en", list(english))
    builder.add("zh", list(chinese))
    return builder.finish(), builder.kinds


def save(dataset: Dataset, folder: Path, counts: dict[str, int]) -> None:
    """Write the data into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {"pairs": dataset.pairs, "pair_long": dataset.pair_long}
    arrays |= {"pair_plain": dataset.pair_plain, "pair_asks": dataset.pair_asks}
    for language in LANGUAGES:
        arrays |= {f"long_{language}": dataset.long[language]}
        arrays |= {f"asks_{language}": dataset.asks[language]}
    with ThreadPoolExecutor() as threads:  # compression releases the interpreter lock
        list(threads.map(lambda language: _pack(dataset.texts[language], folder, language), LANGUAGES))
    small = {name: a.astype(np.int32) if a.dtype == np.int64 else a for name, a in arrays.items()}
    np.savez_compressed(folder / "index.npz", **small)
    counts |= {f"texts/{language}": len(dataset.texts[language]) for language in LANGUAGES}
    counts |= {f"long/{language}": len(dataset.long[language]) for language in LANGUAGES}
    counts |= {"pairs": len(dataset.pairs), "pair_asks": len(dataset.pair_asks)}
    report = {"digest": dataset.digest(), "counts": counts}
    (folder / "counts.json").write_text(json.dumps(report, indent=1, sort_keys=True) + "\n")


def _pack(texts: list[str], folder: Path, language: str) -> None:
    with lzma.open(folder / f"{language}.txt.xz", "wb", filters=_FILTERS) as out:
        out.write("\n".join(texts).encode())


def load(folder: Path) -> Dataset:
    """Read what `save` wrote."""
    stored = np.load(folder / "index.npz")
    texts = {}
    for language in LANGUAGES:
        with lzma.open(folder / f"{language}.txt.xz", "rt", encoding="utf-8", newline="\n") as lines:
            texts[language] = lines.read().split("\n")
    return Dataset(
        texts=texts,
        long={language: stored[f"long_{language}"].astype(np.int64) for language in LANGUAGES},
        asks={language: stored[f"asks_{language}"].astype(np.int64) for language in LANGUAGES},
        pairs=stored["pairs"].astype(np.int64),
        pair_long=stored["pair_long"],
        pair_plain=stored["pair_plain"],
        pair_asks=stored["pair_asks"].astype(np.int64),
    )
