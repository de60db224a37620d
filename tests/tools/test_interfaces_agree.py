"""Every interface gives the same answers: Python, the command line, MCP, HTTP, and MCP over HTTP.

Each interface runs as it does for users, in its own process where it has one, with its own copy of the same memory. The
test makes the same calls in the same order. Commands run in forks of a loaded process, since there are many.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
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
from interrupts import Interrupt
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from memoriter import Memory
from memoriter.testing import sample_workspace
from memoriter.tools.table import call
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
    *(
        "id",
        "createdAt",
        "expiresAt",
        "oldest",
        "newest",
        "forgotten",
        "updatedAt",
        "validFrom",
        "at",
        "mtime",
    ),
    *("lastAccessedAt", "lastSync", "seconds", "indexBytes", "cursor", "recallId", "entryId", "replaced"),
    *("rejected", "ref", "interface"),
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
    interrupt = Interrupt()
    command = interrupt.command(command_line(place, "serve", "--port", "0", "--json")[3:])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with process:
        assert process.stdout
        ready = json.loads(process.stdout.readline())
        try:
            yield ready["address"], {"Authorization": f"Bearer {ready['token']}"}
        finally:
            interrupt.send(process)
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


# ---- real commands ----------------------------------------------------------------------------------------------

#: Commands with their operations, in this order. `{staged}` is the id of an entry that waits for approval.
COMMANDS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("index", "memory.sync", {}),
    (
        "search backups -n 3 --explain",
        "memory.search",
        {"query": "backups", "maxResults": 3, "explain": True},
    ),
    ("search 数据库 --source memory", "memory.search", {"query": "数据库", "source": "memory"}),
    ("search zxcv", "memory.search", {"query": "zxcv"}),
    ("get MEMORY.md --from 2 --lines 2", "memory.get", {"path": "MEMORY.md", "from": 2, "lines": 2}),
    ("get nothing.md", "memory.get", {"path": "nothing.md"}),
    ("status", "memory.status", {}),
    ("stats", "memory.stats", {}),
    (
        "add I prefer aisle seats --tags a,b",
        "entries.add",
        {"text": "I prefer aisle seats", "tags": ["a", "b"]},
    ),
    ("add I prefer window seats", "entries.add", {"text": "I prefer window seats"}),
    ("list", "entries.list", {"sort": "updated"}),
    ("list --all --limit 1", "entries.list", {"sort": "updated", "states": [], "limit": 1}),
    ("recall do I prefer window seats", "recall", {"query": "do I prefer window seats"}),
    ("recalls", "recalls.list", {}),
    ("why", "recalls.get", {}),
    ("search window seats", "memory.search", {"query": "window seats"}),
    ("forget --query seats --dry-run", "entries.forget", {"query": "seats", "dryRun": True}),
    ("undo", "entries.undo", {}),
    ("approve {staged}", "entries.approve", {"ids": ["{staged}"]}),
    ("reject {staged}", "entries.reject", {"ids": ["{staged}"]}),
    ("import {file}", "entries.import", {"data": '["Anna likes tea."]'}),
    (
        "capture --messages {messages}",
        "capture",
        {"messages": [{"role": "user", "content": "I prefer tea."}]},
    ),
    ("history nothing", "entries.get", {"id": "nothing"}),
)


def run_commands(place: Place, run_forked: RunForked) -> Answers:
    """Run the real commands, with `--json`."""
    answers = []
    folder = place[0].parent
    (folder / "import.json").write_text('["Anna likes tea."]', encoding="utf-8")
    messages = [{"role": "user", "content": "I prefer tea."}]
    (folder / "messages.json").write_text(json.dumps(messages), encoding="utf-8")
    for words, _, _ in COMMANDS:
        filled = [fill(word, place) for word in words.split()]
        done = run_forked(command_line(place, *filled, "--json")[3:], os.environ)
        answers.append(json.loads(done.stdout))
        assert done.returncode == int("error" in answers[-1]), (words, done.stderr)
    return answers


def run_calls(place: Place) -> Answers:
    """Call the operations of the commands in Python. `memoriter call` gives the same answers, as shown above."""
    with Memory.open(place[0], home=place[1]) as memory:
        return [
            call(memory, operation, json.loads(fill(json.dumps(arguments), place)), interface="cli")
            for _, operation, arguments in COMMANDS
        ]


def post_calls(place: Place, run_forked: RunForked) -> Answers:
    """Call the operations of the commands over HTTP, with the access of the owner."""
    command = command_line(place, "token", "create", "--access", "admin")
    with served(place) as (address, _):
        token = run_forked(command[3:], os.environ).stdout.decode().strip()
        with httpx.Client(
            base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=300
        ) as client:
            return [
                client.post(
                    f"/v1/agents/main/{operation}", json=json.loads(fill(json.dumps(arguments), place))
                ).json()
                for _, operation, arguments in COMMANDS
            ]


def fill(text: str, place: Place) -> str:
    """Replace the names in braces by the files of this place and the first entry that waits."""
    for name in ("import", "messages"):
        text = text.replace(
            "{file}" if name == "import" else "{messages}", str(place[0].parent / f"{name}.json")
        )
    if "{staged}" in text:
        with Memory.open(place[0], home=place[1]) as memory:
            text = text.replace("{staged}", memory.entries.list(states=("staged",))[-1].id)
    return text


def test_every_command_prints_the_result_of_its_operation(
    tmp_path_factory: pytest.TempPathFactory, run_forked: RunForked
) -> None:
    found = dict[str, list[Any]]()
    for name, ask in {
        "commands": partial(run_commands, run_forked=run_forked),
        "python": run_calls,
        "http": partial(post_calls, run_forked=run_forked),
    }.items():
        root = tmp_path_factory.mktemp(name.replace(" ", "-"))
        place = (root / "workspace", root / "home")
        sample_workspace(place[0])
        place[1].mkdir(mode=0o700)
        (place[1] / "config.yaml").write_text(SETTINGS, encoding="utf-8")
        index(place)
        with Memory.open(place[0], home=place[1], overrides={"entries.approval": "agent"}) as memory:
            for text in ("The office is in Graz.", "The office has a garden."):
                assert memory.entries.add(text, trust="agent").action == "staged"
        found[name] = [comparable_command(answer, str(root)) for answer in ask(place)]
    different = {
        words: {name: answers[number] for name, answers in found.items()}
        for number, (words, _, _) in enumerate(COMMANDS)
        if any(answers[number] != found["http"][number] for answers in found.values())
    }
    assert different == {}


def comparable_command(answer: dict[str, Any], root: str) -> Any:
    """Return the answer without what only a command or a call says, ids, times and the path of the copy."""
    if "error" in answer:
        return answer["error"].replace(root, "…")
    answer.pop("disabled", None)
    if "details" in answer:
        answer["details"].pop("resident", None)
    if "file_count" in answer:
        answer.pop("entries", None)
    text = (
        json.dumps(comparable(answer))
        .replace(json.dumps(root)[1:-1], "…")
        .replace('"source": "cli"', '"source": "owner"')
    )
    # The folder of an index is named after its path, and a block names its recall and its entries.
    return json.loads(
        re.sub(r"workspace-[0-9a-f]{12}|recall=..[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}", "…", text)
    )
