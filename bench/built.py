"""An index of a given size, filled through the store, and questions for it.

Vectors are synthetic, so that the figures do not include an embedder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from bench.corpus import Writer
from bench.vectors import Matrix, scan, synthetic
from memoriter import Memory
from memoriter.records import Chunk, Document, Identity
from memoriter.store import open_index

DIMS = 384
IDENTITY = Identity("bench", "synthetic", DIMS)
CHUNKS_PER_DOCUMENT = 20
CHUNKS_PER_TRANSACTION = 5_000


class GivenVectors:
    """An embedder that takes no time: every question has a precomputed vector."""

    identity = IDENTITY

    def __init__(self, questions: Sequence[str]) -> None:
        vectors = np.concatenate(list(synthetic(max(1, len(questions)), DIMS, seed=2)))
        self._vectors = dict(zip(questions, vectors, strict=False))
        self._default: Matrix = vectors[0]

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the same vector for all texts, since storing it costs the same."""
        return np.repeat(self._default[None], len(texts), axis=0)

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of the question."""
        vector: Matrix = self._vectors.get(text, self._default)
        return vector

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Built:
    """An index on disk, and questions for it."""

    root: Path
    size: int
    questions: tuple[str, ...]

    def open(self) -> Memory:
        """Open the memory over this index as a user does."""
        config = self.root / "config.yaml"
        config.touch()
        return Memory.open(
            self.root / "workspace",
            home=self.root / "home",
            config=config,
            overrides={"search.sync_before": False, "search.min_score": 0.0},
            embedder=GivenVectors(self.questions),
        )


def build(root: Path, size: int, *, questions: int) -> Built:
    """Fill an index with this many chunks of about 80 words, 20 per document."""
    built = _begin(root, size, questions)
    with built.open() as memory:
        folder = memory.settings.agent_folder
    with open_index(folder) as index:
        chunks, vectors = _chunks(size), _rows(size)
        for _ in range(0, size, CHUNKS_PER_TRANSACTION):
            block = list(islice(chunks, CHUNKS_PER_TRANSACTION))
            with index.transaction():
                index.save(IDENTITY, {chunk.hash: next(vectors) for chunk in block})
                for start in range(0, len(block), CHUNKS_PER_DOCUMENT):
                    part = block[start : start + CHUNKS_PER_DOCUMENT]
                    index.replace(_document(part), part, identity=IDENTITY)
        index.refresh(IDENTITY)
    return built


def build_vectors(root: Path, size: int, *, questions: int) -> Built:
    """Fill an index with vectors only, since writing the texts of a million chunks takes minutes."""
    built = _begin(root, size, questions)
    with built.open() as memory:
        folder = memory.settings.agent_folder
    scan(folder, size, IDENTITY)
    return built


def texts(size: int) -> Iterator[str]:
    """Return the texts that `build` stores."""
    return Writer(seed=1).texts(size)


def _begin(root: Path, size: int, questions: int) -> Built:
    (root / "workspace" / "memory").mkdir(parents=True)
    writer = Writer(seed=3)
    return Built(root, size, tuple(writer.question() for _ in range(questions)))


def _rows(size: int) -> Iterator[Matrix]:
    return (row for block in synthetic(size, DIMS, seed=1) for row in block)


def _chunks(size: int) -> Iterator[Chunk]:
    for number, text in enumerate(texts(size)):
        document, line = divmod(number, CHUNKS_PER_DOCUMENT)
        path = f"memory/{document % 100:02d}/{document:07d}.md"
        yield Chunk(f"{number:012d}", path, "memory", 2 * line + 1, 2 * line + 1, text)


def _document(chunks: Sequence[Chunk]) -> Document:
    return Document(chunks[0].path, "memory", "", "0" * 64, 0, sum(len(chunk.text) for chunk in chunks))
