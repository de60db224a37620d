"""Gateways over a workspace of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from gateways import Running, running

from recollect.testing import sample_workspace

Start = Callable[..., Running]


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
