"""Rerankers on a real llama.cpp: a GGUF file in this process, and its server with the `/rerank` interface."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from brought_rerankers import OpenWith, opener

from memoriter import Memory

pytestmark = pytest.mark.integration


@pytest.fixture
def open_with(workspace: Path, open_memory: Callable[..., Memory]) -> OpenWith:
    """A function that opens the memory with a reranker and its settings."""
    return opener(workspace, open_memory)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("xllamacpp", "gguf", "onnx"):
        pytest.importorskip(package, reason=f"pip install {package}")
    import gguf_reranker

    path = tmp_path_factory.mktemp("gguf") / "cross-encoder.gguf"
    gguf_reranker.write(path)
    return path


def check(memory: Memory) -> None:
    for query, part in (("What is the neighbour's cat called?", "Minka"), ("备用钥匙在哪里？", "蓝色盒子")):
        found = memory.search(query, max_results=3)
        assert found.degraded is None
        assert part in found.hits[0].snippet
        read = {
            hit.snippet: part for hit in found.hits for part in hit.explain.parts if part.name == "rerank"
        }
        assert max(read, key=lambda snippet: read[snippet].value) == found.hits[0].snippet


def test_a_gguf_file_reads_the_texts(open_with: OpenWith, model: Path) -> None:
    settings = {"path": str(model), "timeout_s": 60}
    check(open_with("gguf", settings))


def test_the_server_of_llama_cpp_reads_the_texts(open_with: OpenWith, model: Path) -> None:
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path = str(model)
    options.embedding = True
    options.warmup = False
    options.n_parallel = 1
    options.n_ctx = options.n_batch = options.n_ubatch = 512
    options.pooling_type = xllamacpp.llama_pooling_type(4)
    options.api_keys = ["a key of the test"]
    server = xllamacpp.Server(options)
    settings = {"url": f"{server.listening_address}/v1", "api_key": "a key of the test", "timeout_s": 60}
    check(open_with("server", settings))
    wrong = {**settings, "api_key": "another key"}
    refused = open_with("server", wrong)
    assert "rejected the key" in (refused.search("cat").degraded or "")
