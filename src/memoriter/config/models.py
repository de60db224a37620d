"""The settings of models: the embedder and the language model, with their addresses, keys and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr

from memoriter.config.fields import Duration, Number, Section, Url, Whole, offered

#: Values of `embedding.provider` besides the embedders that extensions offer.
BUILTIN_PROVIDERS = ("auto", "local", "none")
Provider = Annotated[str, offered("embedders", *BUILTIN_PROVIDERS)]


class EmbeddingSettings(Section):
    """The embedder, which turns text into vectors."""

    provider: Provider = Field(
        default="auto",
        description="`auto` (the local model if it is installed, else the first provider that has a key, else keywords "
        "only), `local`, `none` (keywords only), or a provider that an extension offers; see `docs/embedders.md`.",
    )
    model: str | None = Field(
        default=None, description="Model of the named provider. Default: the provider's usual model."
    )
    model_path: Path | None = Field(
        default=None,
        description="Folder of an ONNX model with its `tokenizer.json`, used instead of the bundled model, or a model "
        "file of the named provider.",
    )
    dimensions: Whole | None = Field(
        default=None,
        ge=8,
        le=8192,
        description="Dimensions of the vectors; shortens the vectors of models that support it. A server "
        "with models of any name is asked once for those of a model that is not known.",
    )
    base_url: Url | None = Field(
        default=None, description="URL of the named provider's API, such as a server on this machine."
    )
    fallback: Provider = Field(
        default="none",
        description="Provider to use when the named one is unavailable or fails. `none`: keywords only.",
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


class LlmSettings(Section):
    """The language model for summaries and extraction. It is optional, and no tokens are spent unless one is named."""

    provider: Annotated[str, offered("chats", "none")] = Field(
        default="none",
        description="`none`, or a provider that an extension offers. `openai` also means any server with an "
        "OpenAI-compatible API at `base_url`.",
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
