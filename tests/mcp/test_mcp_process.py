"""The process `memoriter mcp`, started like a client starts it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from interrupts import Interrupt
from mcp import Client, StdioServerParameters

from memoriter.tools.toolbox import TOOLS

Note = Callable[[str, str], Path]

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def command(workspace: Path, *options: str) -> list[str]:
    home = workspace.parent / "state"
    return ["-m", "memoriter", "--workspace", str(workspace), "--home", str(home), "mcp", *options]


def until(holds: Callable[[], bool]) -> bool:
    """Wait for the condition. Return whether it became true."""
    end = time.monotonic() + 120
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


class Process:
    """A server process with pipes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._last = 0

    def send(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def tell(self, method: str, params: dict[str, object] | None = None) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}))

    def begin(self, method: str, params: dict[str, object] | None = None) -> int:
        self._last += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}}))
        return self._last

    def ask(self, method: str, params: dict[str, object] | None = None) -> dict[str, Any]:
        wanted = self.begin(method, params)
        assert self.process.stdout
        for line in self.process.stdout:  # fails if a line is not JSON
            answer = json.loads(line)
            if answer.get("id") == wanted:
                return answer
        raise AssertionError("the server ended")

    def hello(self) -> dict[str, Any]:
        answer = self.ask("initialize", HELLO)
        self.tell("notifications/initialized")
        return answer["result"]

    def call(self, name: str, arguments: dict[str, object]) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": arguments})


@contextmanager
def started(
    workspace: Path, *options: str, interrupt: Interrupt | None = None, **environment: str
) -> Iterator[Process]:
    env = {**os.environ, "MEMORITER_EMBEDDING__PROVIDER": "none", **environment}
    words = command(workspace, *options)
    with subprocess.Popen(
        interrupt.command(words[2:]) if interrupt else [sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        cwd=workspace.parent,
    ) as process:
        try:
            yield Process(process)
        finally:
            process.kill()


@pytest.mark.requirement("X9")
def test_the_sdk_client_uses_the_memory_over_standard_input_and_output(
    workspace: Path, note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine the server needs longer to start than the client waits before it tries an older version.
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 300.0)
    note("memory/2026-02-08.md", "# Backups\n\nThe database is backed up at night to the NAS.\n")
    env = {"HOME": os.environ["HOME"], "MEMORITER_EMBEDDING__PROVIDER": "none"}
    server = StdioServerParameters(
        command=sys.executable, args=command(workspace, "--slot", "memory-full"), env=env
    )

    async def use() -> None:
        async with Client(server) as client:
            assert client.protocol_version == "2026-07-28"
            assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
            calls = [client.call_tool("memory_search", {"query": "database"}) for _ in range(8)]
            for answer in await asyncio.gather(*calls):
                assert [hit["path"] for hit in answer.structured_content["results"]] == [
                    "memory/2026-02-08.md"
                ]
            saved = await client.call_tool("memory_save", {"content": "A heron stands by the river."})
            found = await client.call_tool("search", {"query": "heron"})
            assert found.structured_content["results"][0]["id"].startswith(saved.structured_content["path"])
            listed = [one.name for one in (await client.list_resources()).resources]
            assert listed == sorted(["memory/2026-02-08.md", saved.structured_content["path"]])
            prompt = await client.get_prompt("recall", {"topic": "heron"})
            assert "A heron stands by the river." in prompt.messages[0].content.text
            assert client.instructions
            assert "memory_store" in client.instructions

    asyncio.run(use())


def test_an_older_client_can_connect_and_the_end_of_its_input_ends_the_server(
    workspace: Path, note: Note
) -> None:
    note("memory/a.md", "A heron stands by the river.\n")
    with started(workspace) as server:
        welcomed = server.hello()
        assert welcomed["protocolVersion"] == "2025-06-18"
        assert welcomed["serverInfo"]["name"] == "memoriter"
        assert welcomed["instructions"].startswith("## Memory recall")
        server.send("this is not JSON")
        assert server.call("nope", {})["error"]["code"] == -32602
        found = server.call("memory_search", {"query": "heron"})["result"]
        assert [hit["path"] for hit in found["structuredContent"]["results"]] == ["memory/a.md"]
        assert found["isError"] is False
        out, errors = server.process.communicate(timeout=120)
    assert out == ""
    assert "Traceback" not in errors
    assert server.process.returncode == 0, errors


def test_the_server_starts_with_wrong_settings_and_needs_no_restart_after_the_fix(
    workspace: Path,
) -> None:
    home = workspace.parent / "state"
    home.mkdir()
    config = home / "config.yaml"
    config.write_text("search: {max_results: many}\n")
    with started(workspace, "--access", "read") as server:
        assert "instructions" not in server.hello()
        names = [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]]
        assert names == ["memory_search", "memory_get", "memory_stats"]
        answer = server.call("memory_search", {"query": "heron"})["result"]
        assert answer["isError"] is True
        assert answer["structuredContent"]["disabled"] is True
        assert answer["content"][0]["text"].startswith(
            "Memory is disabled: The setting search.max_results = 'many'"
        )
        assert server.call("memory_save", {"content": "x"})["error"] == {
            "code": -32003,
            "message": "memory_save requires write access. This caller has read access.",
            "data": {"code": "forbidden"},
        }
        config.write_text("search: {max_results: 3}\n")
        assert until(lambda: not server.call("memory_search", {"query": "heron"})["result"]["isError"])
        _, errors = server.process.communicate(timeout=120)
    assert server.process.returncode == 0, errors
    assert "WARNING memoriter.agent: memory is disabled: The setting search.max_results = 'many'" in errors
    assert "Traceback" not in errors


def test_an_interrupt_ends_the_server_without_a_traceback(workspace: Path) -> None:
    interrupt = Interrupt()
    with started(workspace, interrupt=interrupt) as server:
        server.hello()
        interrupt.send(server.process)
        assert server.process.wait(120) == 128 + signal.SIGINT
        assert server.process.stderr
        assert "Traceback" not in server.process.stderr.read()


@pytest.mark.posix("a shell script stands for qmd, and signals end programs")
def test_a_signal_ends_the_server_and_its_external_program(workspace: Path, note: Note) -> None:
    note("memory/a.md", "A heron stands by the river.\n")
    pid, program = workspace.parent / "pid", workspace.parent / "qmd"
    hang = f'echo $$ > "{pid}.new"; mv "{pid}.new" "{pid}"; exec sleep 600'
    program.write_text(
        f'#!/bin/sh\ncase "$1" in\n  --version) echo "qmd 2.8.3" ;;\n  search) {hang} ;;\nesac\n'
    )
    program.chmod(0o755)
    qmd = {
        "MEMORITER_MEMORY__BACKEND": "qmd",
        "MEMORITER_MEMORY__QMD__COMMAND": str(program),
        "MEMORITER_MEMORY__QMD__LIMITS__TIMEOUT_MS": "60000",
    }
    with started(workspace, **qmd) as server:
        server.hello()
        server.begin("tools/call", {"name": "memory_search", "arguments": {"query": "heron"}})
        assert until(pid.exists)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(120) == 128 + signal.SIGTERM
        assert server.process.stderr
        assert "Traceback" not in server.process.stderr.read()
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()
