"""An embedder that somebody else wrote, held to the contract.

Whatever it raises becomes an EmbeddingError, and whatever it returns is counted, measured, cleaned and normalised
before anybody stores or compares it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memoriter.errors import EmbeddingError
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Embedder, Matrix


class Checked:
    """The same embedder, which can fail in one way only and never hands on a bad vector."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    @property
    def identity(self) -> Identity:
        """Whose vectors these are."""
        return self.embedder.identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents."""
        try:
            rows = self.embedder.embed(texts)
        except EmbeddingError:
            raise
        except Exception as error:
            raise self._told(error) from error
        return self._clean(rows, len(texts))

    def embed_query(self, text: str) -> Matrix:
        """The vector of a query."""
        try:
            row = self.embedder.embed_query(text)
        except EmbeddingError:
            raise
        except Exception as error:
            raise self._told(error) from error
        vector: Matrix = self._clean([row], 1)[0]
        return vector

    def close(self) -> None:
        """Give back what the embedder holds."""
        self.embedder.close()

    def _clean(self, rows: object, count: int) -> Matrix:
        from memoriter.embedding.vectors import clean, validate

        return clean(validate(rows, count, self.identity.dimensions))

    def _told(self, error: Exception) -> EmbeddingError:
        reason = (str(error).splitlines() or [""])[0][:300] or type(error).__name__
        return EmbeddingError(f"the embedder {self.identity.provider} failed: {reason}")
