"""The protocol of embedders, and how the settings specify one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from memoriter.records import Identity, Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: (texts, dimensions), or one vector (dimensions,).
    Matrix: TypeAlias = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors.

    Rows are finite and have length one, or are zero for blank texts. Row i belongs to text i. Equal texts have equal
    rows. Failures are EmbeddingError. Several threads may call it at the same time.
    """

    @property
    def identity(self) -> Identity:
        """The provider, model and dimensions. Known without loading a model or calling a provider."""
        ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of documents, (texts, dimensions)."""
        ...

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query, (dimensions,). Some models read queries differently from documents."""
        ...

    def close(self) -> None:
        """Release threads and memory. A later call may load them again."""
        ...


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of one call to a provider."""

    items: int
    tokens: int
    bytes: int = 4 * 1024 * 1024


class MetaStore(Protocol):
    """Stores the id of a batch job. An index is one."""

    def meta(self, key: str) -> str | None: ...

    def set_meta(self, **values: str) -> None: ...


class JobRunner(Protocol):
    """Embeds many texts with a provider's batch API."""

    def run(
        self,
        items: Mapping[str, str],
        save: Callable[[Mapping[str, Matrix]], None],
        progress: Callable[[Progress], None] | None = None,
    ) -> str | None:
        """Pass vectors to ``save`` as they arrive. Return None, or why plain calls must embed the other texts."""
        ...


class RemoteEmbedder(Embedder, Protocol):
    """An embedder that calls a server, which may have limits, be slow and fail."""

    limits: CallLimits
    #: Time limits for a query, and for one attempt with documents.
    query_s: float
    batch_s: float

    @property
    def reason(self) -> str:
        """How the settings lead to this server."""
        ...

    def without_retry(self) -> Embedder:
        """Return the same embedder for documents that a search waits for."""
        ...

    def jobs(self, meta: MetaStore, *, limit_s: float) -> JobRunner | None:
        """Return what embeds texts with the batch API, if the provider has one."""
        ...


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """The specification of an embedder. Its `repr` does not show keys."""

    provider: str = "auto"
    #: None: the provider's default.
    model: str | None = None
    #: None: the model's dimensions.
    dimensions: int | None = None
    #: An ONNX folder or a GGUF file.
    model_path: Path | None = None
    #: By provider. Others use their vendor's address.
    base_urls: Mapping[str, str] = field(default_factory=dict)
    #: By provider.
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    fallback: str = "none"
    #: The file that stores the dimensions of models that a server was asked for.
    dimensions_file: Path | None = None
    #: Redact secrets in texts for other machines ("remote"), in all texts for services ("always"), or "never".
    redact: str = "remote"
    #: Threads of a local model. 0: chosen automatically.
    threads: int = 0
    #: Retries of a call with documents. None: those of the provider.
    retries: int | None = None
    #: Time limit for a query at a remote provider, in seconds.
    query_s: float = 4.0
    #: Time limit for one call with documents at a remote provider. Providers need seconds; this is for slow networks.
    batch_s: float = 120.0
    #: Time limit for a query on this machine. The first query of a process loads the model.
    local_query_s: float = 30.0
    #: Time limit for documents on this machine. Large models on slow processors need minutes.
    local_batch_s: float = 600.0

    def for_provider(self, provider: str) -> Self:
        """Return the same spec for another provider, with that provider's default model."""
        return replace(self, provider=provider, model=None, dimensions=None, model_path=None, fallback="none")

    def recipe(self, provider: str) -> str:
        """Return what is needed to make this embedder again, except keys. The index stores it with the vectors."""
        return json.dumps(
            {
                "provider": provider,
                "model": self.model,
                "dimensions": self.dimensions,
                "model_path": str(self.model_path) if self.model_path else None,
                "base_url": self.base_urls.get(provider),
            }
        )

    def from_recipe(self, recipe: str) -> Self | None:
        """Return this spec with the embedder of a recipe, or None if the recipe cannot be read."""
        try:
            data = json.loads(recipe)
            provider, path, url = data["provider"], data["model_path"], data["base_url"]
            return replace(
                self,
                provider=str(provider),
                model=data["model"],
                dimensions=data["dimensions"],
                model_path=Path(path) if path else None,
                base_urls={**self.base_urls, provider: url} if url else self.base_urls,
                fallback="none",
            )
        except (ValueError, TypeError, KeyError):
            return None
