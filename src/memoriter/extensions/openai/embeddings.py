"""OpenAI, and servers with an OpenAI-compatible API.

Models of other servers may have the same names as OpenAI's, so the address is part of the identity of their vectors.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memoriter.embedding import transport
from memoriter.embedding.jobs import RUNNING, JobState, by_custom_id
from memoriter.embedding.remote import (
    MAX_RETRIES,
    Limits,
    Purpose,
    by_index,
    check_model,
    client_library,
    digest,
    known_dimensions,
    require,
)
from memoriter.embedding.transport import Failure
from memoriter.errors import EmbedderUnavailable
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.protocol import EmbedderSpec

OFFICIAL = "https://api.openai.com/v1"
MODEL = "text-embedding-3-small"
DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}


class OpenAIService:
    """`POST /embeddings`, with the package `openai`."""

    #: Its servers have models of any name. They are asked for the dimensions of one that is not known.
    asks_dimensions = True
    variable = "OPENAI_API_KEY"
    limits = Limits(items=2048, tokens=250_000, bytes=8 * 1024 * 1024, text_tokens=7_500)
    job_items = 10_000

    def __init__(self, spec: EmbedderSpec) -> None:
        require("openai", "openai")
        self.base_url = spec.base_urls.get("openai", OFFICIAL)
        official = self.base_url.rstrip("/") == OFFICIAL
        self.key = spec.keys.get("openai", "")
        if official and not self.key:
            raise EmbedderUnavailable(f"no key: set {self.variable}")
        self.model = spec.model or MODEL
        # Only these models can shorten their vectors. For others the setting only states their dimensions.
        self._shorten = spec.dimensions if self.model.startswith("text-embedding-3") else None
        dimensions = known_dimensions("openai", self.model, spec.dimensions, DIMENSIONS)
        key = "" if official else digest(base_url=self.base_url.rstrip("/"))
        self.identity = Identity("openai", self.model, dimensions, key)
        self._encoding = "base64" if official else "float"
        self._opened: Any = None
        self._lock = threading.Lock()

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float, retries: int) -> Any:
        """Embed texts with one call. The models treat queries and documents the same."""
        del purpose
        client = self._client().with_options(max_retries=retries)
        answer = client.embeddings.create(**self._body(texts), timeout=timeout_s)
        check_model(self.model, answer.model)
        return by_index(((item.index, item.embedding) for item in answer.data), len(texts))

    def failure(self, error: Exception) -> Failure:
        """Return what the package's exception says."""
        import openai

        if isinstance(error, openai.APIStatusError):
            body = error.body if isinstance(error.body, dict) else {}
            message = " ".join(str(body.get(name) or "") for name in ("code", "message")).strip()
            return Failure(error.status_code, message, error.response.headers)
        if isinstance(error, openai.APIConnectionError):
            return Failure(message=str(error.__cause__ or error))
        return Failure(message=str(error), unreadable=True)

    def close(self) -> None:
        """Close the connections."""
        client, self._opened = self._opened, None
        if client:
            client.close()

    # ---- the batch API ---------------------------------------------------------------------------------------

    def submit(self, texts: Sequence[str], timeout_s: float) -> str:
        """Submit a job and return its id."""
        lines = [
            {"custom_id": str(number), "method": "POST", "url": "/v1/embeddings", "body": self._body([text])}
            for number, text in enumerate(texts)
        ]
        client = self._client()
        data = io.BytesIO("\n".join(json.dumps(line) for line in lines).encode())
        file = client.files.create(file=("memoriter.jsonl", data), purpose="batch", timeout=timeout_s)
        job = client.batches.create(
            input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h", timeout=timeout_s
        )
        return str(job.id)

    def state(self, job_id: str, timeout_s: float) -> JobState:
        """Return the state of a job."""
        job = self._client().batches.retrieve(job_id, timeout=timeout_s)
        counts = job.request_counts
        return JobState(RUNNING.get(job.status, "failed"), counts.completed if counts else 0, str(job.status))

    def results(self, job_id: str, count: int, timeout_s: float) -> list[Any]:
        """Return the vectors of a finished job, with None for texts that failed."""
        client = self._client()
        job = client.batches.retrieve(job_id, timeout=timeout_s)
        if not job.output_file_id:
            return [None] * count
        lines = client.files.content(job.output_file_id, timeout=timeout_s).text.splitlines()
        return by_custom_id(lines, count)

    def cancel(self, job_id: str, timeout_s: float) -> None:
        """Cancel a job."""
        self._client().batches.cancel(job_id, timeout=timeout_s)

    def _body(self, texts: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "input": list(texts), "encoding_format": self._encoding}
        return body | {"dimensions": self._shorten} if self._shorten else body

    def _client(self) -> Any:
        with self._lock:
            if self._opened is None:
                openai = client_library("openai", "openai")
                self._opened = openai.OpenAI(
                    api_key=self.key or "none",
                    base_url=self.base_url,
                    max_retries=MAX_RETRIES,
                    http_client=transport.httpx_client(client_library("httpx2", "openai")),
                )
            return self._opened
