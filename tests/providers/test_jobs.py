"""The batch APIs of three vendors: jobs are submitted, polled, continued after a restart, and cancelled in time."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from test_faults import by_meaning
from vendors import DIMS, KEY, Vendors, url, vector

from memoriter import Memory
from memoriter.embedding import Embedder, EmbedderSpec, resolve
from memoriter.errors import EmbeddingError
from memoriter.extensions.vendors.embedder import VendorEmbedder
from memoriter.extensions.vendors.jobs import META_KEY, Jobs, by_custom_id
from memoriter.records import Progress

TEXTS = {f"hash-{number}": f"note number {number} about the garden" for number in range(5)}
SECRET = "push with ghp_0123456789abcdefghijABCDEFGHIJ012345"


class Meta(dict[str, str]):
    """The metadata of an index."""

    def meta(self, key: str) -> str | None:
        return self.get(key)

    def set_meta(self, **values: str) -> None:
        self.update(values)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(params=["openai", "voyage", "gemini"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


MakeJobs = Callable[..., Jobs]


@pytest.fixture
def make_jobs(vendors: Vendors, provider: str) -> Iterator[MakeJobs]:
    opened: list[Embedder] = []

    def make(meta: Meta, clock: Clock) -> Jobs:
        spec = EmbedderSpec(
            provider, dimensions=DIMS, base_urls={provider: url(provider)}, keys={provider: KEY}
        )
        choice = resolve(spec)
        assert isinstance(choice.remote, VendorEmbedder)
        assert choice.embedder is not None
        opened.append(choice.embedder)
        return Jobs(choice.remote, meta, clock=clock, sleep=clock.sleep)

    yield make
    for embedder in opened:
        embedder.close()


def right(saved: dict[str, np.ndarray], texts: dict[str, str]) -> None:
    assert saved.keys() == texts.keys()
    for digest, text in texts.items():
        np.testing.assert_allclose(saved[digest], vector(text), atol=1e-6)


@pytest.mark.requirement("C4")
def test_a_job_returns_the_vector_of_each_text(make_jobs: MakeJobs, vendors: Vendors) -> None:
    vendors.job_polls = 2
    meta, clock, saved, steps = Meta(), Clock(), dict[str, np.ndarray](), list[Progress]()
    assert make_jobs(meta, clock).run(TEXTS, saved.update, steps.append) is None
    right(saved, TEXTS)
    assert meta == {META_KEY: ""}
    assert [step.stage for step in steps] == ["batch"] * 3
    assert clock.now == 1000 + 5 + 10


def test_a_job_continues_after_a_restart(make_jobs: MakeJobs, vendors: Vendors) -> None:
    vendors.job_polls = 1000
    meta, clock, saved = Meta(), Clock(), dict[str, np.ndarray]()

    class Killed(BaseException):
        pass

    def die(_: Progress) -> None:
        raise Killed

    with pytest.raises(Killed):
        make_jobs(meta, clock).run(TEXTS, saved.update, die)
    submitted = json.loads(meta[META_KEY])
    assert submitted["hashes"] == list(TEXTS)
    before = len([path for path, _, body in vendors.requests if body is not None])

    vendors.job_polls = 0
    more = {**TEXTS, "hash-new": "one more note about the pond"}
    assert make_jobs(meta, clock).run(more, saved.update) is None
    right(saved, more)
    after = [body for _, _, body in vendors.requests if body is not None][before:]
    assert not any("number 0" in str(body) for body in after), "the texts were sent twice"


@pytest.mark.requirement("C4", "C12")
def test_a_job_that_takes_longer_than_an_hour_is_cancelled(make_jobs: MakeJobs, vendors: Vendors) -> None:
    vendors.job_polls = 10_000
    meta, clock, saved = Meta(), Clock(), dict[str, np.ndarray]()
    reason = make_jobs(meta, clock).run(TEXTS, saved.update)
    assert reason is not None
    assert reason.endswith("took longer than 60 minutes")
    assert 3600 < clock.now - 1000 < 3700
    assert "cancelled" in vendors.jobs
    assert (saved, meta) == ({}, {META_KEY: ""})


def test_a_failed_job_is_reported(make_jobs: MakeJobs, vendors: Vendors) -> None:
    vendors.fault = "job fails"
    reason = make_jobs(Meta(), Clock()).run(TEXTS, dict[str, np.ndarray]().update)
    assert reason is not None
    assert "ended as" in reason


def test_jobs_contain_no_secrets(make_jobs: MakeJobs, vendors: Vendors) -> None:
    make_jobs(Meta(), Clock()).run({"hash": SECRET}, dict[str, np.ndarray]().update)
    assert set(vendors.texts) == {"push with [redacted github token]"}


@pytest.mark.parametrize("provider", ["openai", "voyage"])  # the server does not spoil jobs of Gemini
@pytest.mark.parametrize("fault", ["nan", "wrong dims", "zero"])
def test_invalid_vectors_of_a_job_are_not_saved(make_jobs: MakeJobs, vendors: Vendors, fault: str) -> None:
    vendors.fault, saved = fault, dict[str, np.ndarray]()
    assert make_jobs(Meta(), Clock()).run(TEXTS, saved.update)
    assert saved == {}


def test_results_may_be_numbers_or_base64_and_in_any_order() -> None:
    packed = base64.b64encode(np.array([1, 2], dtype="<f4").tobytes()).decode()
    rows: list[tuple[int, int, object]] = [(2, 200, packed), (0, 200, [3.0, 4.0]), (1, 500, [])]
    lines = [
        json.dumps(
            {
                "custom_id": str(number),
                "response": {"status_code": status, "body": {"data": [{"embedding": row}]}},
            }
        )
        for number, status, row in rows
    ]
    found = by_custom_id([*lines, ""], 3)
    np.testing.assert_array_equal(found[0], [3, 4])
    assert found[1] is None
    np.testing.assert_array_equal(found[2], [1, 2])
    with pytest.raises(EmbeddingError, match="twice"):
        by_custom_id([lines[0], lines[0]], 3)


def test_index_by_batch(
    vendors: Vendors, provider: str, open_provider: Callable[..., Memory], note: Callable[[str, str], Path]
) -> None:
    for number in range(4):
        note(f"memory/{number}.md", f"Note number {number} about the garden.")
    memory = open_provider(provider)
    report = memory.sync(batch=True)
    assert (report.embedded, report.cached, report.pending, report.degraded) == (4, 0, 0, None)
    plain = [path for path, _, _ in vendors.requests if path.endswith(("/embeddings", ":batchEmbedContents"))]
    assert plain == []
    assert by_meaning(memory.search("garden"))


@pytest.mark.requirement("C4")
def test_plain_calls_embed_the_texts_of_a_failed_job(
    vendors: Vendors, provider: str, open_provider: Callable[..., Memory], note: Callable[[str, str], Path]
) -> None:
    note("memory/1.md", "A note about the garden.")
    vendors.fault = "job fails"
    report = open_provider(provider).sync(batch=True)
    assert (report.embedded, report.pending, report.degraded) == (1, 0, None)
