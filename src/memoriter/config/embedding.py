"""The settings of `embedding`: which provider, which model, how patiently, and with which keys."""

from __future__ import annotations

import ipaddress
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from memoriter.config.base import Duration, Section, Whole, did_you_mean, nearest

PROVIDERS = ("auto", "local", "openai", "gemini", "voyage", "ollama", "llama-cpp", "none")
EMBEDDER_ENTRY_POINTS = "memoriter.embedders"  #: installed packages may add providers under this group


class Embedding(Section):
    """What turns text into vectors."""

    provider: str = Field(
        default="auto",
        description="`auto` (the local model if there is one, else the first of `openai`, `gemini`, `voyage` that has "
        "a key, else keywords only), `local`, one of these three, `ollama`, `llama-cpp`, `none` (keywords only), "
        "or one that an installed package adds.",
    )
    model: str | None = Field(
        default=None, description="Model of a named provider; not set: the provider's usual one."
    )
    model_path: Path | None = Field(
        default=None,
        description="Folder of an ONNX model with its `tokenizer.json`, instead of the bundled one; "
        "for `llama-cpp` a GGUF file.",
    )
    dimensions: Whole | None = Field(
        default=None,
        ge=8,
        le=8192,
        description="Width of the vectors: shortens those of models that can, and must be told for unknown ones.",
    )
    base_url: str | None = Field(
        default=None,
        description="Address of a named provider's API, such as an OpenAI-compatible server of one's own.",
    )
    fallback: str = Field(
        default="none",
        description="Provider that takes over when the named one cannot be used or fails; `none`: keywords only.",
    )
    openai_api_key: SecretStr | None = Field(default=None, description="Also read from `OPENAI_API_KEY`.")
    openai_base_url: str | None = Field(
        default=None, description="Also read from `OPENAI_BASE_URL`; `base_url` goes before it."
    )
    gemini_api_key: SecretStr | None = Field(
        default=None, description="Also read from `GEMINI_API_KEY` and `GOOGLE_API_KEY`."
    )
    voyage_api_key: SecretStr | None = Field(default=None, description="Also read from `VOYAGE_API_KEY`.")
    ollama_base_url: str | None = Field(
        default=None,
        description="Also read from `OLLAMA_BASE_URL`; not set: `http://127.0.0.1:11434`.",
    )
    redact: Literal["remote", "always", "never"] = Field(
        default="remote",
        description="Secrets (keys, passwords, card numbers) are taken out of what is embedded on other machines "
        "(`remote`), of everything that a service embeds (`always`), or of nothing (`never`).",
    )
    threads: Whole = Field(
        default=0,
        ge=0,
        le=256,
        description="Threads of the local model; 0 chooses by the machine, at most 4.",
    )
    batch_items: Whole = Field(
        default=64,
        ge=1,
        le=2048,
        description="Most texts embedded in one call; a provider's own limit holds too.",
    )
    batch_tokens: Whole = Field(
        default=8192, ge=64, description="Most tokens (estimated) embedded in one call."
    )
    batch_bytes: Whole = Field(
        default=1024 * 1024, ge=1024, description="Most bytes of text embedded in one call."
    )
    concurrency: Whole = Field(default=4, ge=1, le=64, description="Calls to the embedder at the same time.")
    attempts: Whole = Field(
        default=4, ge=1, le=10, description="How often a call that fails in passing is made, all in all."
    )
    query_timeout_s: Duration = Field(
        gt=0,
        default=4.0,
        description="A query that a remote provider has not embedded by then is answered by keywords.",
    )
    batch_timeout_s: Duration = Field(
        gt=0, default=120.0, description="Limit for one call with documents to a remote provider."
    )
    local_query_timeout_s: Duration = Field(
        gt=0,
        default=30.0,
        description="As `query_timeout_s`, for a model on this machine, which may have to be loaded.",
    )
    local_batch_timeout_s: Duration = Field(
        gt=0, default=600.0, description="As `batch_timeout_s`, for a model on this machine."
    )
    background: bool = Field(
        default=True,
        description="Missing vectors, and those of a newly set embedder, are made beside the searches; "
        "otherwise by `memoriter index` alone.",
    )
    cache_limit_mb: Whole = Field(
        default=512, ge=0, description="Size at which the oldest cached vectors are dropped."
    )

    @field_validator("provider", "fallback")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name in PROVIDERS or name in _added_providers():
            return name
        known = (*PROVIDERS, *_added_providers())
        raise ValueError(f"must be one of {', '.join(known)}{did_you_mean(nearest(name, known))}")

    @field_validator("base_url", "openai_base_url", "ollama_base_url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        return None if url is None else _address(url)


def _address(url: str) -> str:
    """An address that says plainly where it leads."""
    text = url if "://" in url else f"http://{url}"  # OLLAMA_BASE_URL is often written so
    parts = urlsplit(text)
    plain = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
    if not plain or "@" in parts.netloc or "\\" in text or any(c.isspace() for c in text):
        raise ValueError(
            "must be an address such as https://host/v1, without a name, password or query in it"
        )
    if _is_link_local(parts.hostname or ""):
        raise ValueError("must not be a link-local address: clouds keep their machines' own keys there")
    return text


def _is_link_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_link_local
    except ValueError:
        return False


@cache
def _added_providers() -> tuple[str, ...]:
    # The scan of installed packages costs tens of milliseconds: only names that are not ours are worth it.
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=EMBEDDER_ENTRY_POINTS).names))
