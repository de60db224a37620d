"""ONNX files on this machine: checked against their manifest, and opened by onnxruntime. No network is used."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Protocol

from memoriter.errors import EmbedderUnavailable, EmbeddingError, first_line

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
                f"the tokenizer {path} needs the package tokenizers; run `pip install 'memoriter[tokenizers]'`"
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


def only_requested() -> Any:
    """Return options of a run that computes only what the requested outputs need."""
    import onnxruntime as ort

    options = ort.RunOptions()
    options.only_execute_path_to_fetches = True
    return options


def run(session: Any, output: str, feeds: dict[str, Any], options: Any = None) -> Any:
    """Return one output of a graph."""
    try:
        return session.run([output], feeds, options)[0]
    except Exception as error:
        # onnxruntime's own errors share no public base class.
        raise EmbeddingError(f"the model failed on a text: {first_line(error)}") from error


def well_formed(text: str) -> str:
    """Return the text without lone surrogates, as in a broken file. They would stop the tokenizer."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
