"""The settings of models: the embedder and the language model, with their addresses, keys and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import SecretStr

from memoriter.config.fields import Duration, Number, Section, Url, Whole, described, offered

#: Values of `embedding.provider` besides the embedders that extensions offer.
BUILTIN_PROVIDERS = ("auto", "local", "none")
Provider = Annotated[str, offered("embedders", *BUILTIN_PROVIDERS)]


class EmbeddingSettings(Section):
    """The embedder, which turns text into vectors."""

    provider: Provider = described(
        "auto",
        "`auto` (the local model if it is installed, else the first provider that has a key, else keywords "
        "only), `local`, `none` (keywords only), or a provider that an extension offers; see `docs/embedders.md`.",
    )
    model: str | None = described(None, "Model of the named provider. Default: the provider's usual model.")
    model_path: Path | None = described(
        None,
        "Folder of an ONNX model with its `tokenizer.json`, used instead of the bundled model, or a model "
        "file of the named provider.",
    )
    dimensions: Whole | None = described(
        None,
        "Dimensions of the vectors; shortens the vectors of models that support it. A server "
        "with models of any name is asked once for those of a model that is not known.",
        ge=8,
        le=8192,
    )
    base_url: Url | None = described(
        None, "URL of the named provider's API, such as a server on this machine."
    )
    fallback: Provider = described(
        "none", "Provider to use when the named one is unavailable or fails. `none`: keywords only."
    )
    redact: Literal["remote", "always", "never"] = described(
        "remote",
        "When to remove secrets (keys, passwords, card numbers) from text before it is embedded: for "
        "services on other machines (`remote`), for every service (`always`), or `never`.",
    )
    concurrency: Whole = described(4, "Maximum number of concurrent calls to the embedder.", ge=1, le=64)
    batch_timeout_minutes: Number = described(
        60.0,
        "Time limit for a job of the provider's batch API, in minutes. After it, texts are embedded in "
        "plain calls.",
        gt=0,
        le=1440,
    )
    query_timeout_s: Duration = described(
        4.0, "Time limit for embedding a query with a remote provider. After it, keywords alone answer.", gt=0
    )
    background: bool = described(
        True,
        "Compute missing vectors, and those of a newly configured embedder, in the background. "
        "If false, each search computes some of the missing ones, and `memoriter index` computes all.",
    )


class LlmSettings(Section):
    """The language model for summaries and extraction. It is optional, and no tokens are spent unless one is named."""

    provider: Annotated[str, offered("chats", "none")] = described(
        "none",
        "`none`, or a provider that an extension offers. `openai` also means any server with an "
        "OpenAI-compatible API at `base_url`.",
    )
    model: str = described("", "Name of the model.")
    base_url: str | None = described(None, "URL of the API. Default: the provider's own address.")
    api_key: SecretStr | None = described(
        None,
        "API key. Default: the provider's usual environment variable, which is only sent to the "
        "provider's own address.",
    )
    timeout_s: Number = described(60.0, "Time limit for one answer, in seconds.", gt=0, le=600)
    daily_tokens: Whole = described(
        200_000,
        "Maximum number of tokens per day, sent and received. After that the model is not called.",
        ge=0,
    )
