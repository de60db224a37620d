"""Ollama: a server of models on this machine, or on one nearby."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memoriter.embedding import answers, wire
from memoriter.embedding.failures import Trouble
from memoriter.embedding.prompts import prompts_for
from memoriter.embedding.remote import Limits, Purpose, client_library, digest, width
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.wish import EmbedderSpec

USUAL = "http://127.0.0.1:11434"
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
    """`POST /api/embed`, through the package `ollama`."""

    key = ""
    variable = "OLLAMA_API_KEY"
    limits = Limits(items=64, tokens=16_384, text_tokens=6_000)

    def __init__(self, wish: EmbedderSpec) -> None:
        self.base_url = wish.base_urls.get("ollama", USUAL)
        self.model = wish.model or MODEL
        self._prompts = prompts_for(self.model)
        native = DIMENSIONS.get(self.model.removesuffix(":latest"))
        # Sent only to shorten: a server that does not know the argument leaves it out silently.
        self._shorten = wish.dimensions if native and wish.dimensions != native else None
        dimensions = width("ollama", self.model, wish.dimensions, DIMENSIONS)
        key = digest(query=self._prompts.query, document=self._prompts.document)
        self.identity = Identity("ollama", self.model, dimensions, key)
        self._clients: dict[float, Any] = {}
        self._lock = threading.Lock()

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float) -> Any:
        """One call; the answer has no numbers, so its order is believed and its count is checked."""
        prefix = self._prompts.query if purpose == "query" else self._prompts.document
        answer = self._client(timeout_s).embed(
            model=self.model,
            input=[prefix + text for text in texts],
            truncate=True,
            dimensions=self._shorten,
        )
        answers.same_model(self.model, answer.model)
        return answer.embeddings

    def trouble(self, error: Exception) -> Trouble:
        """What the package's exceptions hold."""
        import httpx
        import ollama

        if isinstance(error, ollama.ResponseError) and error.status_code >= 300:
            words = error.error
            if error.status_code == 404:
                words += f"; get it with `ollama pull {self.model}`"
            return Trouble(error.status_code, words)
        if isinstance(error, ConnectionError):
            return Trouble(message=f"nobody answers at {self.base_url}; is `ollama serve` running?")
        if isinstance(error, httpx.TransportError):
            return Trouble(message=str(error))
        return Trouble(message=str(error), unreadable=True)

    def close(self) -> None:
        """Close the connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    def _client(self, timeout_s: float) -> Any:
        # The package takes a timeout for a client and not for a call: one for queries, one for batches.
        with self._lock:
            if timeout_s not in self._clients:
                ollama = client_library("ollama", "ollama")
                options = wire.httpx_options(client_library("httpx", "ollama"))
                self._clients[timeout_s] = ollama.Client(host=self.base_url, timeout=timeout_s, **options)
            return self._clients[timeout_s]
