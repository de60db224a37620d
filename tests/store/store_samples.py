"""Documents, chunks and vectors for the tests of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from memoriter.records import Chunk, Document, Identity, Source
from memoriter.store import Filter, Index
from memoriter.store.checksums import page_vfs
from memoriter.text import tokenize

ALICE = Identity("local", "alice", 8, "k" * 64)
ANYWHERE = Filter()
OpenIndex = Callable[..., Index]


def document(path: str, *texts: str, source: Source = "memory") -> tuple[Document, list[Chunk]]:
    """Return a document with one chunk for each text."""
    body = "\n".join(texts)
    digest = hashlib.sha256(body.encode()).hexdigest()
    chunks = [
        Chunk(f"{path}-{number}", path, source, number, number, text)
        for number, text in enumerate(texts, start=1)
    ]
    return Document(path, source, body, digest, mtime_ns=17, size=len(body.encode())), chunks


def put(
    index: Index, path: str, *texts: str, source: Source = "memory", identity: Identity | None = None
) -> None:
    """Index a document with one chunk for each text."""
    index.replace(*document(path, *texts, source=source), identity=identity)


def unit(*values: float) -> Any:
    """Return a vector of length 1."""
    array = np.array(values, dtype=np.float32)
    return array / np.linalg.norm(array)


def units(count: int, dims: int, seed: int = 0) -> Any:
    """Return random vectors of length 1."""
    array = np.random.default_rng(seed).normal(size=(count, dims)).astype(np.float32)
    return array / np.linalg.norm(array, axis=1, keepdims=True)


def put_vector(
    index: Index, path: str, vector: Any, identity: Identity, *, source: Source = "memory"
) -> None:
    """Index a document with one chunk that has this vector."""
    text = f"{path} {hashlib.sha256(np.asarray(vector).tobytes()).hexdigest()}"
    found, chunks = document(path, text, source=source)
    index.save(identity, {chunks[0].hash: vector})
    index.replace(found, chunks, identity=identity)


def paths(index: Index, hits: list[tuple[int, float]]) -> list[str]:
    """Return the paths of the hits in order."""
    stored = index.chunks([rowid for rowid, _ in hits])
    return [stored[rowid].chunk.path for rowid, _ in hits]


def found(index: Index, *terms: str, where: Filter = ANYWHERE) -> list[str]:
    """Return the texts that the keyword search finds, best first."""
    tokens = [token for term in terms for token in tokenize(term) or [term]]
    rows = [match.rowid for match in index.keyword(tokens, limit=10, where=where)]
    stored = index.chunks(rows)
    return [stored[row].chunk.text for row in rows]


@contextmanager
def by_hand(path: Path) -> Iterator[apsw.Connection]:
    """Return a plain connection, for changes that the package never makes."""
    connection = apsw.Connection(str(path), vfs=page_vfs())
    try:
        yield connection
    finally:
        connection.close()
