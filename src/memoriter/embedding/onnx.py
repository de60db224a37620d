"""ONNX files on this machine: checked against their manifest, and opened by onnxruntime. No network is used."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from memoriter.errors import EmbedderUnavailable, first_line

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


def open_tokenizer(path: Path, max_length: int | None = None) -> Any:
    """Open a tokenizer without padding. Texts are cut to ``max_length`` tokens."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        # tokenizers raises plain Exception.
        raise EmbedderUnavailable(f"{path} is not a tokenizer: {first_line(error)}") from error
    tokenizer.no_padding()
    if max_length is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(max_length)
    return tokenizer


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


def well_formed(text: str) -> str:
    """Return the text without lone surrogates, as in a broken file. They would stop the tokenizer."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
