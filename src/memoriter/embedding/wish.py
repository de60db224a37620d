"""What the settings ask of this room, as one value. Secrets in it are never printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

#: Attempts at a call that fails temporarily.
ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """Which embedder is wanted, and how it is to be used."""

    provider: str = "auto"
    model: str | None = None  #: None: the provider's own default
    dimensions: int | None = None  #: None: as many as the model gives
    model_path: Path | None = None  #: an ONNX folder, or a GGUF file
    base_urls: Mapping[str, str] = field(default_factory=dict)  #: by provider; others: the vendor's own
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)  #: by provider
    fallback: str = "none"
    redact: str = "remote"  #: secrets in what leaves this machine ("remote"), in everything, or "never"
    threads: int = 0
    attempts: int = field(default_factory=lambda: ATTEMPTS)
    query_s: float = 4.0  #: for one query, at a remote provider
    batch_s: float = 120.0
    local_query_s: float = 30.0  #: the first query of a process loads the model
    local_batch_s: float = 600.0

    def only(self, provider: str) -> Self:
        """The same wish for another provider, with that one's own model."""
        return replace(self, provider=provider, model=None, dimensions=None, model_path=None, fallback="none")

    # ---- kept beside the vectors, so that they can be used when the settings have changed ---------------------

    def recipe(self, provider: str) -> str:
        """What is needed to make the same embedder again, but for the keys."""
        url = self.base_urls.get(provider)
        return json.dumps(
            {
                "provider": provider,
                "model": self.model,
                "dimensions": self.dimensions,
                "model_path": str(self.model_path) if self.model_path else None,
                "base_url": url,
            }
        )

    def from_recipe(self, recipe: str) -> Self | None:
        """This wish, but for the embedder that a recipe describes; None when it cannot be read."""
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
