"""Many texts through a provider's batch API: cheaper, and slower.

A job is submitted, its id is noted in the index, and it is asked after until it is done; a process that dies meanwhile
finds the note and goes on waiting. What takes longer than an hour, or fails, is given up, and plain calls do the rest.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from memoriter import logs
from memoriter.embedding import answers
from memoriter.embedding.failures import told
from memoriter.errors import EmbeddingError
from memoriter.records import Progress

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix
    from memoriter.embedding.remote import Remote

log = logs.get("embedding")

NOTE = "batch_job"  #: the key of the note in the index
LIMIT_S = 3600.0
FIRST_POLL_S, LONGEST_POLL_S = 5.0, 60.0
CALL_S = 120.0  #: for each call to the batch API


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a job has come."""

    state: str  #: "running", "done" or "failed"
    done: int = 0
    words: str = ""  #: the provider's own


class Notes(Protocol):
    """Where the id of a job is kept."""

    def meta(self, key: str) -> str | None: ...

    def set_meta(self, **values: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _Job:
    """A job that is under way."""

    id: str
    identity: str
    hashes: list[str]
    submitted: float  #: seconds since the epoch

    @classmethod
    def read(cls, text: str | None) -> _Job | None:
        try:
            return cls(**json.loads(text)) if text else None
        except (ValueError, TypeError):
            return None


class Jobs:
    """Embeds through the batch API of a service, one job after the other."""

    def __init__(
        self,
        remote: Remote,
        notes: Notes,
        *,
        limit_s: float = LIMIT_S,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._remote = remote
        self._service: Any = remote.service
        self._notes = notes
        self._limit_s = limit_s
        self._clock = clock
        self._sleep = sleep

    @staticmethod
    def offered_by(remote: Remote) -> bool:
        """Whether this provider has a batch API."""
        return hasattr(remote.service, "submit")

    def run(
        self,
        items: Mapping[str, str],
        keep: Callable[[Mapping[str, Matrix]], None],
        progress: Callable[[Progress], None] | None = None,
    ) -> str | None:
        """Hand vectors to ``keep`` as they come; None, or why the rest must be embedded by plain calls."""
        left = {digest: text for digest, text in items.items() if text.strip()}
        try:
            for job in self._jobs(left):
                keep(self._wait(job, len(items), progress))
                self._notes.set_meta(**{NOTE: ""})
        except EmbeddingError as error:
            self._notes.set_meta(**{NOTE: ""})
            log.warning("the batch job is given up, plain calls go on: %s", error)
            return str(error)
        return None

    def _jobs(self, left: dict[str, str]) -> Iterator[_Job]:
        """The job that an earlier process left behind, then new ones until nothing is left."""
        noted = _Job.read(self._notes.meta(NOTE))
        if noted and noted.identity == str(self._remote.identity):
            log.info("going on with the batch job %s", noted.id)
            yield noted
            for digest in noted.hashes:
                left.pop(digest, None)
        digests = list(left)
        for start in range(0, len(digests), self._service.job_items):
            yield self._submit(
                {digest: left[digest] for digest in digests[start : start + self._service.job_items]}
            )

    def _submit(self, items: Mapping[str, str]) -> _Job:
        texts = [self._remote.fit(text) for text in items.values()]
        job_id = self._call(lambda: self._service.submit(texts, CALL_S))
        job = _Job(job_id, str(self._remote.identity), list(items), self._clock())
        self._notes.set_meta(**{NOTE: json.dumps(asdict(job))})
        log.info("batch job %s with %d texts", job.id, len(job.hashes))
        return job

    def _wait(self, job: _Job, total: int, progress: Callable[[Progress], None] | None) -> dict[str, Matrix]:
        pause = FIRST_POLL_S
        while True:
            now: JobState = self._call(lambda: self._service.state(job.id, CALL_S))
            if progress:
                progress(Progress("batch", now.done, total, f"{job.id}: {now.words}"))
            if now.state == "done":
                return self._results(job)
            if now.state == "failed":
                raise EmbeddingError(f"the batch job {job.id} ended as {now.words!r}")
            if self._clock() - job.submitted > self._limit_s:
                self._give_up(job)
                raise EmbeddingError(
                    f"the batch job {job.id} took longer than {self._limit_s / 60:g} minutes"
                )
            self._sleep(pause)
            pause = min(2 * pause, LONGEST_POLL_S)

    def _results(self, job: _Job) -> dict[str, Matrix]:
        """The vectors that are sound; a text whose vector is missing is left to a plain call."""
        dimensions = self._remote.identity.dimensions
        rows = self._call(lambda: self._service.results(job.id, len(job.hashes), CALL_S))
        got = [(digest, row) for digest, row in zip(job.hashes, rows, strict=True) if row is not None]
        if not got:
            raise EmbeddingError(f"the batch job {job.id} brought no vectors")
        matrix = answers.sound([row for _, row in got], len(got), dimensions)
        return {digest: row for (digest, _), row in zip(got, matrix, strict=True)}

    def _give_up(self, job: _Job) -> None:
        try:
            self._call(lambda: self._service.cancel(job.id, CALL_S))
        except EmbeddingError as error:
            log.info("the batch job %s could not be cancelled: %s", job.id, error)

    def _call(self, call: Callable[[], Any]) -> Any:
        service = self._service
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - vendors' clients raise what they like
            failure = told(
                self._remote.identity.provider,
                error,
                service.trouble(error),
                key=service.key,
                variable=service.variable,
            )
        raise failure


def by_custom_id(lines: Sequence[str], count: int) -> list[Any]:
    """The vectors of a results file of OpenAI's form, by the number that was given to each text."""
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
        rows[number] = decoded(response["body"]["data"][0]["embedding"])
    return rows


def decoded(embedding: Any) -> Any:
    """A vector as numbers, also where it was sent as base64 of float32."""
    if not isinstance(embedding, str):
        return embedding
    import base64

    import numpy as np

    return np.frombuffer(base64.b64decode(embedding), dtype="<f4")
