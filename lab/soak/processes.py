"""Fourteen kinds of process on one home. Nothing is lost, doubled or resurrected, and the index equals a rebuild."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from lab.soak import writers
from lab.soak.forking import (
    Acknowledge,
    Writer,
    be_command,
    command,
    in_fork,
    kill_orphans,
    load_everything,
)
from lab.soak.part import LONGEST_WAIT, Part, Round, Task
from lab.soak.writers import Home, McpClient, words

#: Seconds of one round, and of a short one.
DURATION_S, SHORT_S = 600.0, 8.0
#: Mean pause of a process between two writes, and in a short round. A long one leaves time for the other processes:
#: fifteen that write without a break need more than two cores, and then the writes only show who waits for whom.
PAUSE_S, SHORT_PAUSE_S = 3.0, 0.4
#: An add, which stores one entry, should not take longer than this.
MAX_WAIT_S = 2.0
#: Texts that two processes say at the same time.
SHARED_TEXTS = 400

Work = Callable[["Place", Acknowledge], None]


class Place:
    """What a process works on, and until when."""

    def __init__(self, home: Home, seed: int, until: float, pause_s: float) -> None:
        self.home, self.until, self.pause_s = home, until, pause_s
        self.random = random.Random(seed)

    def __iter__(self) -> Iterator[str]:
        """Yield a unique text again and again, with pauses, until the time is over."""
        while time.monotonic() < self.until:
            yield words(self.random)
            time.sleep(self.random.random() * 2 * self.pause_s)


@contextlib.contextmanager
def timed(say: Acknowledge) -> Iterator[None]:
    """Report how long an add took."""
    start = time.monotonic()
    yield
    say(f"wait\t{time.monotonic() - start}")


# ---- kinds of process -----------------------------------------------------------------------------------------


def add(place: Place, say: Acknowledge) -> None:
    """Add entries."""
    with place.home.open() as memory:
        for text in place:
            with timed(say):
                memory.remember(text, "fact")
            say(f"entry\t{text}")


def add_shared(place: Place, say: Acknowledge) -> None:
    """Add entries that another process adds as well."""
    with place.home.open() as memory:
        for _ in place:
            text = words(random.Random(place.random.randrange(SHARED_TEXTS)))
            with timed(say):
                memory.remember(text, "fact")
            say(f"entry\t{text}")


def capture(place: Place, say: Acknowledge) -> None:
    """Capture conversations and record their transcripts."""
    with place.home.open() as memory:
        for number, text in enumerate(place):
            message = {"role": "user", "content": f"Remember that {text}."}
            if memory.capture_messages([message], session=f"talk {number % 5}", record=True):
                say(f"entry\t{text}")


def save(place: Place, say: Acknowledge) -> None:
    """Save notes."""
    with place.home.open() as memory:
        for number, text in enumerate(place):
            memory.save(text, f"item {number % 5}", category="topic" if number % 2 else None)
            say(f"note\t{text}")


def forget(place: Place, say: Acknowledge) -> None:
    """Add entries and forget them again."""
    with place.home.open() as memory:
        known: list[tuple[str, str]] = []
        for text in place:
            known.append((memory.remember(text, "fact").entry.id, text))
            if len(known) > 5:
                entry_id, old = known.pop(place.random.randrange(len(known)))
                memory.erase(entry_id)
                say(f"forgotten\t{old}")


def sync(place: Place, say: Acknowledge) -> None:
    """Sync, and rebuild the index now and then."""
    with place.home.open() as memory:
        for number, _ in enumerate(place):
            memory.sync(force=number % 20 == 19)
            say("sync\t")


def search(place: Place, say: Acknowledge) -> None:
    """Search and recall."""
    with place.home.open() as memory:
        for number, text in enumerate(place):
            answer = memory.search(f"heron {number % 50} {text.split()[0]}")
            if answer.degraded and ("lock" in answer.degraded or "damaged" in answer.degraded):
                say(f"wrong\t{answer.degraded}")
            memory.recall(f"what do you know about heron {number % 50}?")
            say("search\t")


def edit(place: Place, say: Acknowledge) -> None:
    """Edit notes by hand: in place, by rename, and delete some."""
    folder = place.home.workspace / "memory"
    for text in place:
        file = folder / f"own-{place.random.randrange(50)}.md"
        way = place.random.randrange(4)
        if way == 0:
            file.unlink(missing_ok=True)
        elif way == 1:
            (folder / ".swap").write_text(f"# Mine\n\n{text} heron\n")
            (folder / ".swap").replace(file)
        else:
            with file.open("a") as opened:
                opened.write(f"{text} heron {place.random.randrange(50)}\n")
        say("edit\t")


def items(place: Place, say: Acknowledge) -> None:
    """Put values, as the store of a framework does."""
    from memoriter.extensions.langgraph.items import items_of
    from memoriter.extensions.langgraph.items.store import Put

    with place.home.open() as memory:
        for text in place:
            items_of(memory).put([Put(("soak",), text, {"text": text}, (text,))])
            say(f"item\t{text}")


def use_cli(place: Place, say: Acknowledge) -> None:
    """Use the command line."""
    for number, text in enumerate(place):
        kind, arguments = (("entry", ["add", text, "--type", "fact"]), ("note", ["save", text]))[number % 2]
        code, _, error = command(arguments, environment=place.home.environment())
        say(f"{kind}\t{text}" if code == 0 else _refusal(f"memoriter {arguments[0]}: {error.decode()}"))


def use_mcp(place: Place, say: Acknowledge) -> None:
    """Use the tools through MCP."""
    with McpClient(place.home) as client:
        for text in place:
            with timed(say):
                answer = client.call("tools/call", name="memory_store", arguments={"text": text})
            say(_refusal(str(answer)) if answer.get("isError") else f"entry\t{text}")


def use_hooks(place: Place, say: Acknowledge) -> None:
    """Talk in sessions with hooks."""
    for number, text in enumerate(place):
        session = f"{number % 3:08x}-0000-4000-8000-000000000000"
        transcript = writers.say(place.home, session, f"Remember that {text}.")
        if writers.call_hook(place.home, "Stop", session, transcript):
            say(f"entry\t{text}")


def use_gateway(place: Place, say: Acknowledge) -> None:
    """Run a gateway and use it."""
    from memoriter.server.http.auth import Tokens

    token = Tokens(place.home.home).create("write")[1]
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.dup2(writing, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        be_command(["serve", "--port", "0", "--json"], place.home.environment())
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as lines:
        address = json.loads(lines.readline())["address"].removeprefix("http://")
        client = http.client.HTTPConnection(address, timeout=900)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        for text in place:
            with timed(say):
                client.request("POST", "/v1/agents/main/memory_store", json.dumps({"text": text}), headers)
                answer = client.getresponse()
                received = answer.read().decode()
            client.close()  # the gateway would close the connection in a long pause
            say(f"entry\t{text}" if answer.status == 200 else _refusal(f"{answer.status} {received}"))


def _refusal(message: str) -> str:
    """Return the line for a refused write. Only the time limit of a request is a refusal: a lock is a failure."""
    is_late = any(code in message for code in ("timeout", "took longer"))
    return f"{'late' if is_late else 'wrong'}\t{message}"


def watch(place: Place, say: Acknowledge) -> None:
    """Run a watcher until the time is over."""
    if os.fork() == 0:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        be_command(["watch"], place.home.environment())
    for _ in place:
        say("watch\t")


KINDS: tuple[Work, ...] = (
    *(add, add_shared, add_shared, capture, save, forget, sync, search, edit, items),
    *(use_cli, use_mcp, use_hooks, use_gateway, watch),
)


# ---- one round ------------------------------------------------------------------------------------------------


def run(task: Task) -> Round:
    """Let all kinds of process work on one home for some minutes, and check it."""
    load_everything()
    done, home = Round(), Home(task.folder / "shared").create()
    duration_s, pause_s = (SHORT_S, SHORT_PAUSE_S) if task.short else (DURATION_S, PAUSE_S)
    until = time.monotonic() + duration_s
    places = [Place(home, task.random.randrange(1 << 31), until, pause_s) for _ in KINDS]
    started = [Writer(partial(_work, kind, place)) for kind, place in zip(KINDS, places, strict=True)]
    lines = _collect(started, until)
    in_fork(writers.finish_sessions, home, timeout_s=1800)
    kill_orphans()
    _count(done, lines)
    forgotten = {text for kind, text in lines if kind == "forgotten"}
    acknowledged = sorted({f"{kind}\t{text}" for kind, text in lines if kind in writers.KINDS})
    for problem in in_fork(writers.problems, home, acknowledged, timeout_s=1800):
        done.fail(problem)
    for problem in in_fork(resurrected, home, sorted(forgotten), timeout_s=1800):
        done.fail(problem)
    for problem in in_fork(unlike_a_rebuild, home, timeout_s=1800):
        done.fail(problem)
    return done


def _work(kind: Work, place: Place, acknowledge: Acknowledge) -> None:
    """Work until the time is over; an error is a finding, after which the process starts again."""
    while time.monotonic() < place.until:
        try:
            kind(place, acknowledge)
        except Exception as error:  # noqa: BLE001  this is what the part looks for
            acknowledge(_refusal(f"{kind.__name__}: {type(error).__name__}: {error}".replace("\n", " ")))
            time.sleep(place.pause_s)


def _collect(started: list[Writer], until: float) -> list[tuple[str, str]]:
    """Read what the processes say until they end, and kill what they started."""
    while time.monotonic() < until:
        for writer in started:
            writer.wait_for(sys.maxsize, timeout_s=0.2)
    for writer in started:
        writer.wait_for_end(timeout_s=1800)
    lines = [line for writer in started for line in writer.kill()]
    kill_orphans()
    return [(line.partition("\t")[0], line.partition("\t")[2]) for line in lines]


def _count(done: Round, lines: list[tuple[str, str]]) -> None:
    names = {"entry": "writes", "note": "writes", "item": "writes", "sync": "syncs", "search": "searches"}
    names |= {"edit": "hand edits", "forgotten": "forgotten", "late": "refused by a time limit"}
    for kind, text in lines:
        if kind == "wrong":
            done.fail(text)
        elif kind in names:
            done.count(names[kind])
    waits = [float(text) for kind, text in lines if kind == "wait"]
    done.count("adds timed", len(waits))
    done.count(f"adds longer than {MAX_WAIT_S:g} s", sum(wait > MAX_WAIT_S for wait in waits))
    done.count(LONGEST_WAIT, round(1000 * max(waits, default=0.0)))
    if max(waits, default=0.0) > MAX_WAIT_S:
        done.fail(f"an add waited {max(waits):.1f} s for others")


def resurrected(home: Home, forgotten: list[str]) -> list[str]:
    """Return forgotten texts that are back."""
    known = writers.stored(home)["entry"]
    with home.open() as memory:
        found = [text for text in forgotten[-50:] if memory.entries.search(text, limit=1, threshold=0.9).hits]
    return [f"resurrected: {text}" for text in forgotten if known[text]] + [
        f"found: {text}" for text in found
    ]


def unlike_a_rebuild(home: Home) -> list[str]:
    """Compare the index, brought up to date, with one that is built from nothing."""
    fresh = Home(home.root.parent / "fresh")
    shutil.copytree(home.agent / "sessions", fresh.agent / "sessions", dirs_exist_ok=True)
    with home.open() as memory:
        memory.sync(verify=True)
        old = _rows(memory)
    from memoriter import Memory

    with Memory.open(home.workspace, home=fresh.home, overrides={"embedding.provider": "none"}) as memory:
        memory.sync()
        new = _rows(memory)
    return [f"the table {name} differs from a rebuild" for name in new if old[name] != new[name]]


def _rows(memory: Any) -> dict[str, list[tuple[object, ...]]]:
    tables = {
        "files": "SELECT path, source, size, sha256 FROM files ORDER BY path",
        "chunks": "SELECT id, path, source, start_line, end_line, text, hash FROM chunks ORDER BY path, start_line, id",
        "terms": "SELECT term, doc, cnt FROM chunks_terms ORDER BY term",
    }
    database = apsw.Connection(str(Path(memory.status().index_path)), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return {name: database.execute(query).fetchall() for name, query in tables.items()}
    finally:
        database.close()


def control(task: Task) -> Round:
    """Let four processes rewrite one note without a lock."""
    done, home = Round(), Home(task.folder / "control").create()
    started = [Writer(partial(writers.plain, home, seed)) for seed in range(4)]
    lines: list[str] = []
    for writer in started:
        writer.wait_for(200, timeout_s=20)
    for writer in started:
        lines += writer.kill()
    done.count("writes", len(lines))
    for problem in in_fork(writers.problems, home, lines):
        done.fail(problem)
    return done


PART = Part(
    "processes",
    "Fourteen kinds of process on one home",
    {"seconds": 3600},
    run,
    control,
    "processes that rewrite a note without a lock",
)
