"""Read the source lines, clean them, and join neighbours into long texts.

Three files, xz-compressed, tab-separated, lines in document order: `en.tsv.xz` and `zh.tsv.xz`
(source, text), `pairs.tsv.xz` (source, English, Chinese).
"""

from __future__ import annotations

import lzma
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from lab.training.config import DIALOGUES, DOCUMENTS, LEFT_OUT, DataConfig

_HAN = re.compile(r"[\u3400-\u9fff]")
_UNIT = re.compile(r"[\u3400-\u9fff]|[A-Za-z0-9]+|[^\sA-Za-z0-9\u3400-\u9fff]")
_SPEAKER = re.compile(r"^(?:[A-Za-z]{1,12}: |[\u3400-\u9fff]{1,5}：)")
_STAGE = re.compile(r"（[^）]{1,30}）|\([^)]{1,30}\)|[\U0001f300-\U0001faff]")
# Remains of Markdown and front matter in the document sources.
_MARKUP = re.compile(r"^(\[#\]|!\[|\$ |#|sudo |via[:：]|作者|译者|校对|原文|\W*$)|\[#\]:|@@|[{}<>]{2}")
_TRAILER = re.compile(r"\s*(#+|:::.*|\{/.*/\})\s*$")


@dataclass(frozen=True)
class Line:
    """One text of one source. `other` is the Chinese text of a parallel source."""

    source: str
    text: str
    other: str = ""


def length(text: str) -> int:
    """Estimate the tokens of a text: Han characters, words and marks. Long words count more."""
    return sum(1 + len(unit) // 8 for unit in _UNIT.findall(text))


def is_chinese(text: str) -> bool:
    """Return whether a large part of the text is Han."""
    return len(_HAN.findall(text)) * 4 >= len(text.replace(" ", ""))


def clean(source: str, text: str) -> str:
    """Remove markup and names. Return "" if the rest is too short or useless."""
    text = _TRAILER.sub("", " ".join(text.split()))
    if source in DIALOGUES:
        # Speaker names in the data are random. Names are added again later.
        text = _SPEAKER.sub("", text)
        text = _STAGE.sub("", text) if source == "emollm" else text
        text = re.sub(r" ([.,?!'])", r"\1", text) if source == "qmsum" else text
    elif source in DOCUMENTS and _MARKUP.search(text):
        return ""
    # Dictionary entries are single words. Elsewhere one or two units mean nothing.
    return text.strip() if length(text) >= (1 if source == "cedict" else 3) else ""


def read(path: Path, config: DataConfig) -> Iterator[Line]:
    """Yield the cleaned lines of one file, in order, without excluded sources."""
    kept: dict[str, int] = {}
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for row in lines:
            source, *texts = row.rstrip("\n").split("\t")
            kept[source] = kept.get(source, 0) + 1
            if source in LEFT_OUT or (config.max_lines and kept[source] > config.max_lines // 8):
                continue
            texts = [clean(source, text) for text in texts]
            if all(texts):
                yield Line(source, *texts)


def runs(lines: Sequence[Line]) -> Iterator[tuple[str, list[Line]]]:
    """Group neighbouring lines by source."""
    for source, group in groupby(lines, key=lambda line: line.source):
        yield source, list(group)


def joined(texts: Sequence[str], config: DataConfig, rng: random.Random) -> Iterator[list[int]]:
    """Cut a run of neighbouring texts into stretches of `long_min` to `long_max` units."""
    stretch: list[int] = []
    size, goal = 0, rng.randint(config.long_min, config.long_max)
    for index, text in enumerate(texts):
        here = length(text)
        if size + here > config.long_max:
            if size >= config.long_min:
                yield stretch
            stretch, size, goal = [], 0, rng.randint(config.long_min, config.long_max)
        if here > config.long_max:
            continue
        stretch.append(index)
        size += here
        if size >= goal:
            yield stretch
            stretch, size, goal = [], 0, rng.randint(config.long_min, config.long_max)
