"""An index of a given size, filled through the store, and questions for it.

Vectors are synthetic, so that the figures do not include an embedder.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from lab.bench.corpus import Writer
from lab.bench.vectors import Matrix, scan, synthetic
from lab.evals.sets import OWN
from memoriter import Memory
from memoriter.embedding import EmbedderSpec, resolve
from memoriter.records import Chunk, Document, Identity
from memoriter.search.rerank import Reading, Reranker
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


class ComputedVectors(GivenVectors):
    """The same vectors, after the bundled model has read the question. Its costs include a thread for the call."""

    def __init__(self, questions: Sequence[str]) -> None:
        super().__init__(questions)
        model = resolve(EmbedderSpec("local")).embedder
        assert model is not None
        self._model = model

    def embed_query(self, text: str) -> Matrix:
        """Compute a vector and return the one that fits the index."""
        self._model.embed_query(text)
        return super().embed_query(text)


class OrdinaryNotes:
    """The bundled reranker, reading notes of the repository's own set instead of invented words.

    Invented words split into several tokens each, so they would cost more than any note. Nothing is remembered, and the
    time budget is off.
    """

    def __init__(self) -> None:
        corpus = (OWN / "memories" / "corpus.jsonl").read_text("utf-8").splitlines()
        self._notes = [str(json.loads(line)["text"]) for line in corpus]
        self._reranker = Reranker(budget_s=math.inf, cached_pairs=0)

    def read(self, query: str, texts: Mapping[int, str]) -> Reading:
        """Read as many notes as there are candidates."""
        return self._reranker.read(query, {row: self._notes[row % len(self._notes)] for row in texts})


@dataclass(frozen=True, slots=True)
class Built:
    """An index on disk, and questions for it."""

    root: Path
    size: int
    questions: tuple[str, ...]

    def open(self, *, embeds: bool = False, reranks: bool = False) -> Memory:
        """Open the memory over this index as a user does, with or without the cost of the two models."""
        config = self.root / "config.yaml"
        config.touch()
        memory = Memory.open(
            self.root / "workspace",
            home=self.root / "home",
            config=config,
            overrides={
                "search.sync_before": False,
                "search.min_score": 0.0,
                "search.rerank": reranks,
                "embedding.background": False,  # it would remove chunks without a file
            },
            embedder=(ComputedVectors if embeds else GivenVectors)(self.questions),
        )
        if not embeds:  # the memory remembers them, so that a search does not call the embedder
            engine: Any = memory._parts.engine
            for text in self.questions:
                engine.choice.embedder.embed_query(text)
        if reranks:
            searcher: Any = memory._parts.engine.searcher  # type: ignore[attr-defined]
            searcher.reranker = OrdinaryNotes()
        return memory


def build(root: Path, size: int, *, questions: int) -> Built:
    """Fill an index with this many chunks of about 80 words, 20 per document."""
    built = _begin(root, size, questions)
    with built.open() as memory:
        folder = memory.settings.index_folder
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
        index.set_meta(last_sync="0")
    return built


def build_vectors(root: Path, size: int, *, questions: int) -> Built:
    """Fill an index with vectors only, since writing the texts of a million chunks takes minutes."""
    built = _begin(root, size, questions)
    with built.open() as memory:
        folder = memory.settings.index_folder
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
