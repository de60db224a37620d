"""Synthetic notes and questions with word frequencies as in real text.

Ranks follow Zipf's law over 60,000 words. The most common are the English stop words, which the tokenizer of memoriter
drops and a plain full-text index does not. The same seed gives the same text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from memoriter.text.words import ENGLISH

VOCABULARY = 60_000
_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


class Writer:
    """Writes texts of random words."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._words = _vocabulary()
        weights = 1 / (np.arange(VOCABULARY) + 2.7)
        self._cumulative = np.cumsum(weights / weights.sum())

    def words(self, count: int) -> list[str]:
        """Return this many words, common ones more often."""
        ranks = np.searchsorted(self._cumulative, self._chance.random(count))
        return list(map(str, self._words[np.minimum(ranks, VOCABULARY - 1)]))

    def text(self, least: int = 60, most: int = 100) -> str:
        """Return a paragraph."""
        return " ".join(self.words(int(self._chance.integers(least, most + 1))))

    def texts(self, count: int) -> Iterator[str]:
        """Return this many paragraphs."""
        return (self.text() for _ in range(count))

    def note(self, paragraphs: int) -> str:
        """Return a Markdown note with a heading above each paragraph."""
        parts = (f"## {' '.join(self.words(3))}\n\n{self.text()}\n" for _ in range(paragraphs))
        return "\n".join(parts)

    def question(self) -> str:
        """Return a question of three to eight words."""
        return " ".join(self.words(int(self._chance.integers(3, 9))))


@cache
def _vocabulary() -> NDArray[np.str_]:
    chance = np.random.default_rng(0)
    drawn = chance.choice(_SYLLABLES, size=(2 * VOCABULARY, 4))
    lengths = chance.integers(2, 5, size=len(drawn)).tolist()
    invented = (
        "".join(syllables[:length]) for syllables, length in zip(drawn.tolist(), lengths, strict=True)
    )
    words = dict.fromkeys((*sorted(ENGLISH), *invented))
    assert len(words) >= VOCABULARY
    return np.array(list(words)[:VOCABULARY])
