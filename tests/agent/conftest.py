"""Hosts over a workspace of their own, opened as a program opens them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoriter.agent import Agent
from memoriter.testing import HashEmbedder

OpenHost = Callable[..., Agent]


@pytest.fixture
def open_host(workspace: Path, tmp_path: Path) -> Iterator[OpenHost]:
    """Opens a host whose slot the owner has named, unless `named` is None; closes all at the end."""
    opened: list[Agent] = []

    def open_(named: str | None = "memory-full", slot: str | None = None, **overrides: object) -> Agent:
        settings = {key.replace("__", "."): value for key, value in overrides.items()}
        if named is not None:
            settings["plugins.slots.memory"] = named
        host = Agent.open(
            slot=slot,
            workspace=workspace,
            home=tmp_path / "state",
            embedder=HashEmbedder(),
            overrides=settings,
        )
        opened.append(host)
        return host

    yield open_
    for host in opened:
        host.close()
