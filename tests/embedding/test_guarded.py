"""Late, failing and lying embedders: time limits, cooldowns and checked vectors, with a clock that tests advance."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from memoriter.embedding.guarded import Guarded, ProviderHealth
from memoriter.errors import EmbedderBusy, EmbeddingError, QuotaSpent
from memoriter.testing import HashEmbedder


class Failing(HashEmbedder):
    """Raises the given errors, one per call; then works."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__(4)
        self.errors = list(errors)
        self.calls = 0

    def _vectors(self, texts: Sequence[str]) -> np.ndarray:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return super()._vectors(texts)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def guarded(embedder: HashEmbedder, clock: Clock | None = None) -> Guarded:
    return Guarded(embedder, health=ProviderHealth("hash", clock or Clock()), queries=0)


def error_of(call: Callable[[], object]) -> str:
    with pytest.raises(EmbeddingError) as caught:
        call()
    return str(caught.value)


class TestCooldown:
    def test_starts_after_three_failures_and_says_when_it_ends(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        failing, clock = Failing(*[EmbedderBusy("the line is dead")] * 9), Clock()
        embedder = guarded(failing, clock)
        with caplog.at_level(logging.WARNING):
            errors = [error_of(lambda: embedder.embed_query("a1")) for _ in range(3)]
        assert errors == ["the line is dead"] * 3
        assert caplog.messages == ["the line is dead (hash is in cooldown; next attempt in 15 s)"]
        clock.now = 5
        message = error_of(lambda: embedder.embed(["a1"]))
        assert message == "the line is dead (hash is in cooldown; next attempt in 10 s)"
        assert embedder.health is not None
        assert embedder.health.cooldown == message
        assert failing.calls == 3

    def test_ends_when_the_embedder_works_again(self) -> None:
        failing, clock = Failing(*[EmbedderBusy("dead")] * 3), Clock()
        embedder = guarded(failing, clock)
        for _ in range(3):
            error_of(lambda: embedder.embed_query("a1"))
        clock.now = 15
        assert embedder.embed_query("a1").any()
        assert embedder.health is not None
        assert embedder.health.cooldown is None

    def test_is_twice_as_long_when_the_first_call_after_it_fails(self) -> None:
        failing, clock = Failing(*[EmbedderBusy("dead")] * 5), Clock()
        embedder = guarded(failing, clock)
        for _ in range(3):
            error_of(lambda: embedder.embed_query("a1"))
        clock.now = 15
        error_of(lambda: embedder.embed_query("a1"))
        clock.now = 15 + 29
        assert "next attempt in 1 s" in error_of(lambda: embedder.embed_query("a1"))
        assert failing.calls == 4

    def test_is_followed_by_one_call_at_a_time(self) -> None:
        inside, leave, clock = threading.Event(), threading.Event(), Clock()

        class Slow(Failing):
            def embed_query(self, text: str) -> np.ndarray:
                if text == "probe":
                    inside.set()
                    leave.wait(10)
                return super().embed_query(text)

        embedder = guarded(Slow(*[EmbedderBusy("dead")] * 3), clock)
        for _ in range(3):
            error_of(lambda: embedder.embed_query("a1"))
        clock.now = 20
        probe = threading.Thread(target=lambda: embedder.embed_query("probe"))
        probe.start()
        inside.wait(10)
        assert "next attempt with the next call" in error_of(lambda: embedder.embed_query("a1"))
        leave.set()
        probe.join()
        assert embedder.embed_query("a1").any()

    def test_is_long_from_the_start_when_the_quota_is_used_up(self) -> None:
        embedder = guarded(Failing(QuotaSpent("used up")))
        error_of(lambda: embedder.embed(["a1"]))
        assert "next attempt in 600 s" in error_of(lambda: embedder.embed(["a1"]))

    def test_is_as_long_as_the_provider_asks(self) -> None:
        embedder = guarded(Failing(*[EmbedderBusy("busy", 90)] * 3))
        for _ in range(3):
            error_of(lambda: embedder.embed(["a1"]))
        assert "next attempt in 90 s" in error_of(lambda: embedder.embed(["a1"]))

    def test_does_not_start_while_calls_succeed_in_between(self) -> None:
        failing = Failing()
        embedder = guarded(failing)
        for _ in range(5):
            failing.errors = [EmbedderBusy("dead"), EmbedderBusy("dead")]
            error_of(lambda: embedder.embed_query("a1"))
            error_of(lambda: embedder.embed_query("a1"))
            assert embedder.embed_query("a1").any()

    def test_starts_after_invalid_vectors_too(self) -> None:
        class Wide(HashEmbedder):
            def _vectors(self, texts: Sequence[str]) -> np.ndarray:
                return np.ones((len(texts), 3), dtype=np.float32)

        embedder = guarded(Wide(4))
        for _ in range(3):
            assert "3 dimensions instead of 4" in error_of(lambda: embedder.embed(["a1"]))
        assert "is in cooldown" in error_of(lambda: embedder.embed(["a1"]))

    def test_applies_to_all_uses_of_the_provider(self) -> None:
        health = ProviderHealth("hash", Clock())
        first = Guarded(Failing(*[EmbedderBusy("dead")] * 3), health=health)
        second = Guarded(HashEmbedder(4), health=health)
        for _ in range(3):
            error_of(lambda: first.embed_query("a1"))
        assert "is in cooldown" in error_of(lambda: second.embed_query("a1"))


class TestTimeLimit:
    @pytest.mark.requirement("C12")
    def test_ends_a_call_that_never_returns(self) -> None:
        never = threading.Event()

        class Hanging(HashEmbedder):
            def _vectors(self, texts: Sequence[str]) -> np.ndarray:
                never.wait(20)
                return super()._vectors(texts)

        late = Guarded(Hanging(), query_s=0.01, batch_s=0.02)
        with pytest.raises(EmbedderBusy, match=r"^hash did not answer within 0\.01 s$"):
            late.embed_query("a1")
        with pytest.raises(EmbedderBusy, match=r"within 0\.02 s"):
            late.embed(["a1"])
        never.set()

    def test_keeps_results_and_errors_that_come_in_time(self) -> None:
        timed = Guarded(Failing(EmbeddingError("wrong")), query_s=20, batch_s=20)
        with pytest.raises(EmbeddingError, match=r"^wrong$"):
            timed.embed(["a1"])
        np.testing.assert_array_equal(timed.embed(["a1"]), HashEmbedder(4).embed(["a1"]))
        np.testing.assert_array_equal(timed.embed_query("a1"), HashEmbedder(4).embed_query("a1"))
