"""Keys are never shown: not in settings, logs, errors, tracebacks or status, nor on disk."""

from __future__ import annotations

import io
import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from vendors import KEY, Vendors, url

from memoriter import Memory
from memoriter.config import load
from memoriter.embedding import EmbedderSpec, resolve
from memoriter.errors import ConfigError, EmbeddingError, UntrustedConfig

OpenProvider = Callable[..., Memory]
FAULTS = ("401", "429", "500", "wrong json", "redirect", "refused")


@pytest.mark.parametrize("provider", ["openai", "gemini", "voyage"])
def test_a_key_is_not_in_the_settings_that_are_shown(provider: str, tmp_path: Path) -> None:
    name = f"{provider.upper()}_API_KEY"
    settings = load(environ={name: KEY, "MEMORITER_HOME": str(tmp_path)}, cwd=tmp_path)
    key = f"embedding.{provider}_api_key"
    shown = {setting.key: setting for setting in settings.describe()}
    assert (shown[key].value, shown[key].origin) == ("***", name)
    assert KEY not in repr(settings) + str(settings) + str(settings.describe())
    spec = EmbedderSpec(provider, keys={provider: KEY})
    assert KEY not in repr(spec) + spec.recipe(provider) + repr(resolve(spec))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_key_is_in_no_error_log_or_traceback(
    provider: str, fault: str, vendors: Vendors, caplog: pytest.LogCaptureFixture
) -> None:
    vendors.fault = fault
    spec = EmbedderSpec(
        provider, dimensions=64, base_urls={provider: url(provider)}, keys={provider: KEY}, retries=0
    )
    embedder = resolve(spec).embedder
    assert embedder is not None
    traces = io.StringIO()
    with caplog.at_level(logging.DEBUG):
        for call in (lambda: embedder.embed(["a1"]), lambda: embedder.embed_query("a1")):
            with pytest.raises(EmbeddingError) as caught:
                call()
            traceback.print_exception(caught.value, file=traces)
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None
    embedder.close()
    logged = "\n".join(
        record.getMessage() for record in caplog.records if record.name.startswith("memoriter")
    )
    assert KEY not in traces.getvalue() + logged + caplog.text


def test_a_key_is_not_in_status_or_on_disk(
    provider: str, vendors: Vendors, open_provider: OpenProvider, note: Callable[[str, str], Path]
) -> None:
    note("memory/heron.md", "The grey heron.")
    memory = open_provider(provider)
    memory.sync()
    vendors.fault = "401"
    status = memory.status(deep=True)
    assert KEY not in json.dumps(status.details, default=str) + repr(status)
    assert status.details["embedding"] != "ok"
    assert isinstance(status.details["other_embedders"], dict)
    memory.close()
    for file in memory.settings.home.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    "key", ["base_url", "openai_base_url", "ollama_base_url", "openai_api_key", "provider", "redact"]
)
def test_a_workspace_cannot_send_notes_to_another_host(key: str, tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / ".memoriter.yaml").write_text(f"embedding: {{{key}: 'https://evil.test'}}\n")
    with pytest.raises(UntrustedConfig, match=rf"embedding\.{key} in .* may not set this"):
        load(environ={"MEMORITER_HOME": str(tmp_path / "home")}, cwd=tmp_path)


@pytest.mark.parametrize(
    "address",
    [
        "ftp://host/v1", "https://user:secret@host/v1", "https://host/v1?x=1", "https://host/v1#x",
        "https://host\\\\@evil.test", "http://", "https://ho st",
    ],
)  # fmt: skip
def test_a_url_must_be_plain(address: str, tmp_path: Path) -> None:
    environ = {"MEMORITER_HOME": str(tmp_path), "MEMORITER_EMBEDDING__BASE_URL": address}
    with pytest.raises(ConfigError, match="must be a URL such as"):
        load(environ=environ, cwd=tmp_path)


@pytest.mark.parametrize("address", ["http://169.254.169.254/v1", "http://[fe80::1]/v1"])
def test_a_url_must_not_be_link_local(address: str, tmp_path: Path) -> None:
    environ = {"MEMORITER_HOME": str(tmp_path), "MEMORITER_EMBEDDING__BASE_URL": address}
    with pytest.raises(ConfigError, match="must not be a link-local address"):
        load(environ=environ, cwd=tmp_path)


@pytest.mark.requirement("E6")
def test_the_usual_variables_are_read(tmp_path: Path) -> None:
    environ = {
        "MEMORITER_HOME": str(tmp_path),
        "OLLAMA_BASE_URL": "nas:11434",
        "OPENAI_BASE_URL": "http://10.0.0.5/v1",
        "GOOGLE_API_KEY": "one",
        "GEMINI_API_KEY": "two",
    }
    chosen = load(environ=environ, cwd=tmp_path).embedding
    assert (chosen.ollama_base_url, chosen.openai_base_url) == ("http://nas:11434", "http://10.0.0.5/v1")
    assert chosen.gemini_api_key is not None
    assert chosen.gemini_api_key.get_secret_value() == "two"
