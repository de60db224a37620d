"""Programs that write to one home through each interface, and acknowledge what the interface confirmed.

An acknowledgement is a line with a kind and a text: an entry, a line of a note, an item of a transcript, or a value of
a framework's store. Each text is unique, so that a check can tell whether it is there once, twice or not at all.
"""

from __future__ import annotations

import http.client
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lab.soak.forking import Acknowledge, be_command, command
from memoriter.memory import parts_of

Kind = str
KINDS: tuple[Kind, ...] = ("entry", "note", "session", "item")
LETTERS = "bcdfghjklmnpqrstvwxz"


@dataclass(frozen=True)
class Home:
    """A home and a workspace of their own."""

    root: Path

    @property
    def home(self) -> Path:
        """The folder for memoriter's files."""
        return self.root / "home"

    @property
    def workspace(self) -> Path:
        """The folder with the notes."""
        return self.root / "workspace"

    @property
    def agent(self) -> Path:
        """The folder of the agent."""
        return self.home / "agents/main"

    def create(self) -> Home:
        """Create the folders."""
        (self.workspace / "memory").mkdir(parents=True, exist_ok=True)
        return self

    def environment(self) -> dict[str, str]:
        """Return the variables with which the command line uses this home."""
        return {
            "MEMORITER_HOME": str(self.home),
            "MEMORITER_WORKSPACE": str(self.workspace),
            "MEMORITER_EMBEDDING__PROVIDER": "none",
            "MEMORITER_RESIDENT__ENABLED": "false",
            "HOME": str(self.root),
        }

    def open(self, **overrides: object) -> Any:
        """Open the memory without a model."""
        from memoriter import Memory

        settings = {"embedding.provider": "none", "search.rerank": False, **overrides}
        return Memory.open(self.workspace, home=self.home, overrides=settings)


def words(chooser: random.Random) -> str:
    """Return a statement unlike any other."""
    return " ".join("".join(chooser.choices(LETTERS, k=9)) for _ in range(4))


# ---- interfaces -----------------------------------------------------------------------------------------------


def python(home: Home, seed: int, acknowledge: Acknowledge) -> None:
    """Write through the Python API: entries, notes, a transcript and items."""
    from memoriter.extensions.langgraph.items import items_of
    from memoriter.extensions.langgraph.items.store import Put

    chooser = random.Random(seed)
    memory = home.open()
    items = items_of(memory)
    transcript = memory.transcript_writer(f"session {seed}")
    writes: dict[Kind, Callable[[str], object]] = {
        "entry": lambda text: memory.remember(text, "fact"),
        "note": lambda text: memory.save(text, title=f"item {seed % 7}", category=_category(seed)),
        "session": lambda text: transcript.add([{"role": "user", "content": text}]),
        "item": lambda text: items.put([Put(("soak",), text, {"text": text}, (text,))]),
    }
    while True:
        kind, text = chooser.choices(KINDS, weights=[6, 2, 2, 1])[0], words(chooser)
        writes[kind](text)
        acknowledge(f"{kind}\t{text}")


def _category(seed: int) -> str | None:
    return f"topic {seed % 3}" if seed % 2 else None


def early(home: Home, seed: int, acknowledge: Acknowledge) -> None:
    """Acknowledge before writing: a control."""
    chooser = random.Random(seed)
    memory = home.open()
    while True:
        text = words(chooser)
        acknowledge(f"entry\t{text}")
        memory.remember(text, "fact")


def plain(home: Home, seed: int, acknowledge: Acknowledge) -> None:
    """Rewrite a note with a plain read and write: a control."""
    chooser = random.Random(seed)
    path = home.workspace / "memory/log.md"
    while True:
        text = words(chooser)
        old = path.read_text() if path.exists() else ""
        path.write_text(f"{old}{text}\n")
        acknowledge(f"note\t{text}")


def cli(home: Home, seed: int, acknowledge: Acknowledge) -> None:
    """Write through the command line, one process for each write."""
    chooser = random.Random(seed)
    while True:
        kind, text = chooser.choices(KINDS[:2], weights=[3, 1])[0], words(chooser)
        arguments = ["add", text, "--type", "fact"] if kind == "entry" else ["save", text]
        code, out, error = command(arguments, environment=home.environment())
        if code != 0:
            raise RuntimeError(f"memoriter {arguments[0]}: {code} {out!r} {error!r}")
        acknowledge(f"{kind}\t{text}")


