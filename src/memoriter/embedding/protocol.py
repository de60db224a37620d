"""What an embedder is. Everything else in this room is one, wraps one, or finds one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from memoriter.records import Identity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float32]  #: (texts, dimensions), or one vector (dimensions,)


class Embedder(Protocol):
    """Turns texts into vectors.

    Rows are finite and have length one, or are all zero where a text says nothing; row i belongs to text i;
    equal texts give equal rows. Failures are EmbeddingError. May be called from several threads at once.
    """

    @property
    def identity(self) -> Identity:
        """Whose vectors these are; known without loading a model or calling anybody."""
        ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents, (texts, dimensions)."""
        ...

    def embed_query(self, text: str) -> Matrix:
        """The vector of a query, (dimensions,); some models read queries otherwise than documents."""
        ...

    def close(self) -> None:
        """Give back threads and memory; a later call may load them again."""
        ...
