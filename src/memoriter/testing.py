"""Helpers for tests, of this package and of yours.

`HashEmbedder` is an embedder without a model, `FailingEmbedder` one that fails on purpose, `ScriptedChat` a language
model with fixed answers, and `sample_workspace` writes a small bilingual workspace.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.errors import ChatError, EmbeddingError
from memoriter.llm.chat import Reply, Schema
from memoriter.records import Identity
from memoriter.text import tokenize

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix


class HashEmbedder:
    """An embedder without a model: each token has its own direction.

    Texts with common words are similar, and others are nearly orthogonal. The embedder counts its texts, so that a test
    can check what was not embedded again.
    """

    def __init__(self, dims: int = 64) -> None:
        self._identity = Identity("hash", "hash", dims)
        self._lock = threading.Lock()
        #: Documents embedded so far.
        self.texts = 0
        self.queries = 0

    @property
    def identity(self) -> Identity:
        """The identity of the vectors."""
        return self._identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of documents."""
        with self._lock:
            self.texts += len(texts)
        return self._vectors(texts)

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query."""
        with self._lock:
            self.queries += 1
        vector: Matrix = self._vectors([text])[0]
        return vector

    def close(self) -> None:
        """Do nothing."""

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        from memoriter.embedding.guarded import clean

        rows = np.zeros((len(texts), self._identity.dimensions), dtype=np.float64)
        for row, text in zip(rows, texts, strict=True):
            for token in set(tokenize(text)):
                digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                place = int.from_bytes(digest, "big")
                # Two dimensions per token, each with a sign: fewer accidental similarities than with one.
                row[place % len(row)] += 1 if place & 1 << 62 else -1
                row[(place >> 24) % len(row)] += 1 if place & 1 << 61 else -1
        return clean(rows)


class FailingEmbedder(HashEmbedder):
    """An embedder that works for its first `after` calls and then fails, until `heal` is called."""

    def __init__(self, after: int = 0, dims: int = 64, message: str = "the embedder is out of order") -> None:
        super().__init__(dims)
        self._left: float = after
        self._message = message

    def heal(self) -> None:
        """Stop failing."""
        self._left = float("inf")

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        with self._lock:
            self._left -= 1
            if self._left < 0:
                raise EmbeddingError(self._message)
        return super()._vectors(texts)


class ScriptedChat:
    """A language model that gives fixed answers in turn. An answer that is an error is raised."""

    name = "scripted/chat"

    def __init__(self, *answers: str | ChatError) -> None:
        self._answers = list(answers)
        #: The prompts so far.
        self.asked: list[str] = []

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:  # noqa: ARG002
        """Return the next answer."""
        self.asked.append(f"{system}\n\n{user}")
        answer = self._answers.pop(0) if self._answers else ChatError("the script has no more answers")
        if isinstance(answer, ChatError):
            raise answer
        return Reply(answer, len(user) // 4, min(max_tokens, len(answer) // 4))

    def close(self) -> None:
        """Do nothing."""


def sample_workspace(folder: Path) -> Path:
    """Write a small workspace in English and Chinese into the folder, and return the folder."""
    sample = Path(__file__).with_name("sample_workspace")
    for note in sample.rglob("*.md"):
        path = folder / note.relative_to(sample)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(note.read_bytes())
    return folder
