"""A model on this machine: an ONNX folder, run by onnxruntime.

Texts run one by one in parallel threads, without padded batches. For small int8 models this is faster on a CPU, because
a large batch does not fit into its caches, and it takes a third of the memory. Dynamic int8 graphs also scale by all
texts in a batch, so only a single text has a vector that depends on nothing else. This module does not use the network.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoriter.embedding import manifest, onnx
from memoriter.embedding.manifest import Model
from memoriter.errors import EmbedderUnavailable, EmbeddingError, first_line
from memoriter.records import Identity
from memoriter.text.tokens import to_simplified

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix

#: Threads by default. More slow down the agent's other programs, and small models gain little.
MAX_THREADS = 4
#: Characters per token of the model's limit. The tokenizer does not see the text beyond them.
CHARS_PER_TOKEN = 32
#: Bytes. One text of such a model uses several cores.
LARGE_GRAPH = 200 * 1024 * 1024


class LocalEmbedder:
    """An embedder from an ONNX folder. The model loads with the first text."""

    def __init__(self, folder: Path, *, threads: int = 0) -> None:
        self.model = manifest.read(folder)
        self._identity = self.model.identity
        self._threads = threads or min(MAX_THREADS, _usable_cores())
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def identity(self) -> Identity:
        """The identity, read from the folder without loading the model."""
        return self._identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of documents."""
        return self._run([self.model.doc_prefix + text if text.strip() else "" for text in texts])

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query."""
        if self.model.simplified_queries and not text.isascii():
            text = to_simplified(text)
        row: Matrix = self._run([self.model.query_prefix + text if text.strip() else ""])[0]
        return row

    def close(self) -> None:
        """Release the model's memory. The next text loads it again."""
        with self._lock:
            loaded, self._loaded = self._loaded, None
        if loaded:
            loaded.pool.shutdown(wait=True)

    def _run(self, texts: list[str]) -> Matrix:
        import numpy as np

        from memoriter.embedding.vectors import clean, validate

        rows = np.zeros((len(texts), self.model.dimensions), dtype=np.float32)
        filled = [index for index, text in enumerate(texts) if text]
        if filled:
            vectors = self._load().run([texts[index] for index in filled])
            rows[filled] = clean(validate(vectors, len(filled), self.model.dimensions))
        return rows

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = _Loaded(self.model, self._threads)
            return self._loaded


class _Loaded:
    """A loaded model: tokenizer, session and threads."""

    def __init__(self, model: Model, threads: int) -> None:
        for name, digest in model.digests.items():
            onnx.verify(model.folder / name, digest)
        self.model = model
        self.tokenizer = onnx.open_tokenizer(model.folder / model.tokenizer, model.max_length)
        graph = model.folder / model.onnx
        large = graph.stat().st_size > LARGE_GRAPH
        self.session = onnx.open_session(graph, threads if large else 1)
        self.inputs = [entry.name for entry in self.session.get_inputs()]
        self.output = _output(model, [entry.name for entry in self.session.get_outputs()])
        self.pool = ThreadPoolExecutor(1 if large else threads, thread_name_prefix="memoriter-local")

    def run(self, texts: list[str]) -> list[Matrix]:
        if len(texts) == 1:
            return [self._vector(texts[0])]
        return list(self.pool.map(self._vector, texts))

    def _vector(self, text: str) -> Matrix:
        import numpy as np

        limit = self.model.max_length * CHARS_PER_TOKEN
        tokens = self.tokenizer.encode(onnx.well_formed(text[:limit]))
        if not tokens:
            return np.zeros(self.model.dimensions, dtype=np.float32)
        ids = np.asarray([tokens], dtype=np.int64)
        feeds = {name: self._feed(name, ids) for name in self.inputs}
        try:
            output = self.session.run([self.output], feeds)[0]
        except Exception as error:
            # onnxruntime's own errors share no public base class.
            raise EmbeddingError(
                f"the model {self.model.name} failed on a text: {first_line(error)}"
            ) from error
        return _pool(output, self.model.pooling)

    def _feed(self, name: str, ids: Any) -> Any:
        import numpy as np

        match name:
            case "input_ids":
                return ids
            case "attention_mask":
                return np.ones_like(ids)
            case "token_type_ids":
                return np.zeros_like(ids)
            case "position_ids":
                return np.arange(ids.shape[1], dtype=np.int64)[None, :]
            case _:
                raise EmbeddingError(f"the model {self.model.name} needs an unknown input {name!r}")


def _pool(output: Any, pooling: str) -> Matrix:
    """Return the vector of a text. There is no padding, so the mean covers all tokens."""
    if output.ndim == 2:
        row: Matrix = output[0]
    elif pooling == "cls":
        row = output[0, 0]
    elif pooling == "last":
        row = output[0, -1]
    else:
        row = output[0].mean(axis=0)
    return row


def _output(model: Model, names: list[str]) -> str:
    if model.output is None:
        return next((name for name in ("sentence_embedding", "last_hidden_state") if name in names), names[0])
    if model.output not in names:
        raise EmbedderUnavailable(
            f"the model {model.name} has no output {model.output!r}; it has {', '.join(names)}"
        )
    return model.output


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
