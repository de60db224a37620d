"""Google's Gemini API (not Vertex AI)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

from memoriter.embedding.protocol import CallLimits
from memoriter.extensions.vendors import transport
from memoriter.extensions.vendors.embedder import MAX_RETRIES, Purpose, VendorEmbedder, client_library
from memoriter.extensions.vendors.jobs import JobState
from memoriter.extensions.vendors.transport import Failure, quiet_logger

DIMENSIONS = {"gemini-embedding-001": 3072, "gemini-embedding-2": 3072, "text-embedding-004": 768}
TASKS = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
STATES = {"JOB_STATE_SUCCEEDED": "done", "JOB_STATE_PARTIALLY_SUCCEEDED": "done"}
ENDED = ("JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_CANCELLING", "JOB_STATE_EXPIRED")


class GeminiEmbedder(VendorEmbedder):
    """`batchEmbedContents`, with the package `google-genai`."""

    provider = "gemini"
    package = "google.genai"
    variable = "GEMINI_API_KEY"
    variables = "GEMINI_API_KEY or GOOGLE_API_KEY"
    official_url = "https://generativelanguage.googleapis.com"
    default_model = "gemini-embedding-001"
    dimensions = DIMENSIONS
    limits = CallLimits(items=100, tokens=20_000)
    text_tokens = 2_000
    #: The job contains the requests, and may have 20 MB.
    job_items = 1_000
    _http: Any = None

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float, retries: int) -> Any:
        """Embed texts with one call. The answer has no indexes, so only its count can be checked."""
        client = self.client()
        answer = client.models.embed_content(
            model=self.model, contents=list(texts), config=self._config(purpose, timeout_s, retries)
        )
        return [embedding.values for embedding in answer.embeddings]

    def failure(self, error: Exception) -> Failure:
        import httpx2
        from google.genai import errors

        if isinstance(error, errors.APIError) and error.code:
            message = f"{error.status or ''} {error.message or ''}".strip()
            if error.code == 429:
                return _limit_failure(message, str(error.details))
            # Gemini reports a wrong key as a bad request.
            code = 401 if error.code == 400 and "API key" in message else error.code
            return Failure(code, message, getattr(error.response, "headers", None) or {})
        if isinstance(error, httpx2.TransportError):
            return Failure(message=str(error))
        return Failure(message=str(error), unreadable=True)

    def close(self) -> None:
        """Close the connections. The package only closes clients that it made."""
        super().close()
        if self._http:
            self._http.close()

    # ---- the batch API ---------------------------------------------------------------------------------------

    def submit(self, texts: Sequence[str], timeout_s: float) -> str:
        requests = {"contents": list(texts), "config": self._config("document", timeout_s, MAX_RETRIES)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the package warns that this is experimental
            job = self.client().batches.create_embeddings(
                model=self.model, src={"inlined_requests": requests}, config={"display_name": "memoriter"}
            )
        return str(job.name)

    def state(self, job_id: str, timeout_s: float) -> JobState:
        del timeout_s
        job = self.client().batches.get(name=job_id)
        name = job.state.name if job.state else "JOB_STATE_UNSPECIFIED"
        return JobState("failed" if name in ENDED else STATES.get(name, "running"), 0, name)

    def results(self, job_id: str, count: int, timeout_s: float) -> list[Any]:
        """Return the vectors of a finished job in the order of its texts, with None for texts that failed."""
        del timeout_s
        job = self.client().batches.get(name=job_id)
        responses = (job.dest and job.dest.inlined_embed_content_responses) or []
        rows = [
            entry.response.embedding.values if entry.response and entry.response.embedding else None
            for entry in responses
        ]
        return rows if len(rows) == count else [None] * count

    def cancel(self, job_id: str, timeout_s: float) -> None:
        del timeout_s
        self.client().batches.cancel(name=job_id)

    def _config(self, purpose: Purpose, timeout_s: float, retries: int) -> dict[str, Any]:
        return {
            "task_type": TASKS[purpose],
            "output_dimensionality": self.shortened,
            "http_options": {"timeout": int(timeout_s * 1000), "retry_options": {"attempts": retries + 1}},
        }

    def open_client(self) -> Any:
        genai = client_library("google.genai", "gemini")
        quiet_logger("google_genai")
        self._http = transport.httpx_client(client_library("httpx2", "gemini"))
        options = genai.types.HttpOptions(
            base_url=self.base_url,
            timeout=120_000,
            httpx_client=self._http,
            retry_options=genai.types.HttpRetryOptions(attempts=MAX_RETRIES + 1),
        )
        # Set explicitly, because an environment variable could change the host.
        return genai.Client(api_key=self.key, vertexai=False, http_options=options)


def _limit_failure(message: str, details: str) -> Failure:
    """Distinguish a limit per minute from a limit per day. Only the details differ, not the message."""
    if "PerDay" in details:
        return Failure(429, f"insufficient_quota {message}")
    wait = re.search(r"retryDelay['\"]: ['\"](\d{1,6}(?:\.\d{1,9})?)s", details)
    return Failure(429, "a limit per minute", {"retry-after": wait[1]} if wait else {})
