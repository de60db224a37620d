"""What the tests of the requirements share: the command line, tools, agents, and a fake qmd."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoriter.agent import Agent
from memoriter.cli.app import app
from memoriter.testing import HashEmbedder
from memoriter.tools.toolbox import Toolbox

TESTS = Path(__file__).parents[1]
# The fakes of qmd and of the vendors are next to the tests that use them most.
sys.path[:0] = [str(TESTS / "engines"), str(TESTS / "providers"), str(TESTS / "store")]

Run = Callable[..., str]


@pytest.fixture
def run(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in a separate home, with keywords only. Return what it prints."""
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")
    monkeypatch.setenv("COLUMNS", "160")

    def run_(*words: str, code: int = 0) -> str:
        (tmp_path / "home").mkdir(exist_ok=True)
        line = ["--workspace", str(workspace), "--home", str(tmp_path / "home"), *words]
        finished = CliRunner().invoke(app, line)
        assert finished.exit_code == code, (finished.output, finished.exception)
        return finished.output

    return run_


@pytest.fixture
def toolbox(open_memory) -> Toolbox:
    return Toolbox(open_memory(plugins__slots__memory="memory-full"))


@pytest.fixture
def open_agent(workspace: Path, tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    """Return a function that opens an agent with the memory in this slot."""
    opened: list[Agent] = []

    def open_(slot: str = "memory-full", **overrides: object) -> Agent:
        settings = {key.replace("__", "."): value for key, value in overrides.items()}
        agent = Agent.open(
            workspace=workspace,
            home=tmp_path / "state",
            embedder=HashEmbedder(),
            overrides={"plugins.slots.memory": slot, "search.rerank": False, **settings},
        )
        opened.append(agent)
        return agent

    yield open_
    for agent in opened:
        agent.close()


@pytest.fixture
def transcript(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a transcript of an agent."""

    def write(*turns: tuple[str, str], name: str = "s1", home: str = "state") -> Path:
        folder = tmp_path / home / "agents/main/sessions"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{name}.jsonl"
        lines = [
            json.dumps({"role": role, "content": text, "time": "2026-02-08T10:00:00Z"}, ensure_ascii=False)
            for role, text in turns
        ]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file

    return write
