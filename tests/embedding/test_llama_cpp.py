"""GGUF files: what is read from their headers, and how llama.cpp is called. `make integration` runs real weights."""

from __future__ import annotations

import struct
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoriter.embedding import EmbedderSpec, resolve
from memoriter.errors import EmbedderUnavailable
from memoriter.extensions.llama_cpp.gguf import LlamaCpp, read_header

DIMS = 8


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def head(**more: object) -> bytes:
    """The header of a GGUF file with some keys, one of them an array."""
    keys: dict[str, object] = {
        "general.architecture": "gemma",
        "tokenizer.ggml.tokens": ["a", "b"],
        "gemma.embedding_length": DIMS,
        "gemma.context_length": 64,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    entries = b""
    for key, value in keys.items():
        entries += text(key)
        if isinstance(value, str):
            entries += struct.pack("<I", 8) + text(value)
        elif isinstance(value, int):
            entries += struct.pack("<II", 4, value)
        elif isinstance(value, Sequence):
            entries += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(text(item) for item in value)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + entries


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "embeddinggemma-300M-Q8_0.gguf"
    path.write_bytes(head() + b"weights")
    return path


class Llama:
    """A stand-in for `llama_cpp.Llama`."""

    made: dict[str, Any]
    seen: list[str]

    def __init__(self, **settings: Any) -> None:
        Llama.made, Llama.seen = settings, []

    def embed(self, words: str) -> list[float]:
        Llama.seen.append(words)
        return [float(len(words) % 7 + i) for i in range(DIMS)]


@pytest.fixture
def llama(monkeypatch: pytest.MonkeyPatch) -> type[Llama]:
    module = types.ModuleType("llama_cpp")
    module.Llama = Llama  # type: ignore[attr-defined]
    module.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "llama_cpp", module)
    return Llama


def test_a_header_is_read_without_loading_the_model(model: Path) -> None:
    assert read_header(model) == {
        "general.architecture": "gemma",
        "gemma.embedding_length": DIMS,
        "gemma.context_length": 64,
    }


@pytest.mark.parametrize("data", [b"", b"GGUF", b"ONNX" + bytes(40), head()[:60], b"GGUF" + b"\xff" * 40])
def test_a_file_that_is_not_gguf_is_reported(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.gguf").write_bytes(data)
    with pytest.raises(EmbedderUnavailable, match="is not a GGUF model"):
        read_header(tmp_path / "model.gguf")


def test_a_missing_file_is_reported(tmp_path: Path, llama: type[Llama]) -> None:
    reason = resolve(EmbedderSpec("llama-cpp", model_path=tmp_path / "gone.gguf")).reason
    assert reason.endswith("gone.gguf cannot be read: No such file or directory")
    assert resolve(EmbedderSpec("llama-cpp")).reason.endswith(
        "no model: set embedding.model_path to a GGUF file"
    )


def test_queries_and_documents_have_the_prompts_of_the_model(model: Path, llama: type[Llama]) -> None:
    embedder = LlamaCpp(model, threads=3)
    rows = embedder.embed(["the heron", " ", "the otter"])
    query = embedder.embed_query("heron")
    assert llama.seen == [
        "title: none | text: the heron",
        "title: none | text: the otter",
        "task: search result | query: heron",
    ]
    np.testing.assert_allclose(np.linalg.norm([*rows, query], axis=1), [1, 0, 1, 1], atol=1e-6)
    made = {"n_ctx": 64, "n_threads": 3, "pooling_type": 1, "embedding": True, "verbose": False}
    assert made.items() <= llama.made.items()


@pytest.mark.requirement("B4")
def test_auto_uses_a_configured_gguf_file(model: Path, llama: type[Llama]) -> None:
    choice = resolve(EmbedderSpec(model_path=model))
    assert (choice.provider, choice.model) == ("llama-cpp", "embeddinggemma-300M-Q8_0")
    assert choice.embedder is not None
    assert choice.embedder.identity.dimensions == DIMS


def test_other_weights_have_another_identity(model: Path, llama: type[Llama]) -> None:
    before = LlamaCpp(model).identity
    model.write_bytes(head() + b"WEIGHTS")
    assert LlamaCpp(model).identity != before


def test_a_text_that_is_too_long_for_llama_cpp_is_halved(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    class Server:
        def __init__(self, _: object) -> None:
            pass

        def handle_embeddings(self, asked: dict[str, list[str]]) -> dict[str, Any]:
            (words,) = asked["input"]
            seen.append(len(words))
            if len(words) > 150:
                return {"error": {"code": 500, "message": "input (99 tokens) is too large to process"}}
            return {"data": [{"embedding": [1.0] * DIMS}]}

    module = types.ModuleType("xllamacpp")
    module.Server = Server  # type: ignore[attr-defined]
    module.CommonParams = lambda: types.SimpleNamespace(  # type: ignore[attr-defined]
        model=types.SimpleNamespace(), cpuparams=types.SimpleNamespace()
    )
    module.llama_pooling_type = int  # type: ignore[attr-defined]
    module.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    assert LlamaCpp(model).embed(["word " * 200]).any()
    assert len(seen) > 1
    assert seen[-1] <= 150
