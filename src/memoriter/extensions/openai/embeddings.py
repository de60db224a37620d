"""OpenAI, and servers with an OpenAI-compatible API.

Models of other servers may have the same names as OpenAI's, so the address is part of the identity of their vectors.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

from memoriter.embedding.protocol import CallLimits
from memoriter.extensions.vendors import transport
from memoriter.extensions.vendors.embedder import (
    MAX_RETRIES,
    Purpose,
    VendorEmbedder,
    by_index,
    check_model,
    client_library,
    digest,
)
from memoriter.extensions.vendors.jobs import RUNNING, JobState, by_custom_id, decode_vector
from memoriter.extensions.vendors.transport import Failure

OFFICIAL = "https://api.openai.com/v1"
DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}


class OpenAIEmbedder(VendorEmbedder):
    """`POST /embeddings`, with the package `openai`."""

    provider = package = "openai"
    variable = "OPENAI_API_KEY"
    official_url = OFFICIAL
    default_model = "text-embedding-3-small"
    dimensions = DIMENSIONS
    limits = CallLimits(items=2048, tokens=250_000, bytes=8 * 1024 * 1024)
    text_tokens = 7_500
    asks_dimensions = True
    job_items = 10_000

    def needs_key(self) -> bool:
        """Return whether the server is OpenAI's."""
        return (self.base_url or "").rstrip("/") == OFFICIAL

    def shorten_to(self, dimensions: int | None) -> int | None:
        """Return the dimensions to request. For models that cannot shorten vectors, the setting only states them."""
        return dimensions if self.model.startswith("text-embedding-3") else None

    def identity_key(self) -> str:
        """Return the digest of the address of another server."""
        return "" if self.needs_key() else digest(base_url=(self.base_url or "").rstrip("/"))

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float, retries: int) -> Any:
        """Embed texts with one call."""
        client = self.client().with_options(max_retries=retries)
        answer = client.embeddings.create(input=list(texts), **self.options(purpose), timeout=timeout_s)
        check_model(self.model, answer.model)
        found = ((item.index, decode_vector(item.embedding)) for item in answer.data)
        return by_index(found, len(texts))

    def failure(self, error: Exception) -> Failure:
        import openai

        if isinstance(error, openai.APIStatusError):
            body = error.body if isinstance(error.body, dict) else {}
            message = " ".join(str(body.get(name) or "") for name in ("code", "message", "detail")).strip()
            return Failure(error.status_code, message, error.response.headers)
        if isinstance(error, openai.APIConnectionError):
            return Failure(message=str(error.__cause__ or error))
        return Failure(message=str(error), unreadable=True)

    # ---- the batch API ---------------------------------------------------------------------------------------

    def submit(self, texts: Sequence[str], timeout_s: float) -> str:
        """Submit a job and return its id."""
        lines, options = self.job(texts)
        client = self.client()
        data = io.BytesIO("\n".join(json.dumps(line) for line in lines).encode())
        file = client.files.create(file=("memoriter.jsonl", data), purpose="batch", timeout=timeout_s)
        job = client.batches.create(
            input_file_id=file.id, endpoint="/v1/embeddings", timeout=timeout_s, **options
        )
        return str(job.id)

    def job(self, texts: Sequence[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return the lines of the file of a job, and the options of the job."""
        body = self.options("document")
        head = {"method": "POST", "url": "/v1/embeddings"}
        lines = [
            {"custom_id": str(number), **head, "body": {"input": [text], **body}}
            for number, text in enumerate(texts)
        ]
        return lines, {"completion_window": "24h"}

    def state(self, job_id: str, timeout_s: float) -> JobState:
        """Return the state of a job."""
        job = self.client().batches.retrieve(job_id, timeout=timeout_s)
        counts = job.request_counts
        return JobState(RUNNING.get(job.status, "failed"), counts.completed if counts else 0, str(job.status))

    def results(self, job_id: str, count: int, timeout_s: float) -> list[Any]:
        """Return the vectors of a finished job, with None for texts that failed."""
        client = self.client()
        job = client.batches.retrieve(job_id, timeout=timeout_s)
        if not job.output_file_id:
            return [None] * count
        lines = client.files.content(job.output_file_id, timeout=timeout_s).text.splitlines()
        return by_custom_id(lines, count)

    def cancel(self, job_id: str, timeout_s: float) -> None:
        """Cancel a job."""
        self.client().batches.cancel(job_id, timeout=timeout_s)

    def options(self, purpose: Purpose) -> dict[str, Any]:
        """Return the options of a call. The models treat queries and documents the same."""
        del purpose
        encoding = "base64" if self.needs_key() else "float"
        options: dict[str, Any] = {"model": self.model, "encoding_format": encoding}
        return options | {"dimensions": self.shortened} if self.shortened else options

    def open_client(self) -> Any:
        return client_library("openai", self.provider).OpenAI(
            api_key=self.key or "none",
            base_url=self.base_url,
            max_retries=MAX_RETRIES,
            http_client=transport.httpx_client(client_library("httpx2", self.provider)),
        )
