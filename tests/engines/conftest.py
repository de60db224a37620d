"""A fake qmd program, and engines that run it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from standin import StandIn

from memoriter.extensions.qmd.engine import QmdEngine, QmdSettings
from memoriter.extensions.qmd.updater import UpdateSchedule
from memoriter.notes.workspace import Workspace


@pytest.fixture
def standin(tmp_path: Path) -> StandIn:
    return StandIn.make(tmp_path / "bin")


OpenQmd = Callable[..., QmdEngine]


@pytest.fixture
def open_qmd(standin: StandIn, workspace: Path, tmp_path: Path) -> Iterator[OpenQmd]:
    """Return a function that opens a qmd engine over the workspace with these settings and this schedule."""
    opened: list[QmdEngine] = []

    def open_(schedule: UpdateSchedule | None = None, *, clock=None, **settings: object) -> QmdEngine:
        base = QmdSettings(tmp_path / "qmd", workspace, command=str(standin.command), timeout_s=20.0)
        schedule = schedule or UpdateSchedule(debounce_s=0, wait_s=10)
        chosen = replace(base, schedule=schedule, **settings)
        more = {} if clock is None else {"clock": clock}
        engine = QmdEngine(chosen, Workspace(workspace, extra_paths=chosen.extra_paths), **more)
        opened.append(engine)
        return engine

    yield open_
    for engine in opened:
        engine.close()


@pytest.fixture(autouse=True)
def no_threads_left() -> Iterator[None]:
    """Check that no thread keeps running after a test."""
    yield
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("memoriter-qmd")]
    assert left == []
