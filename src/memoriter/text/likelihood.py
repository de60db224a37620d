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

from memoriter.text.tokens import fold_variants, width

Model = Literal["statements", "openers"]

#: Coefficients of a model, a power of two, and the longest run of characters that is one feature: in text that is
#: mostly Chinese, Japanese or Korean, and in other text.
SIZES: dict[Model, tuple[int, int, int]] = {"statements": (1 << 15, 5, 5), "openers": (1 << 16, 3, 5)}
#: A coefficient of one, in the steps of the stored bytes.
UNIT = 16
#: Characters of a sentence that are read.
MAX_READ = 300

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")


def features(sentence: str, model: Model) -> list[int]:
    """Return the places of the coefficients of a sentence, sorted and without repetitions."""
    size, *grams = SIZES[model]
    sentence = fold_variants(sentence) if model == "openers" else sentence
    return sorted({crc32(name.encode("utf-8", "replace")) % size for name in _names(sentence, grams)})


def _names(sentence: str, grams: list[int]) -> Iterator[str]:
    text = _DIGIT.sub("0", unicodedata.normalize("NFKC", sentence[:MAX_READ]).casefold()).strip()
    marked = f"^{text}$"
    for size in range(1, grams[width(text) <= 2 * len(text)] + 1):
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
    stored, places = _coefficients(model), features(text, model)
    total = sum((stored[place] ^ 128) - 128 for place in places)
    bias = (stored[-1] ^ 128) - 128
    return 1 / (1 + math.exp(-(bias + total / math.sqrt(len(places) or 1)) / UNIT))
