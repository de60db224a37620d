"""Work that takes long: progress is told, and who gives up stops waiting at once while the server lives on."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client
from talking import WAYS, OpenHost, reached

from memoriter.agent import Agent, HookBus
from memoriter.agent.service import MemoryService
from memoriter.records import Progress
from memoriter.server.mcp import build
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
    """A plugin whose agents may also bring the index up to date."""

    name = "syncing"
    tools = ("memory_search", "memory.sync", "slow")

    def register(self, bus: HookBus, service: MemoryService) -> None:
        pass


@pytest.mark.parametrize("way", WAYS)
def test_progress_is_told_while_a_tool_works(way: str, open_host: OpenHost) -> None:
    host = Agent(open_host().service, Syncing(), owned=False)
    told = threading.Event()

    def slow(call: Call[NoArguments]) -> Shape:
        assert call.progress
        call.progress(Progress("write", 1, 2, "memory/a.md"))
        assert told.wait(20)
        return Shape()

    tool = Tool("slow", "Works until its progress was seen.", NoArguments, Shape, slow)
    seen = list[tuple[float, float | None, str | None]]()

    async def ask(client: Client) -> object:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))
            told.set()

        return await client.call_tool("slow", {}, progress_callback=on_progress)

    with reached(build(lambda: host, table={**TOOLS, "slow": tool}), way) as talk:
        assert not talk(ask).is_error
    assert seen == [(1, None, "write: 1 of 2 memory/a.md")]


def test_a_sync_tells_its_progress_and_its_report(open_host: OpenHost, note: Note) -> None:
    note("memory/a.md", "A heron.\n")
    host = Agent(open_host().service, Syncing(), owned=False)

    async def ask(client: Client) -> tuple[object, list[str | None]]:
        seen = list[str | None]()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append(message)

        return await client.call_tool("memory.sync", {}, progress_callback=on_progress), seen

    with reached(build(lambda: host), "memory 2025-11-25") as talk:
        answer, seen = talk(ask)
    assert answer.structured_content["files"] == 1
    assert seen


@pytest.mark.parametrize("way", WAYS[:3])
def test_who_gives_up_ends_the_program_that_works_for_them_and_the_server_lives_on(
    way: str, open_host: OpenHost, note: Note, tmp_path: Path
) -> None:
    note("memory/a.md", "A heron.\n")
    host, pid = _hanging(open_host, tmp_path)

    async def ask(client: Client) -> tuple[float, bool]:
        search = asyncio.create_task(client.call_tool("memory_search", {"query": "heron"}))
        async with asyncio.timeout(20):
            while not pid.exists():
                await asyncio.sleep(0.02)
        search.cancel()
        begun = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await search
        async with asyncio.timeout(20):
            while _alive(int(pid.read_text())):
                await asyncio.sleep(0.02)
        took = time.monotonic() - begun
        stats = await client.call_tool("memory_save", {"content": "The server lives on."})
        return took, stats.is_error

    with reached(build(lambda: host), way) as talk:
        took, failed = talk(ask)
    assert took < 10
    assert not failed


def test_in_the_older_form_over_http_who_gives_up_stops_waiting_and_keeps_nobody_else(
    open_host: OpenHost, note: Note, tmp_path: Path
) -> None:
    note("memory/a.md", "A heron.\n")
    host, pid = _hanging(open_host, tmp_path)

    async def ask(client: Client) -> bool:
        search = asyncio.create_task(client.call_tool("memory_search", {"query": "heron"}))
        async with asyncio.timeout(20):
            while not pid.exists():
                await asyncio.sleep(0.02)
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        done = await client.call_tool("memory_save", {"content": "The server lives on."})
        os.kill(int(pid.read_text()), signal.SIGKILL)
        return done.is_error

    with reached(build(lambda: host), "http 2025-11-25") as talk:
        assert not talk(ask)


def _hanging(open_host: OpenHost, folder: Path) -> tuple[Agent, Path]:
    """A host whose searches are answered by a program that hangs, and where that writes its id."""
    pid, program = folder / "pid", folder / "qmd"
    program.write_text(QMD.format(pid=pid))
    program.chmod(0o755)
    command = {"memory__qmd__command": str(program), "memory__qmd__limits__timeout_ms": 60_000}
    return open_host(memory__backend="qmd", **command), pid


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0]
