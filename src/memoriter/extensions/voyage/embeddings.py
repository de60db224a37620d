"""Voyage AI.

The package's `Client` drops the indexes of the vectors, so this module calls the resource below it. The package has no
calls for the batch API, so its requestor is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from memoriter.embedding.protocol import CallLimits
from memoriter.extensions.vendors import transport
from memoriter.extensions.vendors.embedder import (
    Purpose,
    VendorEmbedder,
    by_index,
    check_model,
    client_library,
)
from memoriter.extensions.vendors.jobs import RUNNING, JobState, by_custom_id
from memoriter.extensions.vendors.transport import Failure, quiet_logger

DIMENSIONS = {
    **dict.fromkeys(("voyage-4-large", "voyage-4", "voyage-4-lite", "voyage-code-3"), 1024),
    **dict.fromkeys(
        ("voyage-3-large", "voyage-3.5", "voyage-3.5-lite", "voyage-law-2", "voyage-finance-2"), 1024
    ),
}


def requests_session() -> Any:
    """Return a session of `requests` with the limits of `transport`."""
    import requests
    from requests.adapters import HTTPAdapter

    class BoundedBody:
        """The body of an answer, up to a size and within a time."""

        def __init__(self, raw: Any, limit: int, within_s: float | None) -> None:
            self._raw, self._limits = raw, (limit, within_s)

        def stream(self, amount: int, decode_content: bool | None = None) -> Iterator[bytes]:
            yield from transport.limit_body(self._raw.stream(amount, decode_content), *self._limits)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._raw, name)

    class BoundedAdapter(HTTPAdapter):
        def send(self, request: Any, *args: Any, **options: Any) -> Any:
            response = super().send(request, *args, **options)
            is_file = transport.is_file_address(str(request.url))
            try:
                transport.check_head(response.status_code, response.headers, is_file=is_file)
            except BaseException:
                response.close()
                raise
            limit = transport.MAX_FILE_BYTES if is_file else transport.MAX_BYTES
            timeout = options.get("timeout")
            response.raw = BoundedBody(
                response.raw, limit, timeout if isinstance(timeout, int | float) else None
            )
            return response

    session = requests.Session()
    session.headers.update(transport.HEADERS)
    for scheme in ("http://", "https://"):
        session.mount(scheme, BoundedAdapter())
    return session


@cache
def _session() -> Any:
    """Return one session for all threads. The package would open one per thread and never close it."""
    return requests_session()


class VoyageEmbedder(VendorEmbedder):
    """`POST /embeddings`, with the package `voyageai`."""

    provider = "voyage"
    package = "voyageai"
    variable = "VOYAGE_API_KEY"
    default_model = "voyage-4-large"
    dimensions = DIMENSIONS
    limits = CallLimits(items=1000, tokens=100_000)
    text_tokens = 30_000
    job_items = 10_000

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float, retries: int) -> Any:
        """Embed texts with one call."""
        answer = self._retrying(retries)(
            self.client().Embedding.create,
            input=list(texts),
            model=self.model,
            input_type=purpose,
            truncation=True,
            output_dimension=self.shortened,
            api_key=self.key,
            base_url=self.base_url,
            request_timeout=timeout_s,
        )
        check_model(self.model, answer.model)
        return by_index(((item["index"], item["embedding"]) for item in answer.data), len(texts))

    def failure(self, error: Exception) -> Failure:
        """Return what the package's exception says."""
        import requests
        from voyageai import error as voyage

        if isinstance(error, voyage.Timeout | voyage.APIConnectionError | requests.RequestException):
            return Failure(message=str(error))
        if isinstance(error, voyage.VoyageError) and (error.http_status or 0) >= 300:
            body = error.json_body if isinstance(error.json_body, dict) else {}
            message = body.get("detail") or error.user_message
            return Failure(error.http_status, str(message or ""), error.headers)
        return Failure(message=str(error), unreadable=True)

    def close(self) -> None:
        """Close the connections. The next call opens them again."""
        if self._client is not None:
            _session().close()

    # ---- the batch API ---------------------------------------------------------------------------------------

    def submit(self, texts: Sequence[str], timeout_s: float) -> str:
        """Submit a job and return its id."""
        lines = [{"custom_id": str(number), "body": {"input": [text]}} for number, text in enumerate(texts)]
        data = "\n".join(json.dumps(line) for line in lines).encode()
        upload = {"file": ("memoriter.jsonl", data, "application/jsonl")}
        file = self._request("post", "/files", timeout_s, params={"purpose": "batch"}, files=upload)
        params: dict[str, Any] = {"model": self.model, "input_type": "document", "truncation": True}
        if self.shortened:
            params["output_dimension"] = self.shortened
        job = {
            "input_file_id": file["id"],
            "endpoint": "/v1/embeddings",
            "completion_window": "12h",
            "request_params": params,
        }
        return str(self._request("post", "/batches", timeout_s, params=job)["id"])

    def state(self, job_id: str, timeout_s: float) -> JobState:
        """Return the state of a job."""
        job = self._request("get", f"/batches/{job_id}", timeout_s)
        counts = job.get("request_counts") or {}
        return JobState(RUNNING.get(job["status"], "failed"), counts.get("completed", 0), str(job["status"]))

    def results(self, job_id: str, count: int, timeout_s: float) -> list[Any]:
        """Return the vectors of a finished job, with None for texts that failed."""
        job = self._request("get", f"/batches/{job_id}", timeout_s)
        if not job.get("output_file_id"):
            return [None] * count
        requestor = self._requestor()
        answer = requestor.request_raw(
            "get", f"/files/{job['output_file_id']}/content", request_timeout=timeout_s
        )
        return by_custom_id(answer.content.decode().splitlines(), count)

    def cancel(self, job_id: str, timeout_s: float) -> None:
        """Cancel a job."""
        self._request("post", f"/batches/{job_id}/cancel", timeout_s)

    def _retrying(self, retries: int) -> Any:
        # The package retries only in its `Client`. This is the same policy, with lost connections added.
        tenacity = client_library("tenacity", "voyage")
        errors = client_library("voyageai.error", "voyage")
        temporary = (
            errors.RateLimitError,
            errors.ServiceUnavailableError,
            errors.ServerError,
            errors.Timeout,
            errors.APIConnectionError,
        )
        return tenacity.Retrying(
            reraise=True,
            stop=tenacity.stop_after_attempt(retries + 1),
            wait=tenacity.wait_exponential_jitter(initial=1, max=16),
            retry=tenacity.retry_if_exception_type(temporary),
        )

    def _request(self, method: str, path: str, timeout_s: float, **options: Any) -> Any:
        return self._requestor().request(method, path, request_timeout=timeout_s, **options).data

    def _requestor(self) -> Any:
        self.client()
        requestor: Any = client_library("voyageai.api_resources.api_requestor", "voyage")
        return requestor.APIRequestor(self.key, self.base_url)

    def open_client(self) -> Any:
        """Load the package."""
        package = client_library("voyageai", "voyage")
        # The package has one such function per process. A program that has set it keeps its own.
        package.requestssession = package.requestssession or _session
        quiet_logger("voyage")
        return package
