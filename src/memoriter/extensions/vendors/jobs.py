"""Embed many texts with a provider's batch API, which is cheaper and slower.

The id of a job is stored in the index, so a new process can wait for a job that an earlier one submitted. A job
that fails or takes longer than an hour is cancelled, and plain calls embed its texts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from memoriter import logs
from memoriter.errors import EmbeddingError
from memoriter.extensions.vendors.embedder import VendorEmbedder, validate_vectors
from memoriter.records import Progress

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix, MetaStore

log = logs.get("embedding")

#: The key in the index under which a running job is stored.
META_KEY = "batch_job"
MAX_JOB_S = 3600.0
FIRST_POLL_S, MAX_POLL_S = 5.0, 60.0
#: Time limit for each call to the batch API.
CALL_S = 120.0


#: The states of a batch job in the format that several vendors share.
RUNNING = {"validating": "running", "in_progress": "running", "finalizing": "running", "completed": "done"}


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job."""

    #: "running", "done" or "failed".
    state: str
    done: int = 0
    #: The provider's name for the state.
    status: str = ""


@dataclass(frozen=True, slots=True)
class _Job:
    """A running job."""

    id: str
    identity: str
    hashes: list[str]
    #: Seconds since the epoch.
    submitted: float

    @classmethod
    def read(cls, text: str | None) -> _Job | None:
        try:
            return cls(**json.loads(text)) if text else None
        except (ValueError, TypeError):
            return None


class Jobs:
    """Embeds texts with the batch API of a service, one job after the other."""

    def __init__(
        self,
        embedder: VendorEmbedder,
        meta: MetaStore,
        *,
        limit_s: float = MAX_JOB_S,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._embedder: Any = embedder
        self._meta = meta
        self._limit_s = limit_s
        self._clock = clock
        self._sleep = sleep

    def run(
        self,
        items: Mapping[str, str],
        save: Callable[[Mapping[str, Matrix]], None],
        progress: Callable[[Progress], None] | None = None,
    ) -> str | None:
        """Pass vectors to ``save`` as they arrive. Return None, or why plain calls must embed the other texts."""
        left = {digest: text for digest, text in items.items() if text.strip()}
        try:
            for job in self._jobs(left):
                save(self._wait(job, len(items), progress))
                self._meta.set_meta(**{META_KEY: ""})
        except EmbeddingError as error:
            self._meta.set_meta(**{META_KEY: ""})
            log.warning("the batch job failed, continuing with plain calls: %s", error)
            return str(error)
        return None

    def _jobs(self, left: dict[str, str]) -> Iterator[_Job]:
        """Yield the job of an earlier process, then new ones until no text is left."""
        earlier = _Job.read(self._meta.meta(META_KEY))
        if earlier and earlier.identity == str(self._embedder.identity):
            log.info("continuing with the batch job %s", earlier.id)
            yield earlier
            for digest in earlier.hashes:
                left.pop(digest, None)
        digests = list(left)
        for start in range(0, len(digests), self._embedder.job_items):
            yield self._submit(
                {digest: left[digest] for digest in digests[start : start + self._embedder.job_items]}
            )

    def _submit(self, items: Mapping[str, str]) -> _Job:
        texts = [self._embedder.prepare(text) for text in items.values()]
        job_id = self._embedder.call(lambda: self._embedder.submit(texts, CALL_S))
        job = _Job(job_id, str(self._embedder.identity), list(items), self._clock())
        self._meta.set_meta(**{META_KEY: json.dumps(asdict(job))})
        log.info("batch job %s with %d texts", job.id, len(job.hashes))
        return job

    def _wait(self, job: _Job, total: int, progress: Callable[[Progress], None] | None) -> dict[str, Matrix]:
        pause = FIRST_POLL_S
        while True:
            now: JobState = self._embedder.call(lambda: self._embedder.state(job.id, CALL_S))
            if progress:
                progress(Progress("batch", now.done, total, f"{job.id}: {now.status}"))
            if now.state == "done":
                return self._results(job)
            if now.state == "failed":
                raise EmbeddingError(f"the batch job {job.id} ended as {now.status!r}")
            if self._clock() - job.submitted > self._limit_s:
                self._cancel(job)
                raise EmbeddingError(
                    f"the batch job {job.id} took longer than {self._limit_s / 60:g} minutes"
                )
            self._sleep(pause)
            pause = min(2 * pause, MAX_POLL_S)

    def _results(self, job: _Job) -> dict[str, Matrix]:
        """Return the valid vectors. Plain calls embed the other texts."""
        dimensions = self._embedder.identity.dimensions
        rows = self._embedder.call(lambda: self._embedder.results(job.id, len(job.hashes), CALL_S))
        found = [(digest, row) for digest, row in zip(job.hashes, rows, strict=True) if row is not None]
        if not found:
            raise EmbeddingError(f"the batch job {job.id} returned no vectors")
        matrix = validate_vectors([row for _, row in found], len(found), dimensions)
        return {digest: row for (digest, _), row in zip(found, matrix, strict=True)}

    def _cancel(self, job: _Job) -> None:
        try:
            self._embedder.call(lambda: self._embedder.cancel(job.id, CALL_S))
        except EmbeddingError as error:
            log.info("the batch job %s could not be cancelled: %s", job.id, error)


def by_custom_id(lines: Sequence[str], count: int) -> list[Any]:
    """Return the vectors of a results file in the format that several vendors share, by the number of each text."""
    rows: list[Any] = [None] * count
    for line in lines:
        if not line.strip():
            continue
        entry = json.loads(line)
        number = int(entry["custom_id"])
        response = entry.get("response") or {}
        if not 0 <= number < count or response.get("status_code", 200) != 200:
            continue
        if rows[number] is not None:
            raise EmbeddingError(f"the batch job answered text {number} twice")
        rows[number] = decode_vector(response["body"]["data"][0]["embedding"])
    return rows


def decode_vector(embedding: Any) -> Any:
    """Return a vector as numbers. It may be base64 of float32."""
    if not isinstance(embedding, str):
        return embedding
    import base64

    import numpy as np

    return np.frombuffer(base64.b64decode(embedding), dtype="<f4")
