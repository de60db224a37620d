"""Every interface gives the same answers: Python, the command line, MCP, HTTP, and MCP over HTTP.

Each interface runs as it does for users, in its own process where it has one, with its own copy of the same memory. The
test makes the same calls in the same order. Commands run in forks of a loaded process, since there are many.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from memoriter import Memory
from memoriter.testing import sample_workspace
from memoriter.tools.toolbox import TOOLS, Toolbox

SETTINGS = (
    "embedding:\n  provider: none\nplugins:\n  slots:\n    memory: memory-full\nwatch:\n  enabled: false\n"
)

#: In this order: later calls find what earlier calls have stored.
ASKED: tuple[tuple[str, dict[str, object]], ...] = (
    ("memory_search", {"query": "backups", "maxResults": 3}),
    ("memory_search", {"query": "数据库", "source": "memory"}),
    ("memory_get", {"path": "MEMORY.md", "from": 1, "lines": 5}),
    ("memory_get", {"path": "../outside.md"}),
    ("memory_save", {"content": "The heron project ships on Fridays.", "category": "project", "title": "heron"}),
    ("memory_stats", {}),
    ("memory_store", {"text": "The user prefers window seats.", "category": "preference", "importance": 4}),
    ("memory_recall", {"query": "window seats"}),
    ("memory", {"action": "list"}),
    ("memory", {"action": "stats"}),
    ("memory_search", {"query": "window seats heron", "minScore": "high"}),
    ("memory_forget", {"query": "The user prefers window seats."}),
)  # fmt: skip

Answers = list[dict[str, Any]]
#: Workspace and home.
Place = tuple[Path, Path]
RunForked = Callable[..., subprocess.CompletedProcess[bytes]]

#: Ids and times, which differ between interfaces.
_CHANGING = {
    "id",
    "createdAt",
    "expiresAt",
    "oldest",
    "newest",
    "forgotten",
}


def command_line(place: Place, *words: str) -> list[str]:
    workspace, home = place
    return [sys.executable, "-m", "memoriter", "--workspace", str(workspace), "--home", str(home), *words]


def index(place: Place) -> None:
    """Index all notes. A search indexes only what fits into its time, which depends on the load of the machine."""
    workspace, home = place
    with Memory.open(workspace, home=home) as memory:
        memory.sync()


def in_python(place: Place) -> Answers:
    workspace, home = place
    with Memory.open(workspace, home=home) as memory:
        return [Toolbox(memory).call(tool, arguments) for tool, arguments in ASKED]


def at_the_command_line(place: Place, run_forked: RunForked) -> Answers:
    answers = []
    for tool, arguments in ASKED:
        command = command_line(place, "call", tool, json.dumps(arguments))
        done = run_forked(command[3:], os.environ)
        answers.append(json.loads(done.stdout))
        assert (done.returncode, done.stderr) == (int("error" in answers[-1]), b"")
    return answers


def over_mcp(place: Place) -> Answers:
    _, *arguments = command_line(place, "mcp")
    return asyncio.run(answers_of(Client(StdioServerParameters(command=sys.executable, args=arguments))))


def over_http(place: Place) -> Answers:
    with (
        served(place) as (address, shown),
        httpx.Client(base_url=address, headers=shown, timeout=300) as client,
    ):
        asked = [client.post(f"/v1/agents/main/{tool}", json=given) for tool, given in ASKED]
        return [answer.json() for answer in asked]


def over_mcp_over_http(place: Place) -> Answers:
    async def ask(address: str, shown: dict[str, str]) -> Answers:
        async with httpx2.AsyncClient(headers=shown, timeout=300) as http:
            return await answers_of(Client(streamable_http_client(f"{address}/mcp", http_client=http)))

    with served(place) as (address, shown):
        return asyncio.run(ask(address, shown))


async def answers_of(client: Client) -> Answers:
    """Return the answers of an MCP server."""
    async with client as talking:
        answers = [await talking.call_tool(tool, arguments) for tool, arguments in ASKED]
    return [dict(answer.structured_content or {"text": answer.content}) for answer in answers]


@contextmanager
def served(place: Place) -> Iterator[tuple[str, dict[str, str]]]:
    """Return the address of a running gateway and the headers of a caller."""
    command = command_line(place, "serve", "--port", "0", "--json")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with process:
        assert process.stdout
        ready = json.loads(process.stdout.readline())
        try:
            yield ready["address"], {"Authorization": f"Bearer {ready['token']}"}
        finally:
            process.terminate()
    assert process.returncode == 0


INTERFACES: Mapping[str, Callable[[Place], Answers]] = {
    "python": in_python,
    "mcp": over_mcp,
    "http": over_http,
    "mcp over http": over_mcp_over_http,
}


def comparable(answer: dict[str, Any]) -> Any:
    """Return the error, or the answer without codes (which only HTTP adds), ids and times."""
    answer.pop("codes", None)
    return answer["error"] if "error" in answer else steady(answer)


def steady(value: Any) -> Any:
    """Return the value without ids and times, which differ between interfaces."""
    if isinstance(value, dict):
        return {key: "…" if key in _CHANGING else steady(item) for key, item in value.items()}
    return [steady(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def answers(tmp_path_factory: pytest.TempPathFactory, run_forked: RunForked) -> dict[str, list[Any]]:
    """The answers of every interface to every call."""
    found = {}
    command_line = partial(at_the_command_line, run_forked=run_forked)
    for name, interface in {**INTERFACES, "command line": command_line}.items():
        root = tmp_path_factory.mktemp(name.replace(" ", "-"))
        place = (root / "workspace", root / "home")
        sample_workspace(place[0])
        place[1].mkdir(mode=0o700)
        (place[1] / "config.yaml").write_text(SETTINGS, encoding="utf-8")
        index(place)
        found[name] = [comparable(answer) for answer in interface(place)]
    return found


@pytest.mark.requirement("C8")
def test_every_interface_gives_the_same_answers(answers: dict[str, list[Any]]) -> None:
    # One test: with one per call, each test process would start every interface.
    for number, (tool, _) in enumerate(ASKED):
        given = {name: found[number] for name, found in answers.items()}
        assert given == dict.fromkeys([*INTERFACES, "command line"], given["python"]), f"{number}-{tool}"
    said = [json.dumps(answer, ensure_ascii=False) for answer in answers["python"]]
    assert all(
        word in answer
        for word, answer in zip(
            ("ackup", "数据库", "text", "outside", "heron.md", "file_count", "added", "window", "window", "total",
             "`minScore` must be", "…"),
            said,
            strict=True,
        )
    )  # fmt: skip


def test_every_tool_is_called() -> None:
    assert {tool for tool, _ in ASKED} == set(TOOLS)


def test_the_search_command_finds_the_same_places(tmp_path: Path, run_forked: RunForked) -> None:
    place = (tmp_path / "workspace", tmp_path / "home")
    sample_workspace(place[0])
    index(place)
    command = command_line(place, "search", "backups", "--max-results", "3", "--json")
    printed = json.loads(run_forked(command[3:], os.environ).stdout)
    with Memory.open(place[0], home=place[1]) as memory:
        found = Toolbox(memory).call("memory_search", {"query": "backups", "maxResults": 3})
    assert [(hit["citation"], round(hit["score"], 6)) for hit in printed["results"]] == [
        (hit["citation"], hit["score"]) for hit in found["results"]
    ]
