"""Fixtures that start gateways over a new workspace."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from gateways import Running, Start, running

from memoriter.server.http import observe
from memoriter.testing import sample_workspace


@pytest.fixture(autouse=True)
def restore_logging() -> Iterator[None]:
    """Restore the logging configuration, which commands change."""
    loggers = [logging.getLogger(name) for name in ("memoriter", *observe.OTHER_LOGGERS)]
    before = [(one.handlers[:], one.level, one.propagate) for one in loggers]
    yield
    for one, (handlers, level, propagate) in zip(loggers, before, strict=True):
        one.handlers[:] = handlers
        one.setLevel(level)
        one.propagate = propagate


@pytest.fixture
def start(workspace: Path, tmp_path: Path) -> Iterator[Start]:
    """Start gateways over the sample workspace. All stop at the end of the test."""
    sample_workspace(workspace)
    with ExitStack() as stack:

        def start_(**settings: object) -> Running:
            return stack.enter_context(running(workspace, tmp_path / "home", **settings))  # type: ignore[arg-type]

        yield start_


@pytest.fixture
def gateway(start: Start) -> Running:
    """A gateway with default settings that does not watch files."""
    return start(watch__enabled=False)
