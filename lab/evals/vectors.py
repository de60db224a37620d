"""Vectors of texts, kept between runs with the CPU time that they took.

Most of an evaluation would be spent on embedding the same texts again. A run that finds a vector here adds its recorded
time to the cost of the index, so figures do not depend on what is in the cache.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import numpy as np

if TYPE_CHECKING:
    from memoriter.embedding import Embedder
    from memoriter.embedding.protocol import Matrix
    from memoriter.records import Identity

BUSY_TIMEOUT_MS = 60_000


class KeptVectors:
    """An embedder that looks texts up in a file first. Several processes may share the file."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self.embedder = embedder
        #: CPU seconds that the vectors which were looked up here took when they were computed.
        self.recorded_s = 0.0
        self._queries: dict[str, Matrix] = {}
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._database = apsw.Connection(str(folder / f"{_digest(str(embedder.identity)).hex()[:12]}.db"))
        self._database.set_busy_timeout(BUSY_TIMEOUT_MS)
        self._database.execute(
            "pragma journal_mode = wal; pragma synchronous = off;"
            "create table if not exists vectors(hash blob primary key, vector blob, cpu_s real) without rowid"
        ).fetchall()

    @property
    def identity(self) -> Identity:
        """The identity of the wrapped embedder."""
        return self.embedder.identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of documents. Calls wait for each other, so that their time can be told apart."""
        with self._lock:
            hashes = [_digest(text) for text in texts]
            known = self._load(hashes)
            missing = {
                digest: text for digest, text in zip(hashes, texts, strict=True) if digest not in known
            }
            if missing:
                known |= self._compute(missing)
            return np.stack([known[digest] for digest in hashes])

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query, computed once in this process unless it is forgotten."""
        if text not in self._queries:
            self._queries[text] = self.embedder.embed_query(text)
        return self._queries[text]

    def forget_query(self, text: str) -> None:
        """Compute this query again, because it is going to be timed."""
        self._queries.pop(text, None)

    def close(self) -> None:
        """Keep everything, because several memories share this embedder."""

    def _load(self, hashes: Sequence[bytes]) -> dict[bytes, Matrix]:
        found: dict[bytes, Matrix] = {}
        for digest in dict.fromkeys(hashes):
            row = self._database.execute(
                "select vector, cpu_s from vectors where hash = ?", (digest,)
            ).fetchone()
            if row is not None:
                found[digest] = np.frombuffer(row[0], np.float32)
                self.recorded_s += row[1]
        return found

    def _compute(self, texts: dict[bytes, str]) -> dict[bytes, Matrix]:
        start = time.process_time()
        vectors = dict(zip(texts, self.embedder.embed(list(texts.values())), strict=True))
        share = (time.process_time() - start) / max(1, sum(map(len, texts.values())))
        rows = [
            (digest, np.asarray(row, np.float32).tobytes(), share * len(texts[digest]))
            for digest, row in vectors.items()
        ]
        with self._database:
            self._database.executemany("insert or replace into vectors values(?, ?, ?)", rows)
        return vectors


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
