"""Google's Gemini API (not Vertex)."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memoriter.embedding import wire
from memoriter.embedding.failures import Trouble
from memoriter.embedding.jobs import JobState
from memoriter.embedding.remote import Limits, Purpose, client_library, width
from memoriter.errors import EmbedderUnavailable
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.wish import EmbedderSpec

OFFICIAL = "https://generativelanguage.googleapis.com"
MODEL = "gemini-embedding-001"
DIMENSIONS = {"gemini-embedding-001": 3072, "gemini-embedding-2": 3072, "text-embedding-004": 768}
TASKS = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
STATES = {"JOB_STATE_SUCCEEDED": "done", "JOB_STATE_PARTIALLY_SUCCEEDED": "done"}
ENDED = ("JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_CANCELLING", "JOB_STATE_EXPIRED")


class GeminiService:
    """`batchEmbedContents`, through the package `google-genai`."""

    variable = "GEMINI_API_KEY"
    limits = Limits(items=100, tokens=20_000, text_tokens=2_000)
    job_items = 1_000  #: the requests stand inside the job, which may be 20 MB

    def __init__(self, wish: EmbedderSpec) -> None:
        self.key = wish.keys.get("gemini", "")
        if not self.key:
            raise EmbedderUnavailable(f"no key: set {self.variable} or GOOGLE_API_KEY")
        self.base_url = wish.base_urls.get("gemini", OFFICIAL)
        self.model = wish.model or MODEL
        self._shorten = wish.dimensions
        dimensions = width("gemini", self.model, wish.dimensions, DIMENSIONS)
        self.identity = Identity("gemini", self.model, dimensions)
        self._made: Any = None
        self._http: Any = None
        self._lock = threading.Lock()

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float) -> Any:
        """One call; the answer has no numbers, so its order is believed and its count is checked."""
        client = self._client()
        answer = client.models.embed_content(
            model=self.model, contents=list(texts), config=self._config(purpose, timeout_s)
        )
        return [embedding.values for embedding in answer.embeddings]

    def trouble(self, error: Exception) -> Trouble:
        """What the package's exceptions hold."""
        import httpx2
        from google.genai import errors

        if isinstance(error, errors.APIError) and error.code:
            words = f"{error.status or ''} {error.message or ''}".strip()
            if error.code == 429:
                return _limited(words, str(error.details))
            # A wrong key is a bad request here.
            code = 401 if error.code == 400 and "API key" in words else error.code
            return Trouble(code, words, getattr(error.response, "headers", None) or {})
        if isinstance(error, httpx2.TransportError):
            return Trouble(message=str(error))
        return Trouble(message=str(error), unreadable=True)

    def close(self) -> None:
        """Close the connections."""
        made, self._made = self._made, None
        if made:
            made.close()
            self._http.close()  # the package closes only what it has made itself

    # ---- the batch API ---------------------------------------------------------------------------------------

    def submit(self, texts: Sequence[str], timeout_s: float) -> str:
        """Hand over a job; its id."""
        requests = {"contents": list(texts), "config": self._config("document", timeout_s)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "experimental", says the package
            job = self._client().batches.create_embeddings(
                model=self.model, src={"inlined_requests": requests}, config={"display_name": "memoriter"}
            )
        return str(job.name)

    def state(self, job_id: str, timeout_s: float) -> JobState:
        """How far a job has come."""
        del timeout_s
        job = self._client().batches.get(name=job_id)
        name = job.state.name if job.state else "JOB_STATE_UNSPECIFIED"
        return JobState("failed" if name in ENDED else STATES.get(name, "running"), 0, name)

    def results(self, job_id: str, count: int, timeout_s: float) -> list[Any]:
        """The vectors of a job that is done, in the order of its texts; None where a text failed."""
        del timeout_s
        job = self._client().batches.get(name=job_id)
        responses = (job.dest and job.dest.inlined_embed_content_responses) or []
        rows = [
            entry.response.embedding.values if entry.response and entry.response.embedding else None
            for entry in responses
        ]
        return rows if len(rows) == count else [None] * count

    def cancel(self, job_id: str, timeout_s: float) -> None:
        """Give a job up."""
        del timeout_s
        self._client().batches.cancel(name=job_id)

    def _config(self, purpose: Purpose, timeout_s: float) -> dict[str, Any]:
        return {
            "task_type": TASKS[purpose],
            "output_dimensionality": self._shorten,
            "http_options": {"timeout": int(timeout_s * 1000)},
        }

    def _client(self) -> Any:
        with self._lock:
            if self._made is None:
                genai = client_library("google.genai", "gemini")
                self._http = wire.httpx_client(client_library("httpx2", "gemini"))
                options = genai.types.HttpOptions(
                    base_url=self.base_url,
                    timeout=120_000,
                    httpx_client=self._http,
                    retry_options=genai.types.HttpRetryOptions(attempts=1),
                )
                # vertexai is said outright: a variable of the environment would change the host.
                self._made = genai.Client(api_key=self.key, vertexai=False, http_options=options)
            return self._made


def _limited(words: str, details: str) -> Trouble:
    """A limit of a minute and one of a day are told in the same words; the details tell them apart."""
    if "PerDay" in details:
        return Trouble(429, f"insufficient_quota {words}")
    wait = re.search(r"retryDelay['\"]: ['\"](\d{1,6}(?:\.\d{1,9})?)s", details)
    return Trouble(429, "a limit of the minute", {"retry-after": wait[1]} if wait else {})
