"""Which provider is chosen, why no other, and that no network and no client is needed to decide."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from vendors import KEY

from memoriter.embedding import EmbedderSpec, lookup, resolve

KEYS = {"openai": KEY, "gemini": KEY, "voyage": KEY}


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lookup, "BUNDLED", tmp_path / "models")


@pytest.mark.usefixtures("no_bundle")
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"openai", "gemini", "voyage"}, ("openai", "text-embedding-3-small", 1536)),
        ({"gemini", "voyage"}, ("gemini", "gemini-embedding-001", 3072)),
        ({"voyage"}, ("voyage", "voyage-4-large", 1024)),
    ],
)
def test_auto_takes_the_first_that_has_a_key(keys: set[str], expected: tuple[str, str, int]) -> None:
    choice = resolve(EmbedderSpec(keys=dict.fromkeys(keys, KEY)))
    assert choice.embedder is not None
    identity = choice.embedder.identity
    assert (identity.provider, identity.model, identity.dimensions) == expected


@pytest.mark.usefixtures("no_bundle")
def test_it_is_told_why_each_other_one_was_not_chosen() -> None:
    choice = resolve(EmbedderSpec(keys={"gemini": KEY}))
    assert choice.reason == "gemini, by GEMINI_API_KEY"
    assert choice.others == {
        "local": f"no model came with this installation; {lookup.HOW_TO_GET_A_MODEL}",
        "openai": "no key: set OPENAI_API_KEY",
        "voyage": "not needed: gemini comes first",
        "ollama": "not needed: gemini comes first",
        "llama-cpp": "not needed: gemini comes first",
    }


@pytest.mark.parametrize("provider", ["openai", "gemini", "voyage", "ollama"])
def test_a_missing_extra_says_what_to_install(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    choice = resolve(EmbedderSpec(provider, keys=KEYS))
    assert choice.others[provider] == f"its client is not installed: pip install 'memoriter[{provider}]'"
    assert choice.missing


def test_a_missing_extra_of_llama_cpp_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    choice = resolve(EmbedderSpec("llama-cpp", model_path=tmp_path / "model.gguf"))
    assert choice.reason.endswith("pip install 'memoriter[llama-cpp]'")


def test_a_named_one_that_cannot_be_used_gives_way_to_its_fallback() -> None:
    choice = resolve(EmbedderSpec("openai", keys={"voyage": KEY}, fallback="voyage"))
    assert (choice.provider, choice.instead) == ("voyage", "openai")
    assert choice.reason == "the fallback, because openai is not available: no key: set OPENAI_API_KEY"


def test_a_fallback_that_cannot_be_used_either_is_told() -> None:
    choice = resolve(EmbedderSpec("openai", fallback="voyage"))
    assert (choice.embedder, choice.reason) == (
        None,
        "keyword search only: no key: set OPENAI_API_KEY; no fallback: no key: set VOYAGE_API_KEY",
    )


def test_a_named_one_has_its_fallback_beside_it() -> None:
    choice = resolve(EmbedderSpec("openai", keys=KEYS, model="text-embedding-3-large", fallback="voyage"))
    assert choice.fallback is not None
    assert (choice.model, choice.fallback.model) == ("text-embedding-3-large", "voyage-4-large")


def test_vectors_of_an_unknown_model_must_be_told_their_width() -> None:
    spec = EmbedderSpec("openai", model="my-model", base_urls={"openai": "http://10.0.0.5/v1"})
    assert resolve(spec).reason == (
        "keyword search only: openai: the number of dimensions of 'my-model' is unknown; "
        "set embedding.dimensions"
    )


def test_what_changes_vectors_changes_the_identity() -> None:
    specs = [
        EmbedderSpec("openai", keys=KEYS),
        EmbedderSpec("openai", keys=KEYS, dimensions=512),
        EmbedderSpec("openai", keys=KEYS, model="text-embedding-3-large"),
        EmbedderSpec("openai", keys=KEYS, base_urls={"openai": "http://10.0.0.5/v1"}),
        EmbedderSpec("openai", keys=KEYS, base_urls={"openai": "http://10.0.0.6/v1"}),
        EmbedderSpec("voyage", keys=KEYS),
        EmbedderSpec("ollama"),
        EmbedderSpec("ollama", model="mxbai-embed-large"),
    ]
    identities = [choice.embedder.identity for spec in specs if (choice := resolve(spec)).embedder]
    assert len(set(identities)) == len(specs)
    assert resolve(specs[0]).embedder.identity == identities[0]  # type: ignore[union-attr]


def test_neither_a_client_nor_the_network_is_needed_to_decide() -> None:
    code = f"""
import socket, sys
def nobody(*a, **k): raise AssertionError("the network was used")
socket.getaddrinfo = socket.create_connection = nobody
from pathlib import Path
from memoriter.embedding import EmbedderSpec, resolve, lookup
lookup.BUNDLED = Path("nowhere")
for provider in ("auto", "openai", "gemini", "voyage", "ollama"):
    assert resolve(EmbedderSpec(provider, keys=dict.fromkeys(("openai", "gemini", "voyage"), {KEY!r}))).embedder
print([name for name in ("openai", "google.genai", "voyageai", "ollama", "httpx", "requests", "numpy")
       if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
