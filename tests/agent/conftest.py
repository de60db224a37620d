"""Agents with their own workspace, opened as a program opens them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoriter.agent import Agent
from memoriter.testing import HashEmbedder

OpenAgent = Callable[..., Agent]


@pytest.fixture
def open_agent(workspace: Path, tmp_path: Path) -> Iterator[OpenAgent]:
    """Return a function that opens agents. The owner names the plugin ``named``, unless it is None."""
    opened: list[Agent] = []

    def open_(named: str | None = "memory-full", slot: str | None = None, **overrides: object) -> Agent:
        settings = {key.replace("__", "."): value for key, value in overrides.items()}
        if named is not None:
            settings["plugins.slots.memory"] = named
        agent = Agent.open(
            slot=slot,
            workspace=workspace,
            home=tmp_path / "state",
            embedder=HashEmbedder(),
            overrides=settings,
        )
        opened.append(agent)
        return agent

    yield open_
    for agent in opened:
        agent.close()
