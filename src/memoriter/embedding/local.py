"""A model on this machine: an ONNX folder, run by onnxruntime.

Texts run one by one in parallel threads, without padded batches. For small int8 models this is faster on a CPU, because
a large batch does not fit into its caches, and it takes a third of the memory. Dynamic int8 graphs also scale by all
texts in a batch, so only a single text has a vector that depends on nothing else. This module does not use the network.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from memoriter.embedding import manifest
from memoriter.embedding.manifest import Model
from memoriter.errors import EmbedderUnavailable, EmbeddingError, first_line, install_command
from memoriter.records import Identity
from memoriter.text.tokens import to_simplified

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix

#: Path, size and mtime_ns of files whose digest was correct.
_verified: set[tuple[str, int, int]] = set()


def verify(path: Path, digest: str) -> None:
    """Compare a file with its manifest, once per process unless the file changes."""
    try:
        stat = path.stat()
        stamp = (str(path), stat.st_size, stat.st_mtime_ns)
        if stamp in _verified:
            return
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EmbedderUnavailable(f"the model file {path} cannot be read: {error.strerror}") from error
    if found != digest:
        raise EmbedderUnavailable(
            f"the model file {path} does not match its manifest.json "
            f"(sha256 {found[:12]}…, expected {digest[:12]}…); copy the folder again"
        )
    _verified.add(stamp)


class Tokenizer(Protocol):
    """Turns texts into the numbers of tokens, without padding."""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text between those that mark its start and end, cut to the maximum length."""

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text alone."""

    def id_of(self, token: str) -> int | None:
        """Return the number of a token."""


def open_tokenizer(path: Path, max_length: int | None = None) -> Tokenizer:
    """Open a tokenizer. Texts are cut to ``max_length`` tokens. BERT's WordPiece needs no other package."""
    from memoriter.embedding.wordpiece import Unsupported, WordPiece

    try:
        return WordPiece(json.loads(path.read_text("utf-8")), max_length)
    except (Unsupported, LookupError, TypeError):
        return _PackageTokenizer(path, max_length)
    except (OSError, ValueError, RecursionError) as error:
        raise EmbedderUnavailable(f"{path} is not a tokenizer: {first_line(error)}") from error


class _PackageTokenizer:
    """A tokenizer of any kind, through the package `tokenizers`."""

    def __init__(self, path: Path, max_length: int | None) -> None:
        try:
            import tokenizers
        except ImportError:
            raise EmbedderUnavailable(
                f"the tokenizer {path} needs the package tokenizers; run `{install_command('tokenizers')}`"
            ) from None
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:
            # tokenizers raises plain Exception.
            raise EmbedderUnavailable(f"{path} is not a tokenizer: {first_line(error)}") from error
        self._tokenizer.no_padding()
        if max_length is None:
            self._tokenizer.no_truncation()
        else:
            self._tokenizer.enable_truncation(max_length)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def id_of(self, token: str) -> int | None:
        found: int | None = self._tokenizer.token_to_id(token)
        return found


def open_session(path: Path, threads: int = 1) -> Any:
    """Open a graph on the CPU."""
    # Before the import, which may already send telemetry.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime as ort

    ort.disable_telemetry_events()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Waiting threads sleep instead of spinning, to leave the cores to the agent.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # onnxruntime's own errors share no public base class.
        raise EmbedderUnavailable(f"{path} cannot be loaded: {first_line(error)}") from error


def run(session: Any, output: str, feeds: dict[str, Any], name: str = "") -> Any:
    """Return one output of a graph."""
    try:
        return session.run([output], feeds)[0]
    except Exception as error:
        # onnxruntime's own errors share no public base class.
        model = f"the model {name}".rstrip()
        raise EmbeddingError(f"{model} failed on a text: {first_line(error)}") from error


def well_formed(text: str) -> str:
    """Return the text without lone surrogates, as in a broken file. They would stop the tokenizer."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


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
            # A person who interrupts a command does not wait for the texts that have not begun.
            loaded.pool.shutdown(cancel_futures=isinstance(sys.exception(), KeyboardInterrupt))

    def _run(self, texts: list[str]) -> Matrix:
        import numpy as np

        from memoriter.embedding.guarded import clean, validate

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
            verify(model.folder / name, digest)
        self.model = model
        self.tokenizer = open_tokenizer(model.folder / model.tokenizer, model.max_length)
        graph = model.folder / model.onnx
        large = graph.stat().st_size > LARGE_GRAPH
        self.session = open_session(graph, threads if large else 1)
        self.inputs = [entry.name for entry in self.session.get_inputs()]
        self.output = _output(model, [entry.name for entry in self.session.get_outputs()])
        self.pool = ThreadPoolExecutor(1 if large else threads, thread_name_prefix="memoriter-local")

    def run(self, texts: list[str]) -> list[Matrix]:
        if len(texts) == 1:
            return [self._vector(texts[0])]
        try:
            return list(self.pool.map(self._vector, texts))
        except RuntimeError as error:  # closed before all texts were in the queue
            raise CancelledError from error

    def _vector(self, text: str) -> Matrix:
        import numpy as np

        limit = self.model.max_length * CHARS_PER_TOKEN
        tokens = self.tokenizer.encode(well_formed(text[:limit]))
        if not tokens:
            return np.zeros(self.model.dimensions, dtype=np.float32)
        ids = np.asarray([tokens], dtype=np.int64)
        feeds = {name: self._feed(name, ids) for name in self.inputs}
        return _pool(run(self.session, self.output, feeds, self.model.name), self.model.pooling)

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
