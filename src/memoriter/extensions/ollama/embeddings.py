"""Ollama: a server of models on this machine or in the local network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoriter.embedding.protocol import CallLimits, EmbedderSpec
from memoriter.extensions.vendors import transport
from memoriter.extensions.vendors.embedder import Purpose, VendorEmbedder, check_model, client_library, digest
from memoriter.extensions.vendors.prompts import prompts_for
from memoriter.extensions.vendors.transport import Failure

DIMENSIONS = {
    "nomic-embed-text": 768,
    "nomic-embed-text-v2-moe": 768,
    "embeddinggemma": 768,
    "embeddinggemma:300m": 768,
    "mxbai-embed-large": 1024,
    "bge-m3": 1024,
    "bge-large": 1024,
    "all-minilm": 384,
    "snowflake-arctic-embed2": 1024,
    "qwen3-embedding:0.6b": 1024,
    "qwen3-embedding:4b": 2560,
    "qwen3-embedding:8b": 4096,
    "granite-embedding": 384,
    "granite-embedding:278m": 768,
    "paraphrase-multilingual": 768,
}


class OllamaEmbedder(VendorEmbedder):
    """`POST /api/embed`, with the package `ollama`."""

    provider = package = "ollama"
    variable = "OLLAMA_API_KEY"
    official_url = "http://127.0.0.1:11434"
    default_model = "nomic-embed-text"
    dimensions = DIMENSIONS
    limits = CallLimits(items=64, tokens=16_384)
    text_tokens = 6_000
    asks_dimensions = True

    def __init__(self, spec: EmbedderSpec) -> None:
        self._clients: dict[float, Any] = {}
        super().__init__(spec)

    def needs_key(self) -> bool:
        """Return False: the server is on this machine or in the local network."""
        return False

    def shorten_to(self, dimensions: int | None) -> int | None:
        """Return the dimensions if they shorten vectors. A server that does not know the argument ignores it."""
        native = self.dimensions.get(self.model.removesuffix(":latest"))
        return dimensions if native and dimensions != native else None

    def identity_key(self) -> str:
        """Return the digest of the prompts of the model."""
        prompts = prompts_for(self.model)
        return digest(query=prompts.query, document=prompts.document)

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float, retries: int) -> Any:
        """Embed texts with one call. The answer has no indexes, so only its count can be checked."""
        # The package does not retry. What fails waits for the next sync.
        del retries
        prefix = getattr(prompts_for(self.model), purpose)
        answer = self._client_for(timeout_s).embed(
            model=self.model,
            input=[prefix + text for text in texts],
            truncate=True,
            dimensions=self.shortened,
        )
        check_model(self.model, answer.model)
        return answer.embeddings

    def failure(self, error: Exception) -> Failure:
        import httpx
        import ollama

        if isinstance(error, ollama.ResponseError) and error.status_code >= 300:
            message = error.error
            if error.status_code == 404:
                message += f"; get it with `ollama pull {self.model}`"
            return Failure(error.status_code, message)
        if isinstance(error, ConnectionError):
            return Failure(message=f"no answer at {self.base_url}; is `ollama serve` running?")
        if isinstance(error, httpx.TransportError):
            return Failure(message=str(error))
        return Failure(message=str(error), unreadable=True)

    def close(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    def _client_for(self, timeout_s: float) -> Any:
        # The package has a timeout per client and not per call: one client for queries, one for batches.
        with self._lock:
            if timeout_s not in self._clients:
                ollama = client_library("ollama", "ollama")
                options = transport.httpx_options(client_library("httpx", "ollama"))
                self._clients[timeout_s] = ollama.Client(host=self.base_url, timeout=timeout_s, **options)
            return self._clients[timeout_s]
