from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from store_samples import ALICE, by_hand, document, units

from memoriter.errors import StoreError
from memoriter.records import Identity
from memoriter.store import SqliteIndex, open_index

BOB = Identity("local", "bob", 8)
VECTORS = dict(zip("abcdefgh", units(8, 8), strict=True))
#: Bytes of one vector.
ONE = 8 * 4


@pytest.fixture
def index(tmp_path: Path) -> SqliteIndex:
    return open_index(tmp_path)


def age(index: SqliteIndex, **used_at: float) -> None:
    with by_hand(index.path) as connection:
        connection.executemany(
            "update embedding_cache set used_at = ? where hash = ?",
            [(at, name) for name, at in used_at.items()],
        )


def cached(index: SqliteIndex, identity: Identity = ALICE) -> set[str]:
    return index.known(identity, "abcdefgh")


def use(index: SqliteIndex, path: str, text: str, identity: Identity) -> str:
    """Index a chunk that uses a vector of this identity. Return the hash of the vector."""
    note, chunks = document(path, text)
    index.save(identity, {chunks[0].hash: VECTORS["a"]})
    index.replace(note, chunks, identity=identity)
    return chunks[0].hash


def test_a_vector_is_stored_exactly_and_only_under_its_identity(index: SqliteIndex) -> None:
    index.save(ALICE, {"a": VECTORS["a"], "b": VECTORS["b"]})
    loaded = index.load(ALICE, ["a", "b", "c"])
    assert {name: vector.tobytes() for name, vector in loaded.items()} == {
        name: VECTORS[name].tobytes() for name in "ab"
    }
    assert (index.known(ALICE, ["b", "c"]), index.known(BOB, ["a"]), index.load(BOB, ["a"])) == (
        {"b"},
        set(),
        {},
    )


def test_the_same_model_with_other_dimensions_has_other_vectors(index: SqliteIndex) -> None:
    index.save(ALICE, {"a": VECTORS["a"]})
    shorter = Identity(ALICE.provider, ALICE.model, 4, ALICE.key)
    assert index.known(shorter, ["a"]) == set()
    index.save(shorter, {"a": units(1, 4)[0]})
    assert [len(index.load(identity, ["a"])["a"]) for identity in (shorter, ALICE)] == [4, 8]


@pytest.mark.parametrize("bad", [np.full(8, np.nan), np.full(8, np.inf), np.ones(7), np.ones((1, 8))])
def test_an_invalid_vector_is_rejected(index: SqliteIndex, bad: object) -> None:
    with pytest.raises(StoreError, match=r"NaN or infinity|dimensions"):
        index.save(ALICE, {"a": VECTORS["a"], "b": bad})  # type: ignore[dict-item]
    assert cached(index) == set()


def test_a_cache_within_its_limit_is_not_pruned(index: SqliteIndex) -> None:
    index.save(ALICE, VECTORS)
    assert (index.prune(8 * ONE), index.prune(10**9), len(cached(index))) == (0, 0, 8)


def test_the_longest_unused_vectors_are_pruned_first(index: SqliteIndex) -> None:
    index.save(ALICE, {name: VECTORS[name] for name in "abcd"})
    age(index, a=4, b=1, c=3, d=2)
    assert (index.prune(2 * ONE), cached(index)) == (2, {"a", "c"})


def test_a_vector_in_use_is_never_pruned(index: SqliteIndex) -> None:
    used = use(index, "a.md", "text", ALICE)
    index.save(ALICE, VECTORS)
    age(index, **{used: 0.0})
    assert (index.prune(0), index.known(ALICE, [used]), cached(index)) == (8, {used}, set())
    assert list(index.vectors_of([1], ALICE)) == [1]


def test_a_vector_of_another_model_for_the_same_text_is_unused(index: SqliteIndex) -> None:
    hash_ = use(index, "a.md", "text", ALICE)
    index.save(BOB, {hash_: VECTORS["b"]})
    assert (index.prune(0), index.known(ALICE, [hash_]), index.known(BOB, [hash_])) == (1, {hash_}, set())


def test_a_vector_ages_from_its_release(index: SqliteIndex) -> None:
    let_go = use(index, "a.md", "text", ALICE)
    index.save(ALICE, {"b": VECTORS["b"]})
    age(index, **{let_go: 1.0, "b": 2.0})
    index.remove(["a.md"])
    assert (index.prune(ONE), index.known(ALICE, [let_go, "b"])) == (1, {let_go})


def test_moved_or_restored_text_keeps_its_vector(index: SqliteIndex) -> None:
    hash_ = use(index, "a.md", "text", ALICE)
    index.remove(["a.md"])
    note, chunks = document("other/place.md", "text")
    index.replace(note, chunks, identity=ALICE)
    assert (chunks[0].hash, index.counts(str(ALICE)).embedded) == (hash_, 1)


def test_writing_vectors_joins_the_transaction(index: SqliteIndex) -> None:
    with contextlib.suppress(ZeroDivisionError), index.transaction():
        index.save(ALICE, VECTORS)
        assert len(cached(index)) == 8
        raise ZeroDivisionError
    assert cached(index) == set()
