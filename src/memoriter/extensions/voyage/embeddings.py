"""Voyage AI, whose API is OpenAI's with further options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoriter.embedding.protocol import CallLimits
from memoriter.extensions.openai.embeddings import OpenAIEmbedder
from memoriter.extensions.vendors.embedder import Purpose, VendorEmbedder

DIMENSIONS = {
    **dict.fromkeys(("voyage-4-large", "voyage-4", "voyage-4-lite", "voyage-code-3"), 1024),
    **dict.fromkeys(
        ("voyage-3-large", "voyage-3.5", "voyage-3.5-lite", "voyage-law-2", "voyage-finance-2"), 1024
    ),
}


class VoyageEmbedder(OpenAIEmbedder):
    """`POST /embeddings`, with the package `openai`."""

    provider = "voyage"
    variable = "VOYAGE_API_KEY"
    official_url = "https://api.voyageai.com/v1"
    default_model = "voyage-4-large"
    dimensions = DIMENSIONS
    limits = CallLimits(items=1000, tokens=100_000)
    text_tokens = 30_000
    asks_dimensions = False

    # There are no other servers with this API, and all of its models shorten vectors.
    needs_key = VendorEmbedder.needs_key
    shorten_to = VendorEmbedder.shorten_to
    identity_key = VendorEmbedder.identity_key

    def options(self, purpose: Purpose) -> dict[str, Any]:
        return {"model": self.model, "encoding_format": "base64", "extra_body": self._parameters(purpose)}

    def job(self, texts: Sequence[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        lines = [{"custom_id": str(number), "body": {"input": [text]}} for number, text in enumerate(texts)]
        parameters = {"model": self.model, **self._parameters("document")}
        return lines, {"completion_window": "12h", "extra_body": {"request_params": parameters}}

    def _parameters(self, purpose: Purpose) -> dict[str, Any]:
        found: dict[str, Any] = {"input_type": purpose, "truncation": True}
        return found | {"output_dimension": self.shortened} if self.shortened else found
