"""Synthetic notes and questions whose words are spread as in real text.

Ranks follow Zipf's law over 60,000 words; the commonest are the English stop words, which our tokenizer leaves out
and a plain full-text index does not. The same seed gives the same text.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recollect.text.stopwords import ENGLISH

VOCABULARY = 60_000
_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


class Writer:
    """Writes texts of random words."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._words = np.array(_vocabulary())
        weights = 1 / (np.arange(VOCABULARY) + 2.7)
        self._cumulative = np.cumsum(weights / weights.sum())

    def words(self, count: int) -> list[str]:
        """That many words, common ones often."""
        ranks = np.searchsorted(self._cumulative, self._chance.random(count))
        return list(map(str, self._words[np.minimum(ranks, VOCABULARY - 1)]))

    def text(self, least: int = 60, most: int = 100) -> str:
        """A paragraph."""
        return " ".join(self.words(int(self._chance.integers(least, most + 1))))

    def texts(self, count: int) -> Iterator[str]:
        """That many paragraphs."""
        return (self.text() for _ in range(count))

    def note(self, paragraphs: int) -> str:
        """A Markdown note with a heading over each paragraph."""
        parts = (f"## {' '.join(self.words(3))}\n\n{self.text()}\n" for _ in range(paragraphs))
        return "\n".join(parts)

    def question(self) -> str:
        """Three to eight words."""
        return " ".join(self.words(int(self._chance.integers(3, 9))))


def _vocabulary() -> list[str]:
    chance = np.random.default_rng(0)
    words = dict.fromkeys(sorted(ENGLISH))
    while len(words) < VOCABULARY:
        syllables = chance.choice(_SYLLABLES, size=int(chance.integers(2, 5)))
        words["".join(syllables)] = None
    return list(words)
