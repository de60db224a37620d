"""Which embedder is chosen, and why."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import tiny_model

from memoriter import extension
from memoriter.embedding import Choice, EmbedderSpec, lookup, resolve
from memoriter.errors import EmbeddingError
from memoriter.extension import Extension, Offer
from memoriter.testing import FailingEmbedder, HashEmbedder


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(lookup, "BUNDLED", tmp_path / "models")
    return tmp_path / "models"


def hash_embedder(spec: EmbedderSpec) -> HashEmbedder:
    return HashEmbedder(dims=spec.dimensions or 8)


OFFERED = Extension(
    name="example",
    embedders={"hash": Offer(f"{__name__}:hash_embedder"), "broken": Offer(f"{__name__}:no_such_thing")},
)


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register an extension as an installed package would."""
    point = EntryPoint("example", f"{__name__}:OFFERED", extension.ENTRY_POINTS)
    monkeypatch.setattr(extension, "entry_points", lambda group: [point])
    extension.forget_installed()
    yield
    extension.forget_installed()


def test_none_means_keyword_search() -> None:
    assert resolve(EmbedderSpec("none")) == Choice(None, "none", "", "keyword search only, as configured")


@pytest.mark.parametrize("provider", ["auto", "local"])
def test_a_named_folder_is_used(tiny_folder: Path, provider: str) -> None:
    choice = resolve(EmbedderSpec(provider, model_path=tiny_folder))
    assert (choice.provider, choice.model, choice.reason, choice.missing) == (
        "local",
        "tiny",
        f"the model in {tiny_folder}, as configured",
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
def test_without_a_model_the_reason_says_how_to_get_one() -> None:
    reason = (
        "no model came with this installation; set embedding.model_path "
        "(MEMORITER_EMBEDDING__MODEL_PATH) to a folder with an ONNX model and its tokenizer.json"
    )
    assert resolve() == Choice(
        None,
        "none",
        "",
        f"keyword search only: {reason}",
        missing=True,
        others={
            "local": reason,
            "openai": "no key: set OPENAI_API_KEY",
            "gemini": "no key: set GEMINI_API_KEY or GOOGLE_API_KEY",
            "voyage": "no key: set VOYAGE_API_KEY",
        },
    )


def test_an_unusable_folder_is_reported(tmp_path: Path) -> None:
    reason = f"keyword search only: the model folder {tmp_path / 'gone'} does not exist"
    others = {"local": f"the model folder {tmp_path / 'gone'} does not exist"}
    choice = resolve(EmbedderSpec("local", model_path=tmp_path / "gone"))
    assert choice == Choice(None, "none", "", reason, missing=True, others=others)


def test_the_newest_bundled_model_is_used(no_bundle: Path) -> None:
    for version in ("2", "10", "9"):
        tiny_model.write(no_bundle / f"memoriter-embed-{version}")
        tiny_model.write_manifest(no_bundle / f"memoriter-embed-{version}", name=f"memoriter-embed-{version}")
    choice = resolve()
    assert (choice.model, choice.reason) == ("memoriter-embed-10", "the model that comes with memoriter")


def test_an_unknown_name_gets_a_suggestion() -> None:
    assert (
        resolve(EmbedderSpec("locle")).reason
        == "keyword search only: unknown embedder 'locle'. Did you mean 'local'?"
    )


def test_an_installed_package_can_add_an_embedder(offered: None) -> None:
    choice = resolve(EmbedderSpec("hash"))
    assert (choice.provider, choice.model, choice.reason) == ("hash", "hash", "hash, as configured")


def test_an_added_embedder_that_fails_to_start_is_reported(offered: None) -> None:
    choice = resolve(EmbedderSpec("broken"))
    assert (choice.embedder, choice.missing) == (None, True)
    assert choice.reason.startswith("keyword search only: the embedder 'broken' failed to start: ")


def test_the_caller_may_pass_an_embedder() -> None:
    choice = Choice.of_embedder(HashEmbedder(dims=16))
    assert (choice.provider, choice.model, choice.reason) == ("hash", "hash", "passed by the caller")
    assert Choice.of_embedder(FailingEmbedder()).embedder is not None


def test_the_choice_loads_nothing_heavy(tiny_folder: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from memoriter.embedding import Batched, Cached, EmbedderSpec, resolve
choice = resolve(EmbedderSpec(model_path=Path({str(tiny_folder)!r})))
assert choice.embedder is not None, choice
print([name for name in ("numpy", "onnxruntime", "tokenizers", "pydantic") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
