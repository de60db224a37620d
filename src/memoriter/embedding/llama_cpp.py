"""A GGUF model on this machine, run by llama.cpp.

Two packages bring llama.cpp to Python: `llama-cpp-python`, which is the extra, and `xllamacpp`, which has wheels for
most machines; whichever is installed is used. Nothing here reaches the network.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from memoriter.embedding import gguf
from memoriter.embedding.manifest import sample
from memoriter.embedding.prompts import prompts_for
from memoriter.embedding.remote import client_library, digest, installed, missing_extra, shortened
from memoriter.errors import EmbedderUnavailable, EmbeddingError
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix

    Runner: TypeAlias = Callable[[str], Any]

MOST_CONTEXT = 2048  #: tokens; chunks are far shorter, and memory grows with it
MEAN = 1  #: llama.cpp's number for the mean of all tokens, where the file names no pooling


class LlamaCpp:
    """Vectors from a GGUF file. The model loads with the first text, once, whichever thread brings it."""

    def __init__(self, path: Path, *, threads: int = 0) -> None:
        if not installed("llama_cpp") and not installed("xllamacpp"):
            raise EmbedderUnavailable(missing_extra("llama-cpp"))
        head = gguf.read(path)
        family = head.get("general.architecture", "")
        width = head.get(f"{family}.embedding_length")
        if not isinstance(width, int):
            raise EmbedderUnavailable(f"{path} does not tell how many dimensions its vectors have")
        self.path = path
        self._prompts = prompts_for(path.stem)
        self._context = min(int(head.get(f"{family}.context_length", MOST_CONTEXT)), MOST_CONTEXT)
        self._pooling = None if f"{family}.pooling_type" in head else MEAN
        self._threads = threads
        key = digest(weights=sample(path), prompts=list(self._prompts), pooling=self._pooling)
        self._identity = Identity("llama-cpp", path.stem, width, key)
        self._lock = threading.Lock()
        self._runner: Runner | None = None

    @property
    def identity(self) -> Identity:
        """Whose vectors these are, from the file alone."""
        return self._identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents."""
        return self._run(texts, self._prompts.document)

    def embed_query(self, text: str) -> Matrix:
        """The vector of a query."""
        row: Matrix = self._run([text], self._prompts.query)[0]
        return row

    def close(self) -> None:
        """Give back the model's memory; the next text loads it again."""
        with self._lock:
            self._runner = None

    def _run(self, texts: Sequence[str], prefix: str) -> Matrix:
        import numpy as np

        from memoriter.embedding.vectors import clean, validate

        rows = np.zeros((len(texts), self._identity.dimensions), dtype=np.float32)
        # A context of llama.cpp serves one caller at a time.
        with self._lock:
            self._runner = self._runner or self._load()
            for row, text in zip(rows, texts, strict=True):
                if text.strip():
                    vector = self._vector(
                        self._runner, prefix, text.encode("utf-8", "replace").decode("utf-8")
                    )
                    row[:] = clean(validate([vector], 1, len(row)))[0]
        return rows

    def _vector(self, run: Runner, prefix: str, text: str) -> Any:
        """The text's vector; what is too long by the model's own count is halved until it fits."""
        text = shortened(text, int(self._context * 0.9))
        while True:
            try:
                return run(prefix + text)
            except _TooLong:
                if len(text) < 16:
                    raise
                text = text[: len(text) // 2]

    def _load(self) -> Runner:
        try:
            return self._from_llama_cpp() if installed("llama_cpp") else self._from_xllamacpp()
        except (RuntimeError, ValueError, OSError, ImportError) as error:
            raise EmbedderUnavailable(f"{self.path} cannot be loaded: {error}") from error

    def _from_llama_cpp(self) -> Runner:
        llama_cpp = client_library("llama_cpp", "llama-cpp")
        model = llama_cpp.Llama(
            model_path=str(self.path),
            embedding=True,
            n_ctx=self._context,
            n_batch=self._context,
            n_ubatch=self._context,
            n_threads=self._threads or None,
            pooling_type=self._pooling if self._pooling is not None else -1,
            verbose=False,
        )
        run: Runner = model.embed  # cuts what is longer than n_batch by itself
        return run

    def _from_xllamacpp(self) -> Runner:
        xllamacpp = client_library("xllamacpp", "llama-cpp")
        settings = xllamacpp.CommonParams()
        settings.model.path = str(self.path)
        settings.embedding = True
        settings.warmup = False
        settings.verbosity = 0
        settings.n_parallel = 1
        settings.n_ctx = settings.n_batch = settings.n_ubatch = self._context
        if self._threads:
            settings.cpuparams.n_threads = self._threads
        if self._pooling is not None:
            settings.pooling_type = xllamacpp.llama_pooling_type(self._pooling)
        # It also listens on a port of this machine, which nobody else is to use.
        settings.api_keys = [secrets.token_urlsafe(32)]
        server = xllamacpp.Server(settings)
        return lambda text: _answer(server.handle_embeddings({"input": [text]}))


class _TooLong(EmbeddingError):
    """The text has more tokens than the context."""


def _answer(answer: Any) -> Any:
    if "error" in answer:
        message = str(answer["error"].get("message", answer["error"]))[:200]
        raise (_TooLong if "too large" in message else EmbeddingError)(
            f"llama.cpp failed on a text: {message}"
        )
    return answer["data"][0]["embedding"]
