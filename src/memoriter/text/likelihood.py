"""Recognise short texts by small models, in any language.

`statements` recognises plain statements of a person among requests, questions, chat and passing remarks. `openers`
recognises sentences that introduce a text of others, or ask for work on one, among all sentences of a person. Each is a
logistic model over hashed character n-grams and words, without a word list and without the embedder: its vocabulary
does not cover every script. `python -m lab.training.statements` writes the coefficients.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Literal
from zlib import crc32

Model = Literal["statements", "openers"]

#: Coefficients, a power of two.
BUCKETS = 1 << 15
#: A coefficient of one, in the steps of the stored bytes.
UNIT = 16
#: Longest run of characters that is one feature.
MAX_GRAM = 5
#: Characters of a sentence that are read.
MAX_READ = 300

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")


def features(sentence: str) -> list[int]:
    """Return the places of the coefficients of a sentence, sorted and without repetitions."""
    return sorted({crc32(name.encode("utf-8", "replace")) % BUCKETS for name in _names(sentence)})


def _names(sentence: str) -> Iterator[str]:
    text = _DIGIT.sub("0", unicodedata.normalize("NFKC", sentence[:MAX_READ]).casefold()).strip()
    marked = f"^{text}$"
    for size in range(1, MAX_GRAM + 1):
        for at in range(len(marked) - size + 1):
            yield marked[at : at + size]
    words = _WORD.findall(text)
    for one, two in pairwise(words):
        yield f"{one} {two}"
    yield f"first {' '.join(words[:1])}"
    yield f"second {' '.join(words[:2])}"
    yield f"last {' '.join(words[-1:])}"


@cache
def _coefficients(model: Model) -> bytes:
    return files("memoriter.text").joinpath(f"{model}.bin").read_bytes()


def likelihood(text: str, model: Model) -> float:
    """Return how likely a text is what the model recognises, from 0 to 1."""
    stored, places = _coefficients(model), features(text)
    total = sum((stored[place] ^ 128) - 128 for place in places)
    bias = (stored[BUCKETS] ^ 128) - 128
    return 1 / (1 + math.exp(-(bias + total / math.sqrt(len(places) or 1)) / UNIT))
