"""Fixtures that open agents over a new workspace, and clients that connect to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from talking import TRANSPORTS, OpenAgent, Talk, reached, talk_to

from memoriter.agent import Agent
from memoriter.extensions.mcp.server import McpServer
from memoriter.testing import HashEmbedder


@pytest.fixture
def open_agent(workspace: Path, tmp_path: Path) -> Iterator[OpenAgent]:
    """Open agents, by default with the slot `memory-full`. Close them at the end of the test."""
    opened: list[Agent] = []

    def open_(slot: str = "memory-full", **overrides: object) -> Agent:
        settings = {key.replace("__", "."): value for key, value in overrides.items()}
        agent = Agent.open(
            workspace=workspace,
            home=tmp_path / "state",
            embedder=HashEmbedder(),
            overrides={"plugins.slots.memory": slot, **settings},
        )
        opened.append(agent)
        return agent

    yield open_
    for agent in opened:
        agent.close()


@pytest.fixture
def agent(open_agent: OpenAgent) -> Agent:
    return open_agent()


@pytest.fixture(params=TRANSPORTS)
def every_transport(request: pytest.FixtureRequest, agent: Agent) -> Iterator[Talk]:
    """Talk to a server, over every transport and with every kind of protocol version."""
    with reached(McpServer(lambda: agent), request.param) as talking:
        yield talking


@pytest.fixture(params=("memory 2025-11-25", "http 2026-07-28"))
def talk(request: pytest.FixtureRequest, agent: Agent) -> Iterator[Talk]:
    """Talk to a server, once over each transport."""
    with reached(McpServer(lambda: agent), request.param) as talking:
        yield talking


@pytest.fixture
def here(agent: Agent) -> Talk:
    """Talk to a server in this process."""
    server = McpServer(lambda: agent)
    return lambda say: talk_to(server, say)
