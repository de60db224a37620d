"""Vectors that may be stored: finite, of length one or zero, of the right count and width.

Whatever computed them, vectors pass here before they are kept: one NaN in the store poisons every comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memoriter.errors import EmbeddingError

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix


def clean(matrix: object) -> Matrix:
    """Float32 rows of length one; what is not finite becomes 0, and a zero row stays zero."""
    # Float64 in between: the square of a large float32 would overflow to infinity.
    rows = np.nan_to_num(np.asarray(matrix, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    # Scaled by the largest entry first, so that the squares of huge or tiny entries stay within range too.
    peak = np.abs(rows).max(axis=-1, keepdims=True, initial=0.0)
    rows = np.divide(rows, peak, out=np.zeros_like(rows), where=peak > 0)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit: Matrix = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0).astype(np.float32)
    return unit


def validate(matrix: object, count: int, dimensions: int) -> Matrix:
    """The matrix, if it has `count` rows of `dimensions` numbers; else an EmbeddingError says what it is."""
    try:
        rows = np.asarray(matrix)
    except ValueError as error:
        raise EmbeddingError("the embedder returned vectors of different lengths") from error
    if rows.dtype.kind not in "fiu":
        raise EmbeddingError(f"the embedder returned {rows.dtype} where numbers were expected")
    if count == 0 and rows.size == 0:
        return np.zeros((0, dimensions), dtype=np.float32)
    if rows.ndim != 2:
        raise EmbeddingError(f"the embedder returned an array of shape {rows.shape}, not one vector a text")
    if rows.shape[0] != count:
        raise EmbeddingError(f"the embedder returned {rows.shape[0]} vectors for {count} texts")
    if rows.shape[1] != dimensions:
        raise EmbeddingError(
            f"the embedder returned vectors of {rows.shape[1]} dimensions, but {dimensions} were announced"
        )
    return rows.astype(np.float32, copy=False)
