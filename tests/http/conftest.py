"""Gateways over a workspace of their own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from gateways import Running, Start, running

from memoriter.server.http import access_log
from memoriter.testing import sample_workspace


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """What a command does to the process's logs ends with its test."""
    loggers = [logging.getLogger(name) for name in ("memoriter", *access_log.OTHER_LOGGERS)]
    before = [(one.handlers[:], one.level, one.propagate) for one in loggers]
    yield
    for one, (handlers, level, propagate) in zip(loggers, before, strict=True):
        one.handlers[:] = handlers
        one.setLevel(level)
        one.propagate = propagate


@pytest.fixture
def start(workspace: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts gateways over the sample workspace; all end with the test."""
    sample_workspace(workspace)
    with ExitStack() as stack:

        def start_(**settings: object) -> Running:
            return stack.enter_context(running(workspace, tmp_path / "home", **settings))  # type: ignore[arg-type]

        yield start_


@pytest.fixture
def gateway(start: Start) -> Running:
    """One gateway as it is by itself; nothing is watched."""
    return start(watch__enabled=False)
