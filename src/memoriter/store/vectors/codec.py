"""Vectors as bytes and back, and what a vector must be to be kept or asked with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from memoriter.errors import StoreError

if TYPE_CHECKING:
    from memoriter.store.vectors import Rows, Vector

BLOCK = 4096  #: rows that are decoded at once


def encode(vector: Vector, dimensions: int) -> bytes:
    """A vector as it is stored: float32, little-endian."""
    values = np.asarray(vector, dtype="<f4")
    if values.shape != (dimensions,):
        raise StoreError(f"a vector of shape {values.shape} cannot be kept where {dimensions} dimensions are")
    if not np.isfinite(values).all():
        raise StoreError("a vector with NaN or infinity cannot be kept")
    return (values + np.float32(0)).tobytes()  # -0.0 becomes 0.0, so that a zero vector has one form


def decode(blob: bytes) -> Vector:
    """A stored vector."""
    return np.frombuffer(blob, dtype="<f4").astype(np.float32, copy=False)


def unit(vector: Vector, dimensions: int) -> Vector | None:
    """The vector at length 1; None when it points nowhere."""
    values = np.asarray(vector, dtype=np.float32)
    if values.shape != (dimensions,):
        raise StoreError(f"a query of shape {values.shape} cannot be compared with {dimensions} dimensions")
    length = float(np.linalg.norm(values))
    return values / np.float32(length) if np.isfinite(length) and length > 0 else None


def blocks(rows: Iterable[tuple[int, bytes]], dimensions: int) -> Iterator[tuple[int, Rows, Vector]]:
    """Rows of (rowid, blob) as (last rowid, rowids, matrix); vectors that point nowhere are left out."""
    wanted = dimensions * 4
    source = iter(rows)
    while taken := list(islice(source, BLOCK)):
        whole = [row for row in taken if len(row[1]) == wanted]
        ids = np.fromiter((row[0] for row in whole), dtype=np.int64, count=len(whole))
        matrix = np.frombuffer(b"".join(row[1] for row in whole), dtype="<f4").reshape(-1, dimensions)
        lengths = np.einsum("ij,ij->i", matrix, matrix)
        good = np.isfinite(lengths) & (lengths > 0)
        yield taken[-1][0], ids[good], matrix[good].astype(np.float32, copy=False)
