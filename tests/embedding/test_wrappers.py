"""Batches within budgets, vectors computed once, failures reported and not raised by `ensure`."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter.embedding import Batched, Cached, Ensured
from memoriter.embedding.cache import split
from memoriter.embedding.guarded import Guarded
from memoriter.errors import EmbeddingError
from memoriter.records import Identity, Progress
from memoriter.testing import FailingEmbedder, HashEmbedder
from memoriter.text import estimate_tokens

TEXTS = [f"note number {number} about the garden" for number in range(20)]


class MemoryCache:
    """A VectorCache in memory."""

    def __init__(self) -> None:
        self.vectors: dict[tuple[Identity, str], np.ndarray] = {}
        self.saves: list[int] = []

    def known(self, identity: Identity, hashes: Iterable[str]) -> set[str]:
        return {digest for digest in hashes if (identity, digest) in self.vectors}

    def load(self, identity: Identity, hashes: Iterable[str]) -> dict[str, np.ndarray]:
        return {digest: self.vectors[identity, digest] for digest in self.known(identity, hashes)}

    def save(self, identity: Identity, vectors: Mapping[str, np.ndarray]) -> None:
        self.saves.append(len(vectors))
        self.vectors |= {(identity, digest): vector for digest, vector in vectors.items()}


def by_hash(texts: Sequence[str]) -> dict[str, str]:
    return {hashlib.sha256(text.encode()).hexdigest(): text for text in texts}


class Lying(HashEmbedder):
    """Returns or raises a given answer."""

    def __init__(self, answer: object) -> None:
        super().__init__(2)
        self.answer = answer

    def _vectors(self, texts: Sequence[str]) -> np.ndarray:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


class TestBatches:
    @pytest.mark.requirement("A9")
    @given(st.lists(st.text(max_size=60), max_size=30), st.integers(1, 5), st.integers(1, 40))
    def test_cover_the_texts_in_order_within_both_budgets(
        self, texts: list[str], items: int, tokens: int
    ) -> None:
        batches = list(split(texts, items=items, tokens=tokens))
        assert [index for batch in batches for index in batch] == list(range(len(texts)))
        for batch in batches:
            cost = sum(estimate_tokens(texts[index]) for index in batch)
            assert len(batch) == 1 or (len(batch) <= items and cost <= tokens)

    def test_keep_the_order_of_the_texts(self) -> None:
        embedder = HashEmbedder()
        rows = Batched(embedder, items=3, concurrency=4).embed(TEXTS)
        np.testing.assert_array_equal(rows, embedder.embed(TEXTS))

    def test_are_passed_on_when_they_finish(self) -> None:
        seen: list[int] = []
        threads: set[int] = set()

        def keep(indices: Sequence[int], rows: np.ndarray) -> None:
            assert len(indices) == len(rows) <= 3
            seen.extend(indices)
            threads.add(threading.get_ident())

        rows = Batched(HashEmbedder(), items=3).embed(TEXTS, on_batch=keep, collect=False)
        assert sorted(seen) == list(range(len(TEXTS)))
        assert threads == {threading.get_ident()}
        assert rows.shape == (0, 64)

    @pytest.mark.requirement("C11")
    def test_run_at_most_four_at_a_time(self) -> None:
        four = threading.Barrier(4, timeout=120)
        running, most = 0, 0
        lock = threading.Lock()

        class Meeting(HashEmbedder):
            def embed(self, texts: Sequence[str]) -> np.ndarray:
                nonlocal running, most
                with lock:
                    running += 1
                    most = max(most, running)
                four.wait()
                with lock:
                    running -= 1
                return super().embed(texts)

        Batched(Meeting(), items=1, concurrency=4).embed(TEXTS[:12])
        assert most == 4

    @pytest.mark.requirement("C11")
    def test_stop_at_the_first_failure_and_keep_finished_ones(self) -> None:
        embedder = FailingEmbedder(after=5)
        kept: list[int] = []
        with pytest.raises(EmbeddingError, match="out of order"):
            Batched(embedder, items=1, concurrency=2).embed(TEXTS, on_batch=lambda i, _: kept.extend(i))
        assert len(kept) == 5
        assert embedder.texts <= 7


class TestCachedVectors:
    @pytest.mark.requirement("A9")
    def test_are_saved_and_not_computed_again(self) -> None:
        embedder, cache = HashEmbedder(), MemoryCache()
        cached = Cached(Batched(embedder, items=6), cache)
        assert cached.ensure(by_hash(TEXTS)) == Ensured(embedded=20)
        assert sorted(cache.saves) == [2, 6, 6, 6]
        assert cached.ensure(by_hash([*TEXTS, "one more"])) == Ensured(embedded=1, cached=20)
        assert embedder.texts == 21
        np.testing.assert_array_equal(
            [cache.vectors[cached.identity, digest] for digest in by_hash(TEXTS)], embedder.embed(TEXTS)
        )

    def test_are_kept_when_the_embedder_fails_and_the_failure_is_reported(self) -> None:
        embedder, cache = FailingEmbedder(after=2), MemoryCache()
        cached = Cached(Batched(embedder, items=5, concurrency=1), cache)
        result = cached.ensure(by_hash(TEXTS))
        assert result == Ensured(embedded=10, error="the embedder is out of order")
        embedder.heal()
        assert cached.ensure(by_hash(TEXTS)) == Ensured(embedded=10, cached=10)

    def test_are_reported_as_progress(self) -> None:
        reported: list[Progress] = []
        Cached(Batched(HashEmbedder(), items=10, concurrency=1), MemoryCache()).ensure(
            by_hash(TEXTS), reported.append
        )
        assert reported == [Progress("embed", 10, 20), Progress("embed", 20, 20)]

    def test_need_no_embedder_when_there_are_no_texts(self) -> None:
        assert Cached(Batched(FailingEmbedder()), MemoryCache()).ensure({}) == Ensured()

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (np.zeros((1, 2)), "the embedder returned 1 vectors for 2 texts"),
            (np.zeros((2, 3)), "the embedder returned vectors with 3 dimensions instead of 2"),
            ([[1.0], [1.0, 2.0]], "the embedder returned vectors of different lengths"),
            (None, "the embedder returned object instead of numbers"),
            (RuntimeError("boom\nin detail"), "the embedder hash failed: boom"),
            (KeyError(), "the embedder hash failed: KeyError"),
        ],
    )
    def test_are_never_invalid(self, answer: object, error: str) -> None:
        cache = MemoryCache()
        result = Cached(Batched(Lying(answer)), cache).ensure({"1": "a", "2": "b"})
        assert (result, cache.vectors) == (Ensured(error=error), {})

    def test_are_cleaned_before_they_are_saved(self) -> None:
        cache = MemoryCache()
        lying = Lying(np.array([[np.nan, 5], [np.inf, np.nan]]))
        assert Cached(Batched(lying), cache).ensure({"1": "a", "2": "b"}) == Ensured(embedded=2)
        vectors = [cache.vectors[lying.identity, digest] for digest in ("1", "2")]
        np.testing.assert_array_equal(vectors, [[0, 1], [0, 0]])


class TestQueries:
    def test_are_remembered_until_there_are_too_many(self) -> None:
        embedder = HashEmbedder()
        queries = Guarded(embedder, queries=2)
        for text in ("a1", "b2", "a1", "c3", "a1", "b2"):
            np.testing.assert_array_equal(queries.embed_query(text), HashEmbedder().embed_query(text))
        assert embedder.queries == 4

    def test_have_read_only_vectors(self) -> None:
        with pytest.raises(ValueError, match="read-only"):
            Guarded(HashEmbedder()).embed_query("a1")[0] = 5

    def test_that_failed_are_embedded_again(self) -> None:
        embedder = FailingEmbedder()
        queries = Guarded(embedder)
        with pytest.raises(EmbeddingError):
            queries.embed_query("garden")
        embedder.heal()
        assert queries.embed_query("garden").any()

    def test_of_a_faulty_embedder_raise_embedding_errors(self) -> None:
        with pytest.raises(EmbeddingError, match=r"^the embedder hash failed: boom$"):
            Guarded(Lying(OSError("boom"))).embed_query("garden")
        with pytest.raises(EmbeddingError, match="3 dimensions instead of 2"):
            Guarded(Lying(np.zeros((1, 3)))).embed_query("garden")
