"""An agent that follows its settings while the process runs."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoriter.agent import ReloadingAgent
from memoriter.agent.service import Synced
from memoriter.config import Settings, load
from memoriter.errors import MemoriterError


class Owner:
    """The owner's settings, which change while the process runs."""

    def __init__(self, workspace: Path, home: Path) -> None:
        self.values: dict[str, object] = {
            "workspace": workspace,
            "home": home,
            "embedding.provider": "none",
            "watch.enabled": False,
        }
        self.loads = 0

    def __call__(self) -> Settings:
        self.loads += 1
        return load(arguments=self.values, environ={})


@pytest.fixture
def owner(workspace: Path, tmp_path: Path) -> Owner:
    return Owner(workspace, tmp_path / "state")


Open = Callable[..., ReloadingAgent]


@pytest.fixture
def open_agent(owner: Owner) -> Iterator[Open]:
    opened: list[ReloadingAgent] = []

    def open_(**options: object) -> ReloadingAgent:
        agent = ReloadingAgent(owner, **{"check_interval_s": 0.0, **options})  # type: ignore[arg-type]
        opened.append(agent)
        return agent

    yield open_
    for agent in opened:
        agent.close()


def until(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    pause = threading.Event()
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        pause.wait(0.01)
    return holds


def test_nothing_is_opened_before_the_first_use(owner: Owner, open_agent: Open) -> None:
    agent = open_agent()
    assert (agent.current, agent.error, owner.loads) == (None, None, 0)


def test_the_agent_is_the_same_while_the_settings_are_the_same(open_agent: Open) -> None:
    agent = open_agent()
    assert len({id(agent()) for _ in range(5)}) == 1
    assert agent.current is agent()


def test_the_agent_is_started_in_the_background(open_agent: Open) -> None:
    syncs: list[Synced] = []
    open_agent(on_sync=syncs.append)()
    assert until(lambda: bool(syncs))
    assert (syncs[0].reason, syncs[0].error) == ("start", None)


def test_changed_settings_open_another_agent(owner: Owner, open_agent: Open) -> None:
    agent = open_agent()
    first = agent()
    owner.values["search.max_results"] = 3
    second = agent()
    assert second is not first
    assert second.memory.settings.search.max_results == 3
    assert first.memory.search("anything").degraded is None, "calls that began earlier can still use it"


def test_a_replaced_agent_is_closed_after_the_grace_period(owner: Owner, open_agent: Open) -> None:
    agent = open_agent(grace_s=0.01)
    old = weakref.ref(agent())
    owner.values["search.max_results"] = 3
    agent()

    def gone() -> bool:
        gc.collect()
        return old() is None

    assert until(gone)


def test_settings_that_cannot_be_read_are_an_error_until_they_are_fixed(
    owner: Owner, open_agent: Open
) -> None:
    agent = open_agent()
    first = agent()
    owner.values["search.max_results"] = "many"
    broken = agent()
    assert broken.error is not None
    assert broken.error.startswith("The setting search.max_results = 'many'")
    assert agent.error == broken.error
    assert agent() is broken, "the same error is the same agent"
    del owner.values["search.max_results"]
    assert agent() is first, "the settings are as they were"
    assert agent.error is None


def test_settings_that_the_system_refuses_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def refuse() -> Settings:
        raise PermissionError(13, "Permission denied", r"C:\notes\config.yaml")

    agent = ReloadingAgent(refuse, check_interval_s=0.0)
    said = [agent().error for _ in range(3)]
    agent.close()
    assert said == [r"Permission denied (C:\notes\config.yaml)"] * 3
    assert [message for message in caplog.messages if "disabled" in message] == [
        r"memory is disabled: Permission denied (C:\notes\config.yaml)"
    ]


def test_memory_that_is_switched_off_is_closed(owner: Owner, open_agent: Open) -> None:
    agent = open_agent(grace_s=0.01)
    old = weakref.ref(agent())
    owner.values["plugins.slots.memory"] = "none"
    off = agent()
    assert off.off
    assert agent.current is None
    assert agent() is off
    with pytest.raises(MemoriterError, match="switched off"):
        _ = off.memory
    assert until(lambda: gc.collect() >= 0 and old() is None)
    owner.values["plugins.slots.memory"] = "memory-core"
    assert agent().error is None


def test_settings_are_loaded_at_intervals(owner: Owner, open_agent: Open) -> None:
    agent = open_agent(check_interval_s=3600.0)
    for _ in range(5):
        agent()
    assert owner.loads == 1


def test_settings_from_files_are_loaded_when_a_file_changes(
    owner: Owner, open_agent: Open, tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    agent = open_agent(files=[file], check_interval_s=3600.0)
    for text in ("a: 1\n", "a: 12\n"):
        agent()
        agent()
        file.write_text(text)
    agent()
    assert owner.loads == 3
    file.unlink()
    agent()
    assert owner.loads == 4


def test_an_error_is_retried_although_no_file_changed(owner: Owner, open_agent: Open, tmp_path: Path) -> None:
    agent = open_agent(files=[tmp_path / "config.yaml"])
    owner.values["search.max_results"] = "many"
    assert agent().error
    owner.values["search.max_results"] = 4
    assert agent().error is None


def test_a_closed_agent_opens_nothing(owner: Owner, open_agent: Open) -> None:
    agent = open_agent()
    first = agent()
    agent.close()
    assert agent().error == "The memory is closing."
    assert (agent.current, owner.loads) == (None, 1)
    with pytest.raises(MemoriterError, match="closed"):
        _ = first.memory.entries
    agent.close()


def test_closing_also_closes_replaced_agents(owner: Owner, open_agent: Open) -> None:
    agent = open_agent()
    first = agent()
    owner.values["search.max_results"] = 3
    second = agent()
    agent.close()
    for replaced in (first, second):
        with pytest.raises(MemoriterError, match="closed"):
            _ = replaced.memory.entries


def test_threads_that_ask_at_the_same_time_get_the_same_agent(open_agent: Open) -> None:
    agent = open_agent()
    together = threading.Barrier(4, timeout=120)
    seen: list[int] = []

    def ask() -> None:
        together.wait()
        seen.append(id(agent()))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 1
