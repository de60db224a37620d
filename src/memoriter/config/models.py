"""The settings of models: the embedder and the language model, with their addresses, keys and limits."""

from __future__ import annotations

import ipaddress
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from memoriter.config.fields import Duration, Number, Section, Whole, did_you_mean, nearest

PROVIDERS = ("auto", "local", "openai", "gemini", "voyage", "ollama", "llama-cpp", "none")
#: The entry point group in which installed packages add embedding providers.
EMBEDDER_ENTRY_POINTS = "memoriter.embedders"


class EmbeddingSettings(Section):
    """The embedder, which turns text into vectors."""

    provider: str = Field(
        default="auto",
        description="`auto` (the local model if it is installed, else the first of `openai`, `gemini`, `voyage` that "
        "has a key, else keywords only), `local`, `openai`, `gemini`, `voyage`, `ollama`, `llama-cpp`, "
        "`none` (keywords only), or a provider that an installed package adds.",
    )
    model: str | None = Field(
        default=None, description="Model of the named provider. Default: the provider's usual model."
    )
    model_path: Path | None = Field(
        default=None,
        description="Folder of an ONNX model with its `tokenizer.json`, used instead of the bundled model. "
        "For `llama-cpp`: a GGUF file.",
    )
    dimensions: Whole | None = Field(
        default=None,
        ge=8,
        le=8192,
        description="Dimensions of the vectors; shortens the vectors of models that support it. An OpenAI-compatible "
        "server or Ollama is asked once for those of a model that is not known.",
    )
    base_url: str | None = Field(
        default=None,
        description="URL of the named provider's API, such as a local OpenAI-compatible server.",
    )
    fallback: str = Field(
        default="none",
        description="Provider to use when the named one is unavailable or fails. `none`: keywords only.",
    )
    openai_api_key: SecretStr | None = Field(default=None, description="Also read from `OPENAI_API_KEY`.")
    openai_base_url: str | None = Field(
        default=None, description="Also read from `OPENAI_BASE_URL`. `base_url` takes precedence."
    )
    gemini_api_key: SecretStr | None = Field(
        default=None, description="Also read from `GEMINI_API_KEY` and `GOOGLE_API_KEY`."
    )
    voyage_api_key: SecretStr | None = Field(default=None, description="Also read from `VOYAGE_API_KEY`.")
    ollama_base_url: str | None = Field(
        default=None,
        description="Also read from `OLLAMA_BASE_URL`. Default: `http://127.0.0.1:11434`.",
    )
    redact: Literal["remote", "always", "never"] = Field(
        default="remote",
        description="When to remove secrets (keys, passwords, card numbers) from text before it is embedded: for "
        "services on other machines (`remote`), for every service (`always`), or `never`.",
    )
    concurrency: Whole = Field(
        default=4, ge=1, le=64, description="Maximum number of concurrent calls to the embedder."
    )
    batch_timeout_minutes: Number = Field(
        default=60.0,
        gt=0,
        le=1440,
        description="Time limit for a job of the provider's batch API, in minutes. After it, texts are embedded in "
        "plain calls.",
    )
    query_timeout_s: Duration = Field(
        gt=0,
        default=4.0,
        description="Time limit for embedding a query with a remote provider. After it, keywords alone answer.",
    )
    background: bool = Field(
        default=True,
        description="Compute missing vectors, and those of a newly configured embedder, in the background. "
        "If false, each search computes some of the missing ones, and `memoriter index` computes all.",
    )

    @field_validator("provider", "fallback")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name in PROVIDERS or name in _installed_providers():
            return name
        known = (*PROVIDERS, *_installed_providers())
        raise ValueError(f"must be one of {', '.join(known)}{did_you_mean(nearest(name, known))}")

    @field_validator("base_url", "openai_base_url", "ollama_base_url")
    @classmethod
    def _is_a_url(cls, url: str | None) -> str | None:
        return None if url is None else check_url(url)


class LlmSettings(Section):
    """The language model for summaries and extraction. It is optional, and no tokens are spent unless one is named."""

    provider: Literal["none", "openai", "anthropic"] = Field(
        default="none",
        description="`openai` also means any server with an OpenAI-compatible API at `base_url`.",
    )
    model: str = Field(default="", description="Name of the model.")
    base_url: str | None = Field(
        default=None, description="URL of the API. Default: the provider's own address."
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="API key. Default: the provider's usual environment variable, which is only sent to the "
        "provider's own address.",
    )
    timeout_s: Number = Field(
        default=60.0, gt=0, le=600, description="Time limit for one answer, in seconds."
    )
    daily_tokens: Whole = Field(
        default=200_000,
        ge=0,
        description="Maximum number of tokens per day, sent and received. After that the model is not called.",
    )


def check_url(url: str) -> str:
    """Return the URL with a scheme, or raise if it could lead somewhere unexpected."""
    text = url if "://" in url else f"http://{url}"  # OLLAMA_BASE_URL often has no scheme
    parts = urlsplit(text)
    plain = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
    if not plain or "@" in parts.netloc or "\\" in text or any(c.isspace() for c in text):
        raise ValueError("must be a URL such as https://host/v1, without a user name, password or query")
    if _is_link_local(parts.hostname or ""):
        raise ValueError("must not be a link-local address, because clouds serve machine credentials there")
    return text


def _is_link_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_link_local
    except ValueError:
        return False


@cache
def _installed_providers() -> tuple[str, ...]:
    # Scanning the installed packages takes tens of milliseconds, so only unknown names trigger it.
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=EMBEDDER_ENTRY_POINTS).names))
