"""Hosts over a workspace of their own, and clients that reach them in every way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from talking import WAYS, OpenHost, Talk, reached, talk_to

from memoriter.agent import Agent
from memoriter.server.mcp import build
from memoriter.testing import HashEmbedder


@pytest.fixture
def open_host(workspace: Path, tmp_path: Path) -> Iterator[OpenHost]:
    """Opens a host with everything in its slot, unless another is named; closes all at the end."""
    opened: list[Agent] = []

    def open_(slot: str = "memory-full", **overrides: object) -> Agent:
        settings = {key.replace("__", "."): value for key, value in overrides.items()}
        host = Agent.open(
            workspace=workspace,
            home=tmp_path / "state",
            embedder=HashEmbedder(),
            overrides={"plugins.slots.memory": slot, **settings},
        )
        opened.append(host)
        return host

    yield open_
    for host in opened:
        host.close()


@pytest.fixture
def host(open_host: OpenHost) -> Agent:
    return open_host()


@pytest.fixture(params=WAYS)
def every_way(request: pytest.FixtureRequest, host: Agent) -> Iterator[Talk]:
    """Talks to a server over the host, in every way."""
    with reached(build(lambda: host), request.param) as talking:
        yield talking


@pytest.fixture(params=("memory 2025-11-25", "http 2026-07-28"))
def talk(request: pytest.FixtureRequest, host: Agent) -> Iterator[Talk]:
    """Talks to a server over the host, once with each transport and each era."""
    with reached(build(lambda: host), request.param) as talking:
        yield talking


@pytest.fixture
def here(host: Agent) -> Talk:
    """Talks to a server over the host, within the process."""
    server = build(lambda: host)
    return lambda say: talk_to(server, say)
