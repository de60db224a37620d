"""Which embedder answers, and the reason in words."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import tiny_model

from memoriter.embedding import Choice, EmbedderSpec, lookup, resolve
from memoriter.errors import EmbeddingError
from memoriter.testing import FailingEmbedder, HashEmbedder


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(lookup, "BUNDLED", tmp_path / "models")
    return tmp_path / "models"


def offer(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    """Pretend that an installed package offers these embedders."""
    offered = [EntryPoint(name, value, lookup.ENTRY_POINTS) for name, value in points.items()]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: offered)


def test_none_is_keyword_search_as_set() -> None:
    assert resolve(EmbedderSpec("none")) == Choice(None, "none", "", "keyword search only, as set")


@pytest.mark.parametrize("provider", ["auto", "local"])
def test_a_named_folder_is_used(tiny_folder: Path, provider: str) -> None:
    choice = resolve(EmbedderSpec(provider, model_path=tiny_folder))
    assert (choice.provider, choice.model, choice.reason, choice.missing) == (
        "local",
        "tiny",
        f"the model in {tiny_folder}, as set",
        False,
    )
    assert choice.embedder is not None
    assert choice.embedder.embed_query("the night").any()


def test_a_missing_library_is_an_embedding_error(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    embedder = resolve(EmbedderSpec(model_path=tiny_folder)).embedder
    assert embedder is not None
    with pytest.raises(EmbeddingError, match=r"^the embedder local failed: import of onnxruntime halted"):
        embedder.embed_query("the night")


@pytest.mark.usefixtures("no_bundle")
def test_without_any_model_it_says_how_to_get_one() -> None:
    nothing = (
        "no model came with this installation; set embedding.model_path "
        "(MEMORITER_EMBEDDING__MODEL_PATH) to a folder with an ONNX model and its tokenizer.json"
    )
    assert resolve() == Choice(
        None,
        "none",
        "",
        f"keyword search only: {nothing}",
        missing=True,
        others={
            "local": nothing,
            "openai": "no key: set OPENAI_API_KEY",
            "gemini": "no key: set GEMINI_API_KEY or GOOGLE_API_KEY",
            "voyage": "no key: set VOYAGE_API_KEY",
        },
    )


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    reason = f"keyword search only: there is no model folder {tmp_path / 'gone'}"
    others = {"local": f"there is no model folder {tmp_path / 'gone'}"}
    choice = resolve(EmbedderSpec("local", model_path=tmp_path / "gone"))
    assert choice == Choice(None, "none", "", reason, missing=True, others=others)


def test_the_newest_bundled_model_is_used(no_bundle: Path) -> None:
    for version in ("2", "10", "9"):
        tiny_model.write(no_bundle / f"memoriter-embed-{version}")
        tiny_model.write_manifest(no_bundle / f"memoriter-embed-{version}", name=f"memoriter-embed-{version}")
    choice = resolve()
    assert (choice.model, choice.reason) == ("memoriter-embed-10", "the model that comes with memoriter")


def test_an_unknown_name_offers_the_nearest() -> None:
    assert (
        resolve(EmbedderSpec("locle")).reason
        == "keyword search only: there is no embedder 'locle'; did you mean 'local'?"
    )


def test_an_installed_package_can_add_one(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, hash="memoriter.testing:HashEmbedder")
    choice = resolve(EmbedderSpec("hash"))
    assert (choice.provider, choice.model, choice.reason) == ("hash", "hash", "hash, as set")


def test_an_added_one_that_fails_to_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, broken="memoriter.testing:NoSuchThing")
    choice = resolve(EmbedderSpec("broken"))
    assert (choice.embedder, choice.missing) == (None, True)
    assert choice.reason.startswith("keyword search only: the embedder 'broken' failed to start: ")


def test_an_embedder_may_be_given() -> None:
    choice = Choice.given(HashEmbedder(dims=16))
    assert (choice.provider, choice.model, choice.reason) == ("hash", "hash", "given by the caller")
    assert Choice.given(FailingEmbedder()).embedder is not None


def test_nothing_heavy_is_loaded_to_decide(tiny_folder: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from memoriter.embedding import Batched, Cached, EmbedderSpec, resolve
choice = resolve(EmbedderSpec(model_path=Path({str(tiny_folder)!r})))
assert choice.embedder is not None, choice
print([name for name in ("numpy", "onnxruntime", "tokenizers", "pydantic") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
