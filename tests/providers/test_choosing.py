"""Which provider is chosen and why, without the network or a vendor's client."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from vendors import KEY

from memoriter.embedding import EmbedderSpec, lookup, resolve
from memoriter.errors import install_command

KEYS = {"openai": KEY, "gemini": KEY, "voyage": KEY}


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lookup, "BUNDLED", tmp_path / "models")


@pytest.mark.requirement("B4")
@pytest.mark.usefixtures("no_bundle")
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"openai", "gemini", "voyage"}, ("openai", "text-embedding-3-small", 1536)),
        ({"gemini", "voyage"}, ("gemini", "gemini-embedding-001", 3072)),
        ({"voyage"}, ("voyage", "voyage-4-large", 1024)),
    ],
)
def test_auto_uses_the_first_provider_with_a_key(keys: set[str], expected: tuple[str, str, int]) -> None:
    choice = resolve(EmbedderSpec(keys=dict.fromkeys(keys, KEY)))
    assert choice.embedder is not None
    identity = choice.embedder.identity
    assert (identity.provider, identity.model, identity.dimensions) == expected


@pytest.mark.usefixtures("no_bundle")
def test_the_choice_says_why_other_providers_were_not_chosen() -> None:
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
    assert choice.others[provider] == f"its client is not installed: {install_command(provider)}"
    assert choice.missing


def test_a_missing_extra_of_llama_cpp_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    choice = resolve(EmbedderSpec("llama-cpp", model_path=tmp_path / "model.gguf"))
    assert choice.reason.endswith("pip install 'llama-cpp-python>=0.3.9'")


@pytest.mark.requirement("B4")
def test_an_unavailable_provider_is_replaced_by_its_fallback() -> None:
    choice = resolve(EmbedderSpec("openai", keys={"voyage": KEY}, fallback="voyage"))
    assert (choice.provider, choice.instead) == ("voyage", "openai")
    assert choice.reason == "the fallback, because openai is not available: no key: set OPENAI_API_KEY"


def test_an_unavailable_fallback_is_reported_too() -> None:
    choice = resolve(EmbedderSpec("openai", fallback="voyage"))
    assert (choice.embedder, choice.reason) == (
        None,
        "keyword search only: no key: set OPENAI_API_KEY; no fallback: no key: set VOYAGE_API_KEY",
    )


def test_an_available_provider_keeps_its_fallback() -> None:
    choice = resolve(EmbedderSpec("openai", keys=KEYS, model="text-embedding-3-large", fallback="voyage"))
    assert choice.fallback is not None
    assert (choice.model, choice.fallback.model) == ("text-embedding-3-large", "voyage-4-large")


@pytest.mark.parametrize("provider", ["gemini", "voyage"])
def test_an_unknown_model_of_a_service_with_known_models_needs_dimensions(provider: str) -> None:
    """Servers with models of any name, such as an OpenAI-compatible one, are asked (`test_dimensions.py`)."""
    assert resolve(EmbedderSpec(provider, keys=KEYS, model="my-model")).reason == (
        f"keyword search only: {provider}: the number of dimensions of 'my-model' is unknown; "
        "set embedding.dimensions"
    )


def test_everything_that_changes_vectors_changes_the_identity() -> None:
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


def test_the_choice_loads_no_client_and_uses_no_network() -> None:
    code = f"""
import socket, sys
def fail(*a, **k): raise AssertionError("the network was used")
socket.getaddrinfo = socket.create_connection = fail
from pathlib import Path
from memoriter.embedding import EmbedderSpec, resolve, lookup
lookup.BUNDLED = Path("nowhere")
for provider in ("auto", "openai", "gemini", "voyage", "ollama"):
    assert resolve(EmbedderSpec(provider, keys=dict.fromkeys(("openai", "gemini", "voyage"), {KEY!r}))).embedder
print([name for name in ("openai", "google.genai", "voyageai", "ollama", "httpx", "requests", "numpy")
       if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
