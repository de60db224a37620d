"""Long calls: progress and cancellation."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client
from talking import TRANSPORTS, OpenAgent, reached

from memoriter.agent import Agent, HookBus
from memoriter.agent.service import MemoryService
from memoriter.extensions.mcp.server import McpServer
from memoriter.records import Progress
from memoriter.tools.search import NoArguments
from memoriter.tools.tool import Call, Shape, Tool
from memoriter.tools.toolbox import TOOLS

Note = Callable[[str, str], Path]

QMD = """#!/bin/sh
case "$1" in
  --version) echo "qmd 2.8.3 (stand-in)" ;;
  search | query | vsearch) echo $$ > "{pid}.new"; mv "{pid}.new" "{pid}"; exec sleep 600 ;;
esac
"""


class Syncing:
    """A plugin with a tool that syncs the index."""

    name = "syncing"
    tools = ("memory_search", "memory.sync", "slow")

    def register(self, bus: HookBus, service: MemoryService) -> None:
        pass


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_tool_reports_progress_while_it_runs(transport: str, open_agent: OpenAgent) -> None:
    agent = Agent(open_agent().service, Syncing(), owned=False)
    received = threading.Event()

    def slow(call: Call[NoArguments]) -> Shape:
        assert call.progress
        call.progress(Progress("write", 1, 2, "memory/a.md"))
        assert received.wait(120)
        return Shape()

    tool = Tool("slow", "Waits until its progress was received.", NoArguments, Shape, slow)
    seen = list[tuple[float, float | None, str | None]]()

    async def ask(client: Client) -> object:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))
            received.set()

        return await client.call_tool("slow", {}, progress_callback=on_progress)

    with reached(McpServer(lambda: agent, table={**TOOLS, "slow": tool}), transport) as talk:
        assert not talk(ask).is_error
    assert seen == [(1, None, "write: 1 of 2 memory/a.md")]


def test_a_sync_reports_progress_and_returns_its_report(open_agent: OpenAgent, note: Note) -> None:
    note("memory/a.md", "A heron.\n")
    agent = Agent(open_agent().service, Syncing(), owned=False)

    async def ask(client: Client) -> tuple[object, list[str | None]]:
        seen = list[str | None]()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append(message)

        return await client.call_tool("memory.sync", {}, progress_callback=on_progress), seen

    with reached(McpServer(lambda: agent), "memory 2025-11-25") as talk:
        answer, seen = talk(ask)
    assert answer.structured_content["files"] == 1
    assert seen


@pytest.mark.posix("a shell script stands for qmd")
@pytest.mark.parametrize("transport", TRANSPORTS[:3])
def test_cancelling_a_call_stops_its_external_program_and_the_server_continues(
    transport: str, open_agent: OpenAgent, note: Note, tmp_path: Path
) -> None:
    note("memory/a.md", "A heron.\n")
    agent, pid = _hanging(open_agent, tmp_path)

    async def ask(client: Client) -> bool:
        search = asyncio.create_task(client.call_tool("memory_search", {"query": "heron"}))
        async with asyncio.timeout(120):
            while not pid.exists():
                await asyncio.sleep(0.02)
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        async with asyncio.timeout(120):
            while _alive(int(pid.read_text())):
                await asyncio.sleep(0.02)
        saved = await client.call_tool("memory_save", {"content": "The server continues."})
        return saved.is_error

    with reached(McpServer(lambda: agent), transport) as talk:
        assert not talk(ask)


@pytest.mark.posix("a shell script stands for qmd")
def test_over_http_with_an_older_version_a_cancelled_call_does_not_block_others(
    open_agent: OpenAgent, note: Note, tmp_path: Path
) -> None:
    note("memory/a.md", "A heron.\n")
    agent, pid = _hanging(open_agent, tmp_path)

    async def ask(client: Client) -> bool:
        search = asyncio.create_task(client.call_tool("memory_search", {"query": "heron"}))
        async with asyncio.timeout(120):
            while not pid.exists():
                await asyncio.sleep(0.02)
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        saved = await client.call_tool("memory_save", {"content": "The server continues."})
        os.kill(int(pid.read_text()), signal.SIGKILL)
        return saved.is_error

    with reached(McpServer(lambda: agent), "http 2025-11-25") as talk:
        assert not talk(ask)


def _hanging(open_agent: OpenAgent, folder: Path) -> tuple[Agent, Path]:
    """Return an agent whose search program hangs, and the file to which it writes its process id."""
    pid, program = folder / "pid", folder / "qmd"
    program.write_text(QMD.format(pid=pid))
    program.chmod(0o755)
    command = {"memory__qmd__command": str(program), "memory__qmd__limits__timeout_ms": 60_000}
    return open_agent(memory__backend="qmd", **command), pid


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return "Z" not in state
