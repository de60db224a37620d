"""Check and normalise vectors before they are stored: one NaN in the index would spoil every comparison.

numpy is imported with the first vector, so that choosing an embedder stays fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memoriter.errors import EmbeddingError

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix

#: Plausible norms of a provider's vector. Models return about 1.
MIN_NORM, MAX_NORM = 1e-4, 1e4


def clean(matrix: object) -> Matrix:
    """Return float32 rows of length one. Non-finite numbers become 0, and a zero row stays zero."""
    import numpy as np

    # In float64, because the square of a large float32 would overflow to infinity.
    rows = np.nan_to_num(np.asarray(matrix, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    # Scaled by the largest entry first, so that the squares of huge or tiny entries stay within range too.
    peak = np.abs(rows).max(axis=-1, keepdims=True, initial=0.0)
    rows = np.divide(rows, peak, out=np.zeros_like(rows), where=peak > 0)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit: Matrix = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0).astype(np.float32)
    return unit


def validate(matrix: object, count: int, dimensions: int) -> Matrix:
    """Return the matrix if it has `count` rows of `dimensions` numbers; raise EmbeddingError otherwise."""
    import numpy as np

    try:
        rows = np.asarray(matrix)
    except ValueError as error:
        raise EmbeddingError("the embedder returned vectors of different lengths") from error
    if rows.dtype.kind not in "fiu":
        raise EmbeddingError(f"the embedder returned {rows.dtype} instead of numbers")
    if count == 0 and rows.size == 0:
        return np.zeros((0, dimensions), dtype=np.float32)
    if rows.ndim != 2:
        raise EmbeddingError(
            f"the embedder returned an array of shape {rows.shape} instead of one vector per text"
        )
    if rows.shape[0] != count:
        raise EmbeddingError(f"the embedder returned {rows.shape[0]} vectors for {count} texts")
    if rows.shape[1] != dimensions:
        raise EmbeddingError(
            f"the embedder returned vectors with {rows.shape[1]} dimensions instead of {dimensions}"
        )
    return rows.astype(np.float32, copy=False)


def validate_remote(rows: object, count: int, dimensions: int) -> Matrix:
    """Return a provider's rows if every number is finite and every vector has a plausible length.

    Unlike `clean`, this repairs nothing: a repaired vector would be stored permanently and match unrelated queries.
    """
    import numpy as np

    if not isinstance(rows, Sequence) and not hasattr(rows, "__array__"):
        raise EmbeddingError("the provider's answer contains no vectors")
    if isinstance(rows, Sequence) and len(rows) != count:
        raise EmbeddingError(f"the provider returned {len(rows)} vectors for {count} texts")
    # In float64, so that a number that overflows only in float32 is reported as it was sent.
    try:
        array = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise EmbeddingError(
            "the provider returned vectors of different lengths, or values that are not numbers"
        ) from error
    validate(array, count, dimensions)
    if not np.isfinite(array).all():
        raise EmbeddingError("the provider returned numbers that are not finite")
    norms = np.linalg.norm(array, axis=-1)
    if ((norms < MIN_NORM) | (norms > MAX_NORM)).any():
        worst = norms[np.argmax(np.abs(np.log10(norms + 1e-300)))]
        raise EmbeddingError(f"the provider returned a vector of length {worst:g}")
    return array.astype(np.float32)
