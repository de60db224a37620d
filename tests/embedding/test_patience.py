"""Late embedders, busy ones and broken ones: deadlines, retries and rests, with a clock that is turned by hand."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from memoriter.embedding.breaker import Breaker
from memoriter.embedding.deadline import Deadline
from memoriter.embedding.retrying import LONGEST_PAUSE_S, Retrying
from memoriter.errors import EmbedderBusy, EmbeddingError, QuotaSpent
from memoriter.testing import HashEmbedder


class Moody(HashEmbedder):
    """Fails with what it is told to, in order; then it works."""

    def __init__(self, *moods: Exception) -> None:
        super().__init__(4)
        self.moods = list(moods)
        self.calls = 0

    def _vectors(self, texts: Sequence[str]) -> np.ndarray:
        self.calls += 1
        if self.moods:
            raise self.moods.pop(0)
        return super()._vectors(texts)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class TestRetries:
    def patient(self, embedder: Moody, chance: float = 1.0) -> tuple[Retrying, Clock]:
        clock = Clock()
        return Retrying(embedder, sleep=clock.sleep, chance=lambda: chance), clock

    def test_pause_longer_each_time(self) -> None:
        retrying, clock = self.patient(Moody(*[EmbedderBusy("busy")] * 3))
        assert retrying.embed(["a1"]).any()
        assert clock.slept == [0.5, 1.0, 2.0]

    def test_are_spread_at_random(self) -> None:
        retrying, clock = self.patient(Moody(EmbedderBusy("busy")), chance=0.0)
        retrying.embed(["a1"])
        assert clock.slept == [0.25]

    def test_wait_as_long_as_the_provider_asks(self) -> None:
        retrying, clock = self.patient(Moody(EmbedderBusy("busy", 7)), chance=0.5)
        retrying.embed(["a1"])
        assert clock.slept == [7.5]

    def test_end_when_the_provider_asks_for_too_much(self) -> None:
        moody = Moody(EmbedderBusy("busy", LONGEST_PAUSE_S + 1))
        retrying, clock = self.patient(moody)
        with pytest.raises(EmbedderBusy):
            retrying.embed(["a1"])
        assert (moody.calls, clock.slept) == (1, [])

    def test_end_after_some_attempts(self) -> None:
        moody = Moody(*[EmbedderBusy("busy")] * 9)
        retrying, _ = self.patient(moody)
        with pytest.raises(EmbedderBusy):
            retrying.embed(["a1"])
        assert moody.calls == 4

    @pytest.mark.parametrize("error", [QuotaSpent("used up"), EmbeddingError("wrong key")])
    def test_are_not_made_where_they_cannot_help(self, error: EmbeddingError) -> None:
        moody = Moody(error)
        retrying, clock = self.patient(moody)
        with pytest.raises(type(error)):
            retrying.embed(["a1"])
        assert (moody.calls, clock.slept) == (1, [])

    def test_of_a_query_are_one_and_at_once(self) -> None:
        retrying, clock = self.patient(Moody(EmbedderBusy("lost")))
        assert retrying.embed_query("a1").any()
        moody = Moody(EmbedderBusy("busy", 2))
        retrying, clock = self.patient(moody)
        with pytest.raises(EmbedderBusy):
            retrying.embed_query("a1")
        assert (moody.calls, clock.slept) == (1, [])


class TestRest:
    def fails(self, call: Callable[[], object]) -> str:
        with pytest.raises(EmbeddingError) as caught:
            call()
        return str(caught.value)

    def test_begins_after_three_failures_and_says_until_when(self, caplog: pytest.LogCaptureFixture) -> None:
        moody, clock = Moody(*[EmbedderBusy("the line is dead")] * 9), Clock()
        breaker = Breaker(moody, clock=clock)
        assert [self.fails(lambda: breaker.embed_query("a1")) for _ in range(3)] == ["the line is dead"] * 3
        clock.now = 5
        with caplog.at_level(logging.WARNING):
            said = self.fails(lambda: breaker.embed(["a1"]))
        assert said == "the line is dead (hash is left alone and tried again in 10 s)"
        assert breaker.resting == said
        assert moody.calls == 3

    def test_ends_by_itself_when_the_embedder_works_again(self) -> None:
        moody, clock = Moody(*[EmbedderBusy("dead")] * 3), Clock()
        breaker = Breaker(moody, clock=clock)
        for _ in range(3):
            self.fails(lambda: breaker.embed_query("a1"))
        clock.now = 15
        assert breaker.embed_query("a1").any()
        assert breaker.resting is None

    def test_is_twice_as_long_when_the_trial_fails(self) -> None:
        moody, clock = Moody(*[EmbedderBusy("dead")] * 5), Clock()
        breaker = Breaker(moody, clock=clock)
        for _ in range(3):
            self.fails(lambda: breaker.embed_query("a1"))
        clock.now = 15
        self.fails(lambda: breaker.embed_query("a1"))
        clock.now = 15 + 29
        assert "tried again in 1 s" in self.fails(lambda: breaker.embed_query("a1"))
        assert moody.calls == 4

    def test_lets_one_call_through_at_a_time(self) -> None:
        inside, leave, clock = threading.Event(), threading.Event(), Clock()

        class Slow(Moody):
            def embed_query(self, text: str) -> np.ndarray:
                if text == "trial":
                    inside.set()
                    leave.wait(10)
                return super().embed_query(text)

        slow = Slow(*[EmbedderBusy("dead")] * 3)
        breaker = Breaker(slow, clock=clock)
        for _ in range(3):
            self.fails(lambda: breaker.embed_query("a1"))
        clock.now = 20
        trial = threading.Thread(target=lambda: breaker.embed_query("trial"))
        trial.start()
        inside.wait(10)
        assert "with the next call" in self.fails(lambda: breaker.embed_query("a1"))
        leave.set()
        trial.join()
        assert breaker.embed_query("a1").any()

    def test_is_long_at_once_when_the_quota_is_used_up(self) -> None:
        clock = Clock()
        breaker = Breaker(Moody(QuotaSpent("used up")), clock=clock)
        self.fails(lambda: breaker.embed(["a1"]))
        assert "tried again in 600 s" in self.fails(lambda: breaker.embed(["a1"]))

    def test_is_as_long_as_the_provider_asks(self) -> None:
        breaker = Breaker(Moody(*[EmbedderBusy("busy", 90)] * 3), clock=Clock())
        for _ in range(3):
            self.fails(lambda: breaker.embed(["a1"]))
        assert "tried again in 90 s" in self.fails(lambda: breaker.embed(["a1"]))

    def test_does_not_begin_while_calls_work_in_between(self) -> None:
        moody = Moody()
        breaker = Breaker(moody, clock=Clock())
        for _ in range(5):
            moody.moods = [EmbedderBusy("dead"), EmbedderBusy("dead")]
            self.fails(lambda: breaker.embed_query("a1"))
            self.fails(lambda: breaker.embed_query("a1"))
            assert breaker.embed_query("a1").any()


class TestDeadline:
    def test_of_a_call_that_never_ends(self) -> None:
        never = threading.Event()

        class Hanging(HashEmbedder):
            def _vectors(self, texts: Sequence[str]) -> np.ndarray:
                never.wait(20)
                return super()._vectors(texts)

        late = Deadline(Hanging(), query_s=0.01, batch_s=0.02)
        with pytest.raises(EmbedderBusy, match=r"^hash did not answer within 0\.01 s$"):
            late.embed_query("a1")
        with pytest.raises(EmbedderBusy, match=r"within 0\.02 s"):
            late.embed(["a1"])
        never.set()

    def test_hands_over_what_came_in_time(self) -> None:
        timed = Deadline(Moody(EmbeddingError("wrong")), query_s=20, batch_s=20)
        with pytest.raises(EmbeddingError, match=r"^wrong$"):
            timed.embed(["a1"])
        np.testing.assert_array_equal(timed.embed(["a1"]), HashEmbedder(4).embed(["a1"]))
        np.testing.assert_array_equal(timed.embed_query("a1"), HashEmbedder(4).embed_query("a1"))
