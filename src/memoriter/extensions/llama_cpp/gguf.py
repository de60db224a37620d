"""A GGUF model on this machine, run by llama.cpp.

The packages `llama-cpp-python`, which is the extra, and `xllamacpp`, which has wheels for most machines, both
work. This module does not use the network.
"""

from __future__ import annotations

import secrets
import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from memoriter.embedding.manifest import sample
from memoriter.errors import EmbedderUnavailable, EmbeddingError, reason_of
from memoriter.extensions.vendors.embedder import client_library, digest, is_installed, missing_extra, shorten
from memoriter.extensions.vendors.prompts import prompts_for
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.protocol import EmbedderSpec, Matrix

    Runner: TypeAlias = Callable[[str], Any]

#: Tokens. Chunks are far shorter, and memory grows with the context.
MAX_CONTEXT = 2048
#: llama.cpp's number for mean pooling, for files that name no pooling.
MEAN_POOLING = 1

MAX_GGUF_KEYS = 10_000
#: Bytes of one string in a GGUF header.
MAX_GGUF_TEXT = 16 * 1024 * 1024
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9


def open_gguf(spec: EmbedderSpec) -> LlamaCpp:
    """Return the embedder of the GGUF file that the settings name."""
    if spec.model_path is None:
        raise EmbedderUnavailable("no model: set embedding.model_path to a GGUF file")
    return LlamaCpp(spec.model_path, threads=spec.threads)


class LlamaCpp:
    """An embedder from a GGUF file. The model loads with the first text."""

    def __init__(self, path: Path, *, threads: int = 0) -> None:
        if not is_installed("llama_cpp") and not is_installed("xllamacpp"):
            raise EmbedderUnavailable(missing_extra("llama-cpp"))
        head = read_header(path)
        family = head.get("general.architecture", "")
        dimensions = head.get(f"{family}.embedding_length")
        if not isinstance(dimensions, int):
            raise EmbedderUnavailable(f"{path} does not say how many dimensions its vectors have")
        self.path = path
        self._prompts = prompts_for(path.stem)
        self._context = min(int(head.get(f"{family}.context_length", MAX_CONTEXT)), MAX_CONTEXT)
        self._pooling = None if f"{family}.pooling_type" in head else MEAN_POOLING
        self._threads = threads
        key = digest(weights=sample(path), prompts=list(self._prompts), pooling=self._pooling)
        self._identity = Identity("llama-cpp", path.stem, dimensions, key)
        self._lock = threading.Lock()
        self._runner: Runner | None = None

    @property
    def identity(self) -> Identity:
        """The identity, read from the file without loading the model."""
        return self._identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        return self._run(texts, self._prompts.document)

    def embed_query(self, text: str) -> Matrix:
        row: Matrix = self._run([text], self._prompts.query)[0]
        return row

    def close(self) -> None:
        """Release the model's memory. The next text loads it again."""
        with self._lock:
            self._runner = None

    def _run(self, texts: Sequence[str], prefix: str) -> Matrix:
        import numpy as np

        from memoriter.embedding.guarded import clean, validate

        rows = np.zeros((len(texts), self._identity.dimensions), dtype=np.float32)
        # A context of llama.cpp is not thread-safe.
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
        """Return the vector of a text. A text with too many tokens is halved until it fits."""
        text = shorten(text, int(self._context * 0.9))
        while True:
            try:
                return run(prefix + text)
            except _TooLong:
                if len(text) < 16:
                    raise
                text = text[: len(text) // 2]

    def _load(self) -> Runner:
        try:
            return self._from_llama_cpp() if is_installed("llama_cpp") else self._from_xllamacpp()
        except (RuntimeError, ValueError, OSError, ImportError) as error:
            raise EmbedderUnavailable(f"{self.path} cannot be loaded: {reason_of(error)}") from error

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
        run: Runner = model.embed  # cuts texts that are longer than n_batch
        return run

    def _from_xllamacpp(self) -> Runner:
        server = open_xllamacpp(self.path, self._context, self._pooling, self._threads)
        return lambda text: answer_of(server.handle_embeddings({"input": [text]}))["data"][0]["embedding"]


def open_xllamacpp(
    path: Path, context: int, pooling: int | None, threads: int = 0, *, extra: str = "llama-cpp"
) -> Any:
    """Return llama.cpp's server in this process, which computes vectors or scores with the model of a file."""
    xllamacpp = client_library("xllamacpp", extra)
    settings = xllamacpp.CommonParams()
    settings.model.path = str(path)
    settings.embedding = True
    settings.warmup = False
    settings.verbosity = 0
    settings.n_parallel = 1
    settings.n_ctx = settings.n_batch = settings.n_ubatch = context
    if threads:
        settings.cpuparams.n_threads = threads
    if pooling is not None:
        settings.pooling_type = xllamacpp.llama_pooling_type(pooling)
    # It also listens on a local port, which no other program may use.
    settings.api_keys = [secrets.token_urlsafe(32)]
    try:
        return xllamacpp.Server(settings)
    except (RuntimeError, ValueError, OSError) as error:
        raise EmbedderUnavailable(f"{path} cannot be loaded: {reason_of(error)}") from error


class _TooLong(EmbeddingError):
    """The text has more tokens than the context."""


def answer_of(answer: Any) -> Any:
    """Return an answer of llama.cpp, or raise what it says about the failure."""
    if "error" in answer:
        message = str(answer["error"].get("message", answer["error"]))[:200]
        raise (_TooLong if "too large" in message else EmbeddingError)(
            f"llama.cpp failed on a text: {message}"
        )
    return answer


def read_header(path: Path) -> dict[str, Any]:
    """Return the values of a GGUF header by key, such as "general.name", without arrays. Does not load the model."""
    try:
        with path.open("rb") as file:
            return _header(file)
    except OSError as error:
        raise EmbedderUnavailable(f"the model file {path} cannot be read: {error.strerror}") from error
    except (struct.error, ValueError, KeyError) as error:
        raise EmbedderUnavailable(f"{path} is not a GGUF model: {error}") from error


def _header(file: BinaryIO) -> dict[str, Any]:
    if file.read(4) != b"GGUF":
        raise ValueError("it does not start with GGUF")
    version, _tensors, count = _unpack(file, "<IQQ")
    if version not in (2, 3) or count > MAX_GGUF_KEYS:
        raise ValueError(f"version {version} with {count} keys")
    found = {}
    for _ in range(count):
        key, kind = _text(file), _unpack(file, "<I")[0]
        value = _value(file, kind)
        if value is not None:
            found[key] = value
    return found


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _text(file)
    if kind == _ARRAY:
        inner, length = _unpack(file, "<IQ")
        _skip(file, inner, length)
        return None
    return _unpack(file, "<" + _NUMBERS[kind])[0]


def _skip(file: BinaryIO, kind: int, length: int) -> None:
    if kind in _NUMBERS:
        file.seek(length * struct.calcsize("<" + _NUMBERS[kind]), 1)
        return
    for _ in range(length):
        _value(file, kind)


def _text(file: BinaryIO) -> str:
    (length,) = _unpack(file, "<Q")
    if length > MAX_GGUF_TEXT:
        raise ValueError("a text in its header is too long")
    return file.read(length).decode("utf-8", "replace")


def _unpack(file: BinaryIO, form: str) -> tuple[Any, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))