def http_(home: Home, seed: int, acknowledge: Acknowledge) -> None:
    """Write through a gateway: entries, notes and captures."""
    from memoriter.config import load
    from memoriter.extensions.serving.server import GatewayServer
    from memoriter.server.http.auth import Tokens
    from memoriter.server.http.gateway import SettingsLoader

    token = Tokens(home.home).create("write")[1]
    reading, writing = os.pipe()
    if os.fork() == 0:
        limits = {"gateway.limits.rate": 100_000, "gateway.limits.burst": 100_000, "watch.enabled": False}
        places = {"home": str(home.home), "workspace": str(home.workspace), "gateway.port": 0}
        given = {**places, **limits, "embedding.provider": "none"}
        server = GatewayServer(SettingsLoader(load(arguments=given), None, given))

        def announce() -> None:
            os.write(writing, f"{server.address}\n".encode())

        server.run(on_ready=announce)
        os._exit(0)
    address = os.read(reading, 200).decode().strip().removeprefix("http://")
    chooser, client = random.Random(seed), http.client.HTTPConnection(address, timeout=900)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    while True:
        way, text = (
            chooser.choices(("memory_store", "memory_save", "capture"), weights=[3, 1, 2])[0],
            words(chooser),
        )
        body = {
            "memory_store": {"text": text},
            "memory_save": {"content": text},
            "capture": {
                "messages": [{"role": "user", "content": f"Remember that {text}."}],
                "session": str(seed),
            },
        }[way]
        client.request("POST", f"/v1/agents/main/{way}", json.dumps(body), headers)
        answer = client.getresponse()
        received = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{way}: {answer.status} {received.decode()}")
        if way != "capture" or json.loads(received)["remembered"]:
            acknowledge(f"{'note' if way == 'memory_save' else 'entry'}\t{text}")


def mcp(home: Home, seed: int, acknowledge: Acknowledge) -> None:
    """Write through an MCP server on standard input and output."""
    chooser = random.Random(seed)
    with McpClient(home) as client:
        while True:
            kind, text = chooser.choices(KINDS[:2], weights=[3, 1])[0], words(chooser)
            name, field = ("memory_store", "text") if kind == "entry" else ("memory_save", "content")
            answer = client.call("tools/call", name=name, arguments={field: text})
            if answer.get("isError"):
                raise RuntimeError(f"{name}: {answer}")
            acknowledge(f"{kind}\t{text}")


class McpClient:
    """A client that starts `memoriter mcp` in a fork and speaks to it line by line."""

    def __init__(self, home: Home) -> None:
        given, requests = os.pipe()
        answers, out = os.pipe()
        if os.fork() == 0:
            os.dup2(given, 0)
            os.dup2(out, 1)
            os.close(requests)
            os.close(answers)
            be_command(["mcp", "--slot", "memory-full"], home.environment())
        os.close(given)
        os.close(out)
        self._requests = os.fdopen(requests, "wb", buffering=0)
        self._answers = os.fdopen(answers, "rb")
        #: Far from the numbers in a mutated frame.
        self._number = 1_000_000

    def __enter__(self) -> McpClient:
        about = {"name": "soak", "version": "1"}
        self.call("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=about)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self._requests.close()
        self._answers.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a request and return its result."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters})
        for line in self._answers:
            message = json.loads(line)
            if message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])
        raise EOFError("the MCP server has ended")

    def _send(self, message: dict[str, Any]) -> None:
        self.send_line(json.dumps(message).encode())

    def send_line(self, line: bytes) -> None:
        """Send one line as it is."""
        self._requests.write(line + b"\n")


def hooks(home: Home, seed: int, acknowledge: Acknowledge, *, resident: bool = False) -> None:
    """Talk in sessions of Claude Code and call its hooks, one process for each, or the resident process."""
    chooser = random.Random(seed)
    while True:
        text = words(chooser)
        session = f"{seed:08x}-0000-4000-8000-{chooser.randrange(4):012d}"
        transcript = say(home, session, f"Remember that {text}.")
        event = chooser.choices(("Stop", "SessionEnd", "PreCompact"), weights=[8, 1, 1])[0]
        if call_hook(home, event, session, transcript, resident=resident):
            acknowledge(f"entry\t{text}")


