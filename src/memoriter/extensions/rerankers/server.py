"""A server with the `/rerank` interface: Cohere, Jina, Voyage, vLLM, llama.cpp, Text Embeddings Inference (TEI)."""

from __future__ import annotations

import http.client
import json
import math
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from memoriter.config import Settings
from memoriter.errors import EmbedderUnavailable, EmbeddingError
from memoriter.extensions.rerankers.reading import OwnReranker
from memoriter.extensions.rerankers.settings import RerankerSettings
from memoriter.extensions.vendors.embedder import is_local
from memoriter.extensions.vendors.transport import (
    HEADERS,
    MAX_BYTES,
    Failure,
    check_head,
    limit_body,
    to_error,
)


def open_server(settings: Settings) -> OwnReranker:
    """Return the reranker that asks the server of the settings."""
    return OwnReranker(lambda: Server(settings), settings.section(RerankerSettings))


class Server:
    """Asks a server for the scores of texts, with one call for each search."""

    def __init__(self, settings: Settings) -> None:
        chosen = settings.section(RerankerSettings)
        if not chosen.url:
            raise EmbedderUnavailable("search.reranker is `server`, but reranker.url is not set")
        address = chosen.url.rstrip("/")
        self._url = address if address.endswith("/rerank") else f"{address}/rerank"
        self._model, self._timeout_s = chosen.model, chosen.timeout_s
        self._key = chosen.api_key.get_secret_value() if chosen.api_key else ""
        redact = settings.embedding.redact
        self._redacts = redact == "always" or (redact == "remote" and not is_local(self._url))
        #: TEI has another name for the texts. The first answer shows it.
        self._field = "documents"
        self._opener = urllib.request.build_opener(_NoRedirects)

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        query, *texts = (self._prepare(text) for text in (query, *texts))
        try:
            return scores_of(self._ask(query, texts), len(texts))
        except _OtherField:
            self._field = "texts"
            return scores_of(self._ask(query, texts), len(texts))

    def _prepare(self, text: str) -> str:
        from memoriter.text.redaction import redact  # loads many patterns

        text = text.encode("utf-8", "replace").decode("utf-8")
        return redact(text) if self._redacts else text

    def _ask(self, query: str, texts: Sequence[str]) -> Any:
        try:
            with self._opener.open(self._request(query, texts), timeout=self._timeout_s) as answer:
                check_head(answer.status, answer.headers)
                parts = iter(lambda: answer.read1(65_536), b"")
                return json.loads(b"".join(limit_body(parts, MAX_BYTES, self._timeout_s)))
        except (OSError, http.client.HTTPException, ValueError) as error:
            failed = self._failure(error)
        # Outside the handler, so that an exception that holds the request and its key is not chained to it.
        raise failed

    def _request(self, query: str, texts: Sequence[str]) -> urllib.request.Request:
        body: dict[str, Any] = {"query": query, self._field: texts} | (
            {"model": self._model} if self._model else {}
        )
        headers = {**HEADERS, "Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return urllib.request.Request(self._url, json.dumps(body).encode(), headers)  # noqa: S310 - a checked URL

    def _failure(self, error: Exception) -> EmbeddingError:
        facts = Failure(
            message=str(getattr(error, "reason", error)), unreadable=isinstance(error, ValueError)
        )
        if isinstance(error, urllib.error.HTTPError):
            message = error.read(4096).decode("utf-8", "replace")
            if error.code in (400, 422) and self._field == "documents" and "texts" in message:
                return _OtherField("the server calls the texts `texts`")
            facts = Failure(error.code, message, dict(error.headers))
        name = f"the reranker at {self._url}"
        return to_error(name, error, facts, key=self._key, variable="reranker.api_key")


class _OtherField(EmbeddingError):
    """The server has another name for the texts."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects, because the key belongs to its host."""

    def redirect_request(self, *_: Any) -> None:
        """Return nothing, so that the redirect is an error."""


def scores_of(answer: Any, count: int) -> list[float]:
    """Return the scores of an answer in the order of the texts."""
    rows = answer.get("results", answer.get("data")) if isinstance(answer, Mapping) else answer
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise EmbeddingError("the reranker's answer contains no results")
    found = {row.get("index"): row.get("relevance_score", row.get("score")) for row in rows}
    if len(rows) != count or found.keys() != {*range(count)}:
        raise EmbeddingError(f"the reranker returned {len(rows)} results for {count} texts, or wrong indexes")
    scores = [found[number] for number in range(count)]
    if not all(isinstance(score, int | float) and math.isfinite(score) for score in scores):
        raise EmbeddingError("the reranker returned scores that are not numbers")
    return [float(score) for score in scores]
