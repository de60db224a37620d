"""Google's Gemini API (not Vertex AI)."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memoriter.embedding import transport
from memoriter.embedding.jobs import JobState
from memoriter.embedding.remote import MAX_RETRIES, Limits, Purpose, client_library, known_dimensions, require
from memoriter.embedding.transport import Failure, quiet_logger
from memoriter.errors import EmbedderUnavailable
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.protocol import EmbedderSpec

OFFICIAL = "https://generativelanguage.googleapis.com"
MODEL = "gemini-embedding-001"
DIMENSIONS = {"gemini-embedding-001": 3072, "gemini-embedding-2": 3072, "text-embedding-004": 768}
TASKS = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
STATES = {"JOB_STATE_SUCCEEDED": "done", "JOB_STATE_PARTIALLY_SUCCEEDED": "done"}
ENDED = ("JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_CANCELLING", "JOB_STATE_EXPIRED")


class GeminiService:
    """`batchEmbedContents`, with the package `google-genai`."""

    variable = "GEMINI_API_KEY"
    limits = Limits(items=100, tokens=20_000, text_tokens=2_000)
    #: The job contains the requests, and may have 20 MB.
    job_items = 1_000

    def __init__(self, spec: EmbedderSpec) -> None:
        require("google.genai", "gemini")
        self.key = spec.keys.get("gemini", "")
        if not self.key:
            raise EmbedderUnavailable(f"no key: set {self.variable} or GOOGLE_API_KEY")
        self.base_url = spec.base_urls.get("gemini", OFFICIAL)
        self.model = spec.model or MODEL
        self._shorten = spec.dimensions
        dimensions = known_dimensions("gemini", self.model, spec.dimensions, DIMENSIONS)
        self.identity = Identity("gemini", self.model, dimensions)
        self._opened: Any = None
        self._http: Any = None
        self._lock = threading.Lock()

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float, retries: int) -> Any:
        """Embed texts with one call. The answer has no indexes, so only its count can be checked."""
        client = self._client()
        answer = client.models.embed_content(
            model=self.model, contents=list(texts), config=self._config(purpose, timeout_s, retries)
        )
        return [embedding.values for embedding in answer.embeddings]

    def failure(self, error: Exception) -> Failure:
        """Return what the package's exception says."""
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
        """Close the connections."""
        client, self._opened = self._opened, None
        if client:
            client.close()
            self._http.close()  # the package only closes clients that it made

    # ---- the batch API ---------------------------------------------------------------------------------------

    def submit(self, texts: Sequence[str], timeout_s: float) -> str:
        """Submit a job and return its id."""
        requests = {"contents": list(texts), "config": self._config("document", timeout_s, MAX_RETRIES)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the package warns that this is experimental
            job = self._client().batches.create_embeddings(
                model=self.model, src={"inlined_requests": requests}, config={"display_name": "memoriter"}
            )
        return str(job.name)

    def state(self, job_id: str, timeout_s: float) -> JobState:
        """Return the state of a job."""
        del timeout_s
        job = self._client().batches.get(name=job_id)
        name = job.state.name if job.state else "JOB_STATE_UNSPECIFIED"
        return JobState("failed" if name in ENDED else STATES.get(name, "running"), 0, name)

    def results(self, job_id: str, count: int, timeout_s: float) -> list[Any]:
        """Return the vectors of a finished job in the order of its texts, with None for texts that failed."""
        del timeout_s
        job = self._client().batches.get(name=job_id)
        responses = (job.dest and job.dest.inlined_embed_content_responses) or []
        rows = [
            entry.response.embedding.values if entry.response and entry.response.embedding else None
            for entry in responses
        ]
        return rows if len(rows) == count else [None] * count

    def cancel(self, job_id: str, timeout_s: float) -> None:
        """Cancel a job."""
        del timeout_s
        self._client().batches.cancel(name=job_id)

    def _config(self, purpose: Purpose, timeout_s: float, retries: int) -> dict[str, Any]:
        return {
            "task_type": TASKS[purpose],
            "output_dimensionality": self._shorten,
            "http_options": {
                "timeout": int(timeout_s * 1000),
                "retry_options": {"attempts": retries + 1},
            },
        }

    def _client(self) -> Any:
        with self._lock:
            if self._opened is None:
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
                self._opened = genai.Client(api_key=self.key, vertexai=False, http_options=options)
            return self._opened


def _limit_failure(message: str, details: str) -> Failure:
    """Distinguish a limit per minute from a limit per day. Only the details differ, not the message."""
    if "PerDay" in details:
        return Failure(429, f"insufficient_quota {message}")
    wait = re.search(r"retryDelay['\"]: ['\"](\d{1,6}(?:\.\d{1,9})?)s", details)
    return Failure(429, "a limit per minute", {"retry-after": wait[1]} if wait else {})
