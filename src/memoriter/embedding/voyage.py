"""Voyage AI.

The package's own answer object forgets the numbers of the vectors, so its resource is called instead; the batch API,
for which the package has no calls yet, is reached through the package's requestor.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from memoriter.embedding import answers, wire
from memoriter.embedding.failures import Trouble
from memoriter.embedding.jobs import JobState, by_custom_id
from memoriter.embedding.openai import RUNNING
from memoriter.embedding.remote import Limits, Purpose, client_library, width
from memoriter.errors import EmbedderUnavailable
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.wish import EmbedderSpec

MODEL = "voyage-4-large"
DIMENSIONS = {
    **dict.fromkeys(("voyage-4-large", "voyage-4", "voyage-4-lite", "voyage-code-3"), 1024),
    **dict.fromkeys(
        ("voyage-3-large", "voyage-3.5", "voyage-3.5-lite", "voyage-law-2", "voyage-finance-2"), 1024
    ),
}


@cache
def _session() -> Any:
    """One for all threads: the package would make one for each, and never close it."""
    return wire.requests_session()


class VoyageService:
    """`POST /embeddings`, through the package `voyageai`."""

    variable = "VOYAGE_API_KEY"
    limits = Limits(items=1000, tokens=100_000, text_tokens=30_000)
    job_items = 10_000

    def __init__(self, wish: EmbedderSpec) -> None:
        self.key = wish.keys.get("voyage", "")
        if not self.key:
            raise EmbedderUnavailable(f"no key: set {self.variable}")
        self.base_url = wish.base_urls.get("voyage")
        self.model = wish.model or MODEL
        self._shorten = wish.dimensions
        dimensions = width("voyage", self.model, wish.dimensions, DIMENSIONS)
        self.identity = Identity("voyage", self.model, dimensions)
        self._package: Any = None

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float) -> Any:
        """One call."""
        answer = self._voyageai().Embedding.create(
            input=list(texts),
            model=self.model,
            input_type=purpose,
            truncation=True,
            output_dimension=self._shorten,
            api_key=self.key,
            base_url=self.base_url,
            request_timeout=timeout_s,
        )
        answers.same_model(self.model, answer.model)
        return answers.by_index(((item["index"], item["embedding"]) for item in answer.data), len(texts))

    def trouble(self, error: Exception) -> Trouble:
        """What the package's exceptions hold."""
        import requests
        from voyageai import error as voyage

        if isinstance(error, voyage.Timeout | voyage.APIConnectionError | requests.RequestException):
            return Trouble(message=str(error))
        if isinstance(error, voyage.VoyageError) and (error.http_status or 0) >= 300:
            body = error.json_body if isinstance(error.json_body, dict) else {}
            words = body.get("detail") or error.user_message
            return Trouble(error.http_status, str(words or ""), error.headers)
        return Trouble(message=str(error), unreadable=True)

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        if self._package is not None:
            _session().close()

    # ---- the batch API ---------------------------------------------------------------------------------------

    def submit(self, texts: Sequence[str], timeout_s: float) -> str:
        """Hand over a job; its id."""
        lines = [{"custom_id": str(number), "body": {"input": [text]}} for number, text in enumerate(texts)]
        data = "\n".join(json.dumps(line) for line in lines).encode()
        upload = {"file": ("memoriter.jsonl", data, "application/jsonl")}
        file = self._request("post", "/files", timeout_s, params={"purpose": "batch"}, files=upload)
        params: dict[str, Any] = {"model": self.model, "input_type": "document", "truncation": True}
        if self._shorten:
            params["output_dimension"] = self._shorten
        job = {
            "input_file_id": file["id"],
            "endpoint": "/v1/embeddings",
            "completion_window": "12h",
            "request_params": params,
        }
        return str(self._request("post", "/batches", timeout_s, params=job)["id"])

    def state(self, job_id: str, timeout_s: float) -> JobState:
        """How far a job has come."""
        job = self._request("get", f"/batches/{job_id}", timeout_s)
        counts = job.get("request_counts") or {}
        return JobState(RUNNING.get(job["status"], "failed"), counts.get("completed", 0), str(job["status"]))

    def results(self, job_id: str, count: int, timeout_s: float) -> list[Any]:
        """The vectors of a job that is done; None where a text failed."""
        job = self._request("get", f"/batches/{job_id}", timeout_s)
        if not job.get("output_file_id"):
            return [None] * count
        requestor = self._requestor()
        answer = requestor.request_raw(
            "get", f"/files/{job['output_file_id']}/content", request_timeout=timeout_s
        )
        return by_custom_id(answer.content.decode().splitlines(), count)

    def cancel(self, job_id: str, timeout_s: float) -> None:
        """Give a job up."""
        self._request("post", f"/batches/{job_id}/cancel", timeout_s)

    def _request(self, method: str, path: str, timeout_s: float, **options: Any) -> Any:
        return self._requestor().request(method, path, request_timeout=timeout_s, **options).data

    def _requestor(self) -> Any:
        self._voyageai()
        requestor: Any = client_library("voyageai.api_resources.api_requestor", "voyage")
        return requestor.APIRequestor(self.key, self.base_url)

    def _voyageai(self) -> Any:
        if self._package is None:
            package = client_library("voyageai", "voyage")
            # The package has one place for this in a whole program; a program that has filled it keeps its own.
            package.requestssession = package.requestssession or _session
            # It logs what servers say and what is sent, word for word; who wants that sets the level.
            logger = logging.getLogger("voyage")
            if logger.level == logging.NOTSET:
                logger.setLevel(logging.WARNING)
            self._package = package
        return self._package
