"""The vector leg: which chunks mean what the query means.

It never fails: without an embedder, without vectors, or when the embedder errs, it is empty and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recollect import logs
from recollect.errors import EmbeddingError
from recollect.store import Filter, Index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.embedding import Embedder

log = logs.get("retrieval")


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """What the vector leg found: cosines by chunk row, and what it went without."""

    values: Mapping[int, float] = field(default_factory=dict)  #: rowid → cosine, 0–1
    query: NDArray[np.float32] | None = None
    degraded: str | None = None


def vector_leg(index: Index, embedder: Embedder | None, text: str, *, limit: int, where: Filter) -> VectorLeg:
    """Find the chunks whose vectors are nearest to the query's."""
    if embedder is None or not text.strip():
        return VectorLeg()
    try:
        query = embedder.embed_query(text)
    except EmbeddingError as error:
        log.warning("the query could not be embedded, keywords answer alone: %s", error)
        return VectorLeg(degraded=f"Keyword search only: {error}")
    if not query.any():
        return VectorLeg()
    near = index.nearest(query, embedder.identity, limit=limit, where=where)
    return VectorLeg({rowid: max(0.0, cosine) for rowid, cosine in near}, query)


def complete(
    leg: VectorLeg, index: Index, embedder: Embedder | None, rowids: Iterable[int]
) -> Mapping[int, float]:
    """The leg's cosines, with those of further rows: chunks that only the keyword leg proposed, or neighbours.

    Without them a keyword hit just outside the nearest would count as having nothing to do with the query.
    """
    missing = set(rowids) - leg.values.keys()
    if leg.query is None or embedder is None or not missing:
        return leg.values
    return {**leg.values, **index.nearness(missing, leg.query, embedder.identity)}
