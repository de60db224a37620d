"""OpenAI, and every server that speaks its protocol.

A server other than OpenAI's is named by its address; its models are its own, so the address is part of the
identity of the vectors.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memoriter.embedding import answers, wire
from memoriter.embedding.failures import Trouble
from memoriter.embedding.jobs import JobState, by_custom_id
from memoriter.embedding.remote import Limits, Purpose, client_library, digest, width
from memoriter.errors import EmbedderUnavailable
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.wish import EmbedderSpec

OFFICIAL = "https://api.openai.com/v1"
MODEL = "text-embedding-3-small"
DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
RUNNING = {"validating": "running", "in_progress": "running", "finalizing": "running", "completed": "done"}


class OpenAIService:
    """`POST /embeddings`, through the package `openai`."""

    variable = "OPENAI_API_KEY"
    limits = Limits(items=2048, tokens=250_000, bytes=8 * 1024 * 1024, text_tokens=7_500)
    job_items = 10_000

    def __init__(self, wish: EmbedderSpec) -> None:
        self.base_url = wish.base_urls.get("openai", OFFICIAL)
        own = self.base_url.rstrip("/") == OFFICIAL
        self.key = wish.keys.get("openai", "")
        if own and not self.key:
            raise EmbedderUnavailable(f"no key: set {self.variable}")
        self.model = wish.model or MODEL
        # Only these models can shorten their vectors; for others the setting merely says how wide they are.
        self._shorten = wish.dimensions if self.model.startswith("text-embedding-3") else None
        dimensions = width("openai", self.model, wish.dimensions, DIMENSIONS)
        key = "" if own else digest(base_url=self.base_url.rstrip("/"))
        self.identity = Identity("openai", self.model, dimensions, key)
        self._encoding = "base64" if own else "float"
        self._made: Any = None
        self._lock = threading.Lock()

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float) -> Any:
        """One call; the model reads queries as it reads documents."""
        del purpose
        answer = self._client().embeddings.create(**self._body(texts), timeout=timeout_s)
        answers.same_model(self.model, answer.model)
        return answers.by_index(((item.index, item.embedding) for item in answer.data), len(texts))

    def trouble(self, error: Exception) -> Trouble:
        """What the package's exceptions hold."""
        import openai

        if isinstance(error, openai.APIStatusError):
            body = error.body if isinstance(error.body, dict) else {}
            words = " ".join(str(body.get(name) or "") for name in ("code", "message")).strip()
            return Trouble(error.status_code, words, error.response.headers)
        if isinstance(error, openai.APIConnectionError):
            return Trouble(message=str(error.__cause__ or error))
        return Trouble(message=str(error), unreadable=True)

    def close(self) -> None:
        """Close the connections."""
        made, self._made = self._made, None
        if made:
            made.close()

    # ---- the batch API ---------------------------------------------------------------------------------------

    def submit(self, texts: Sequence[str], timeout_s: float) -> str:
        """Hand over a job; its id."""
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
        """How far a job has come."""
        job = self._client().batches.retrieve(job_id, timeout=timeout_s)
        counts = job.request_counts
        return JobState(RUNNING.get(job.status, "failed"), counts.completed if counts else 0, str(job.status))

    def results(self, job_id: str, count: int, timeout_s: float) -> list[Any]:
        """The vectors of a job that is done; None where a text failed."""
        client = self._client()
        job = client.batches.retrieve(job_id, timeout=timeout_s)
        if not job.output_file_id:
            return [None] * count
        lines = client.files.content(job.output_file_id, timeout=timeout_s).text.splitlines()
        return by_custom_id(lines, count)

    def cancel(self, job_id: str, timeout_s: float) -> None:
        """Give a job up."""
        self._client().batches.cancel(job_id, timeout=timeout_s)

    def _body(self, texts: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "input": list(texts), "encoding_format": self._encoding}
        return body | {"dimensions": self._shorten} if self._shorten else body

    def _client(self) -> Any:
        with self._lock:
            if self._made is None:
                openai = client_library("openai", "openai")
                self._made = openai.OpenAI(
                    api_key=self.key or "none",
                    base_url=self.base_url,
                    max_retries=0,
                    http_client=wire.httpx_client(client_library("httpx2", "openai")),
                )
            return self._made