def say(home: Home, session: str, text: str) -> Path:
    """Append a turn to a transcript, as Claude Code writes it."""
    transcript = home.root / f"transcripts/{session}.jsonl"
    transcript.parent.mkdir(exist_ok=True)
    common = {"sessionId": session, "cwd": str(home.root), "timestamp": "2026-02-08T12:00:00.000Z"}
    reply = [{"type": "text", "text": "Done."}]
    lines = [
        {**common, "type": "user", "message": {"role": "user", "content": text}},
        {**common, "type": "assistant", "message": {"role": "assistant", "content": reply}},
    ]
    with transcript.open("ab", buffering=0) as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
    return transcript


def call_hook(
    home: Home, event: str, session: str, transcript: Path, *options: str, resident: bool = False
) -> bool:
    """Call a hook and return whether it answered."""
    data = {
        "session_id": session,
        "transcript_path": str(transcript),
        "cwd": str(home.root),
        "hook_event_name": event,
    }
    arguments = ["hook", "claude-code", event, "--deadline", "30", *options]
    environment = home.environment() | {"MEMORITER_RESIDENT__ENABLED": str(resident).lower()}
    code, _, error = command(arguments, json.dumps(data).encode(), environment)
    return code == 0 and not error


def finish_sessions(home: Home) -> None:
    """Process what killed hooks left in the queue, as the next hook does."""
    for transcript in sorted((home.root / "transcripts").glob("*.jsonl")):
        call_hook(home, "Stop", transcript.stem, transcript, "--wait")


INTERFACES: dict[str, Callable[[Home, int, Acknowledge], None]] = {
    "python": python,
    "cli": cli,
    "http": http_,
    "mcp": mcp,
    "hooks": hooks,
    "resident": partial(hooks, resident=True),
}


# ---- checks ---------------------------------------------------------------------------------------------------


def stored(home: Home) -> dict[Kind, Counter[str]]:
    """Return how often each text is stored, by kind. Captured sentences have lost their full stop."""
    from memoriter.extensions.langgraph.items import items_of

    with home.open() as memory:
        entries = Counter(_statement(entry.text) for entry in memory.entries.list())
        items = items_of(memory)
        values = Counter(hit.item.key for hit in items.search(("soak",), limit=100_000))
    return {
        "entry": entries,
        "note": Counter(_note_lines(home)),
        "session": Counter(_said(home)),
        "item": values,
    }


def _statement(text: str) -> str:
    return text.removeprefix("Remember that ").rstrip(".").lower()


def _note_lines(home: Home) -> Iterator[str]:
    for file in home.workspace.rglob("*.md"):
        yield from file.read_text("utf-8", errors="replace").splitlines()


def _said(home: Home) -> Iterator[str]:
    for file in (home.agent / "sessions").glob("*.jsonl"):
        for line in file.read_bytes().splitlines():
            try:
                yield str(json.loads(line).get("message", {}).get("content", ""))
            except ValueError:  # the incomplete last line of a killed writer
                continue


def problems(home: Home, acknowledged: list[str]) -> list[str]:
    """Return what is wrong after the kills: writes that are lost or doubled, and damage."""
    found = stored(home)
    wrong = []
    for line in acknowledged:
        kind, text = line.split("\t")
        times = found[kind][text]
        if times != 1:
            wrong.append(f"{'lost' if not times else 'doubled'}: {line}")
    wrong += [
        f"doubled: {kind} {text}" for kind in ("entry", "item", "session") for text in _twice(found[kind])
    ]
    with home.open() as memory:
        wrong += parts_of(memory).entry_context.store.check(deep=True)
        wrong += _search_problems(
            memory, [line.split("\t")[1] for line in acknowledged if line.startswith("entry")]
        )
    return wrong


def _twice(counts: Counter[str]) -> list[str]:
    return [text for text, times in counts.items() if times > 1 and text]


def _search_problems(memory: Any, texts: list[str]) -> list[str]:
    """Return the acknowledged entries that a search does not find."""
    wrong = []
    for text in texts:
        hits = memory.entries.search(text, limit=1).hits
        if [_statement(hit.entry.text) for hit in hits] != [text]:
            wrong.append(f"not found: {text}")
    return wrong
