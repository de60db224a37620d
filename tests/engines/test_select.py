"""The engine pool: one engine for each agent and settings, builtin if qmd fails, and never an exception."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from stubs import Clock, Maker

from memoriter.errors import EngineError, StoreError
from memoriter.extensions.qmd.engine import QmdSettings
from memoriter.extensions.qmd.fallback import (
    Cooldown,
    EnginePool,
    FallbackEngine,
    cache_key,
)
from memoriter.records import Query

SETTINGS = QmdSettings(Path("/bin/qmd"), Path("/notes"))


class Selecting:
    """A pool, and functions that create the engines of one agent."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.engines = EnginePool(cooldown=Cooldown(60, 600), clock=self.clock)
        self.qmd, self.builtin = Maker("qmd"), Maker("local")

    def get(self, agent: str = "main", settings: object = SETTINGS) -> FallbackEngine:
        return self.engines.get(cache_key(agent, settings), self.qmd, self.builtin)

    def provider(self) -> str:
        return self.get().search(Query("x")).provider


@pytest.fixture
def selecting() -> Selecting:
    return Selecting()


def test_the_key_depends_on_agent_and_settings() -> None:
    assert cache_key("main", SETTINGS) == cache_key("main", QmdSettings(Path("/bin/qmd"), Path("/notes")))
    others = [
        cache_key("work", SETTINGS),
        cache_key("main", QmdSettings(Path("/bin/qmd"), Path("/notes"), search_mode="query")),
        cache_key("main", QmdSettings(Path("/bin/qmd"), Path("/notes"), timeout_s=5)),
    ]
    assert len({cache_key("main", SETTINGS), *others}) == 4


@pytest.mark.requirement("A2")
def test_a_second_call_gets_the_same_engine(selecting: Selecting) -> None:
    first, again, other = selecting.get(), selecting.get(), selecting.get("work")
    assert first is again
    assert first is not other
    assert len(selecting.qmd.created) == 2


def test_eight_threads_create_one_engine(selecting: Selecting) -> None:
    with ThreadPoolExecutor(8) as pool:
        engines = {id(engine) for engine in pool.map(lambda _: selecting.get(), range(8))}
    assert (len(engines), len(selecting.qmd.created)) == (1, 1)


@pytest.mark.requirement("A2")
def test_a_failed_creation_logs_a_warning_and_selects_builtin(
    selecting: Selecting, caplog: pytest.LogCaptureFixture
) -> None:
    selecting.qmd.error = EngineError("the program 'qmd' is not on the PATH.")
    with caplog.at_level(logging.WARNING, "memoriter"):
        engine = selecting.get()
    answer = engine.search(Query("x"))
    assert (answer.provider, answer.fallback) == ("local", True)
    assert "not on the PATH" in (answer.degraded or "")
    assert [record.getMessage() for record in caplog.records] == [
        "qmd cannot be used, the builtin engine answers: the program 'qmd' is not on the PATH."
    ]


def test_an_engine_that_started_with_builtin_uses_a_repaired_qmd(selecting: Selecting) -> None:
    selecting.qmd.error = EngineError("not installed.")
    engine = selecting.get()
    selecting.qmd.error = None
    assert engine.search(Query("x")).provider == "local"
    selecting.clock.now += 60
    assert engine.search(Query("x")).provider == "qmd"
    assert selecting.get() is engine


@pytest.mark.requirement("A2")
def test_if_both_fail_the_error_of_builtin_is_raised(selecting: Selecting) -> None:
    selecting.qmd.error = EngineError("not installed.")
    selecting.builtin.error = StoreError("The home cannot be written.")
    with pytest.raises(StoreError, match=r"The home cannot be written\."):
        selecting.get()
    selecting.builtin.error = None
    assert selecting.provider() == "local"
    assert len(selecting.qmd.created) == 0


def test_a_failed_engine_leaves_the_pool_and_is_not_retried_immediately(selecting: Selecting) -> None:
    first = selecting.get()
    selecting.qmd.created[0].error = EngineError("qmd was killed.")
    first.search(Query("x"))
    second = selecting.get()
    assert second is not first
    assert second.search(Query("x")).provider == "local"
    assert len(selecting.qmd.created) == 1
    selecting.clock.now += 60
    third = selecting.get()
    assert third.search(Query("x")).provider == "qmd"
    assert len(selecting.qmd.created) == 2


def test_a_closed_engine_leaves_the_pool(selecting: Selecting) -> None:
    first = selecting.get()
    first.close()
    assert selecting.get() is not first
    assert selecting.provider() == "qmd"
