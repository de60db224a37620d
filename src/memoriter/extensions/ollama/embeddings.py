"""Ollama: a server of models on this machine or in the local network."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memoriter.embedding import transport
from memoriter.embedding.manifest import prompts_for
from memoriter.embedding.remote import (
    Limits,
    Purpose,
    check_model,
    client_library,
    digest,
    known_dimensions,
    require,
)
from memoriter.embedding.transport import Failure
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.protocol import EmbedderSpec

DEFAULT_URL = "http://127.0.0.1:11434"
MODEL = "nomic-embed-text"
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


class OllamaService:
    """`POST /api/embed`, with the package `ollama`."""

    key = ""
    #: Its servers have models of any name. They are asked for the dimensions of one that is not known.
    asks_dimensions = True
    variable = "OLLAMA_API_KEY"
    limits = Limits(items=64, tokens=16_384, text_tokens=6_000)

    def __init__(self, spec: EmbedderSpec) -> None:
        require("ollama", "ollama")
        self.base_url = spec.base_urls.get("ollama", DEFAULT_URL)
        self.model = spec.model or MODEL
        self._prompts = prompts_for(self.model)
        native = DIMENSIONS.get(self.model.removesuffix(":latest"))
        # Sent only to shorten vectors. A server that does not know the argument ignores it silently.
        self._shorten = spec.dimensions if native and spec.dimensions != native else None
        dimensions = known_dimensions("ollama", self.model, spec.dimensions, DIMENSIONS)
        key = digest(query=self._prompts.query, document=self._prompts.document)
        self.identity = Identity("ollama", self.model, dimensions, key)
        self._clients: dict[float, Any] = {}
        self._lock = threading.Lock()

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float, retries: int) -> Any:
        """Embed texts with one call. The answer has no indexes, so only its count can be checked."""
        # The package does not retry. What fails waits for the next sync.
        del retries
        prefix = self._prompts.query if purpose == "query" else self._prompts.document
        answer = self._client(timeout_s).embed(
            model=self.model,
            input=[prefix + text for text in texts],
            truncate=True,
            dimensions=self._shorten,
        )
        check_model(self.model, answer.model)
        return answer.embeddings

    def failure(self, error: Exception) -> Failure:
        """Return what the package's exception says."""
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
        """Close the connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    def _client(self, timeout_s: float) -> Any:
        # The package has a timeout per client and not per call: one client for queries, one for batches.
        with self._lock:
            if timeout_s not in self._clients:
                ollama = client_library("ollama", "ollama")
                options = transport.httpx_options(client_library("httpx", "ollama"))
                self._clients[timeout_s] = ollama.Client(host=self.base_url, timeout=timeout_s, **options)
            return self._clients[timeout_s]
