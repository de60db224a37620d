"""Pinecone is a copy on another machine: it may fail, lag or lose vectors, and every answer stays right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_pinecone import KEY, FakePinecone, pinecone_server, pinecone_settings
from store_samples import ALICE, paths, put, put_vector, units

from memoriter.errors import StoreUnavailable
from memoriter.extensions import external_tables as external
from memoriter.store import Index, open_index

COUNT = 30
VECTORS = units(COUNT, ALICE.dimensions)
ORDER = [f"{number}.md" for number in np.argsort(-(VECTORS @ VECTORS[3]), kind="stable")]


@pytest.fixture
def account() -> Iterator[FakePinecone]:
    with pinecone_server() as account:
        yield account


@pytest.fixture
def index(account: FakePinecone, tmp_path: Path) -> Iterator[Index]:
    with open_(account, tmp_path) as index:
        yield index


def open_(account: FakePinecone, folder: Path, **fields: object) -> Index:
    access = {"api_url": account.url, "timeout_s": 0.5} | fields
    return open_index(folder, engine="pinecone", settings=pinecone_settings(**access))


def fill(index: Index, start: int = 0, end: int = COUNT) -> None:
    with index.transaction():
        for number in range(start, end):
            put_vector(index, f"{number}.md", VECTORS[number], ALICE)
    index.refresh(ALICE)


def order(index: Index) -> list[str]:
    return paths(index, index.nearest(VECTORS[3], ALICE, limit=COUNT))


def held(account: FakePinecone) -> dict[str, int]:
    return {name: len(vectors) for name, vectors in account.namespaces.items() if vectors}


def test_a_sync_creates_the_index_and_uploads_vectors_without_text(
    account: FakePinecone, index: Index
) -> None:
    fill(index)
    assert account.indexes == {"memoriter": ALICE.dimensions}
    [(namespace, count)] = held(account).items()
    assert (namespace.split(".")[0], count) == ("main", COUNT)
    sent = json.dumps(account.bodies)
    assert ".md" not in sent
    assert order(index) == ORDER
    assert account.requests[-1] == ("POST", "/query")
    assert index.vector_problem is None


def test_each_agent_and_each_home_has_its_own_namespaces(account: FakePinecone, tmp_path: Path) -> None:
    for home, agent in (("one", "main"), ("two", "main"), ("one", "writer")):
        with open_(account, tmp_path / home / agent, agent=agent) as index:
            fill(index)
    names = sorted(held(account))
    assert [name.split(".")[0] for name in names] == ["main", "main", "writer"]
    assert len(set(names)) == 3


def test_an_index_whose_host_is_known_needs_no_lookup(account: FakePinecone, tmp_path: Path) -> None:
    account.indexes["memoriter"] = ALICE.dimensions
    with open_(account, tmp_path, host=account.url, api_url="http://127.0.0.1:9") as index:
        fill(index)
        assert order(index) == ORDER
    assert not any(path.startswith("/indexes") for _, path in account.requests)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("401", "Pinecone rejected the key (status 401). Check PINECONE_API_KEY"),
        ("429", "Pinecone reports a rate limit; it asks to wait 7 s"),
        ("500", 'Pinecone failed with status 500: {"error": {"code": "UNKNOWN", "message": "internal"}}'),
        ("hang", "Pinecone cannot be reached: ReadTimeout"),
        ("html", "An answer of Pinecone is not JSON"),
        ("redirect", "Pinecone failed with status 302: {}"),
    ],
)
def test_while_pinecone_fails_vectors_are_compared_here_and_the_answer_says_so(
    account: FakePinecone, index: Index, fault: str, why: str
) -> None:
    fill(index)
    account.fault = fault
    assert order(index) == ORDER
    assert index.vector_problem == f"{why}. Pinecone was not used: vectors were compared on this machine."
    asked = len(account.requests)
    assert order(index) == ORDER
    assert len(account.requests) == asked, "it is not asked again during the cooldown"
    assert KEY not in str(index.vector_problem)


def test_keywords_work_while_pinecone_is_down(account: FakePinecone, index: Index) -> None:
    account.fault = "500"
    put(index, "cat.md", "the cat sleeps")
    fill(index)
    assert len(index.keyword(["cat"], limit=5)) == 1
    assert held(account) == {}


def test_it_is_used_again_after_the_time_that_it_asks_for(
    account: FakePinecone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.fault, account.retry_after = "429", "0"
    with open_(account, tmp_path) as index:
        fill(index)
        assert "rate limit" in str(index.vector_problem)
        account.fault = None
        monkeypatch.setattr(external, "BATCH_ROWS", 2)
        assert order(index) == ORDER
        assert (held(account) != {}, index.vector_problem) == (True, None)


def test_rows_that_pinecone_has_not_applied_yet_are_found(account: FakePinecone, index: Index) -> None:
    fill(index, 0, 20)
    account.lag = 1
    fill(index, 20)
    [visible] = held(account).values()
    assert (visible, order(index)) == (20, ORDER)
    account.lag = 0
    with account.lock:
        account.apply()
    assert (list(held(account).values()), order(index)) == ([COUNT], ORDER)


def test_a_namespace_that_was_emptied_is_filled_again(
    account: FakePinecone, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(index)
    account.namespaces.clear()
    assert order(index) == ORDER
    monkeypatch.setattr(external, "BATCH_ROWS", 2)
    assert order(index) == ORDER
    assert list(held(account).values()) == [COUNT]


def test_an_index_of_other_dimensions_is_named_in_the_answer(account: FakePinecone, index: Index) -> None:
    account.indexes["memoriter"] = 1536
    fill(index)
    assert order(index) == ORDER
    assert "stores vectors of 1536 dimensions, but the embedder makes 8" in str(index.vector_problem)
    assert held(account) == {}


def test_an_index_that_is_not_ready_is_asked_again_later(account: FakePinecone, index: Index) -> None:
    account.fault = "not ready"
    fill(index)
    assert "is not ready yet" in str(index.vector_problem)


def test_without_a_key_nothing_is_sent(account: FakePinecone, tmp_path: Path) -> None:
    chosen = pinecone_settings(api_key=None, api_url=account.url)
    with open_index(tmp_path, engine="pinecone", settings=chosen) as index:
        fill(index)
        assert order(index) == ORDER
        assert "Set `pinecone.api_key` or PINECONE_API_KEY" in str(index.vector_problem)
    assert account.requests == []


def test_erasing_deletes_the_vectors_of_deleted_rows_there(account: FakePinecone, index: Index) -> None:
    fill(index)
    index.remove(["3.md", "7.md"])
    assert list(held(account).values()) == [COUNT]
    assert index.erase([], ALICE)
    [vectors] = account.namespaces.values()
    gone = {tuple(VECTORS[3].tolist()), tuple(VECTORS[7].tolist())}
    assert (len(vectors), gone & {tuple(vector) for vector in vectors.values()}) == (COUNT - 2, set())


def test_an_erasure_deletes_older_namespaces_of_the_same_memory(
    account: FakePinecone, tmp_path: Path
) -> None:
    with open_(account, tmp_path) as index:
        fill(index)
        index.heal("test")
        fill(index, 0, 5)
        assert index.erase([], ALICE)
    assert list(held(account).values()) == [5]


def test_an_erasure_that_pinecone_does_not_confirm_is_reported(account: FakePinecone, index: Index) -> None:
    fill(index)
    index.remove(["3.md"])
    account.fault = "500"
    with pytest.raises(StoreUnavailable, match="status 500"):
        index.erase([], ALICE)
    account.fault = None
    assert index.erase([], ALICE)
    assert list(held(account).values()) == [COUNT - 1]


def test_a_vector_that_was_sent_before_a_crash_is_deleted_too(
    account: FakePinecone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_(account, tmp_path) as index:
        fill(index, 0, 5)

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with open_(account, tmp_path) as index, monkeypatch.context() as patch:
        patch.setattr(external.ExternalIndex, "_point", crash)
        with pytest.raises(KeyboardInterrupt):
            fill(index, 5, 6)
    assert list(held(account).values()) == [6]
    with open_(account, tmp_path) as index:
        index.remove(["5.md"])
        index.erase([], ALICE)
    assert list(held(account).values()) == [5]
