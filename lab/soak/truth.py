"""Damage files of truth at random: it is reported, and nothing is overwritten.

A change that leaves every value as it was, such as one in a free page of a database, needs no report. A note or a
transcript that is still text was edited, as far as a program can tell: the memory must show the new text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.soak.derived import DAMAGE, Damaged, open_memory
from lab.soak.forking import ForkFailed, command, in_fork
from lab.soak.part import Part, Round, Task
from lab.soak.writers import Home
from memoriter.memory import parts_of

DAMAGES = 50
KINDS = ("memory.db", "memory.db", "items.db", "transcript", "note")


def pick(home: Home, chooser: random.Random) -> tuple[str, Path]:
    """Choose a file of truth."""
    kind = chooser.choice(KINDS)
    if kind == "transcript":
        return kind, next((home.agent / "sessions").glob("*.jsonl"))
    if kind == "note":
        return kind, chooser.choice(sorted((home.workspace / "memory").glob("*.md")))
    return kind, home.agent / kind


def values(home: Home) -> dict[str, object]:
    """Return every value in the databases of truth as the memory reads it, or None if it reports damage."""
    from memoriter.errors import MemoriterError

    found: dict[str, object] = {}
    for name, read in (("entries", _entries), ("items", _items)):
        try:
            with open_memory(home) as memory:
                found[name] = read(memory)
        except MemoriterError:
            found[name] = None
    return found


def _entries(memory: Any) -> list[str]:
    """Return the entries with their histories, and every row of the other tables: tombstones, ledger, open work."""
    entries = memory.entries.list(states=())
    found = [f"{entry} {memory.entries.history(entry.id)}" for entry in entries]
    with parts_of(memory).entry_context.store.database.read() as connection:
        # A flipped bit can turn a name into bytes, which SQLite reads as the same name.
        tables = "select cast(name as text) from sqlite_schema where type = 'table'"
        names = [str(name) for (name,) in connection.execute(tables)]
        for name in names:
            found += [f"{name} {row}" for row in connection.execute(f'select * from "{name}"')]
    return sorted(found)


def _items(memory: Any) -> list[str]:
    from memoriter.extensions.langgraph.items import items_of

    hits = items_of(memory).search(("soak",), limit=100)
    return sorted(f"{hit.item.key} {hit.item.value}" for hit in hits)


def use(home: Home) -> list[str]:
    """Search and sync a damaged home and run `doctor`; return what is reported."""
    from memoriter.errors import MemoriterError

    reported: list[str] = []
    try:
        with open_memory(home) as memory:
            answer = memory.search("heron 17")
            reported += [answer.degraded] if answer.degraded else []
            reported += [str(problem) for problem in memory.sync(verify=True).problems]
            reported += parts_of(memory).entry_context.store.check(deep=True)
    except MemoriterError as error:
        reported.append(str(error))
    _, out, error_ = command(["doctor", "--json"], environment=home.environment())
    if b"Traceback" in error_:
        raise RuntimeError(error_.decode())
    findings = json.loads(out)["findings"]
    return [*reported, *(finding["text"] for finding in findings if finding["state"] == "wrong")]


def ignore(_: Home) -> list[str]:
    """Report nothing: the control."""
    return []


def run(task: Task) -> Round:
    """Damage files of truth one after the other, and check that each is reported and unchanged."""
    return _damage(task, 6 if task.short else DAMAGES, use)


def _damage(task: Task, times: int, look: Callable[[Home], list[str]]) -> Round:
    damaged, done = Damaged(task.folder), Round()
    original, usual = in_fork(values, damaged.restore()), in_fork(use, damaged.restore())
    for _ in range(times):
        home = damaged.restore()
        kind, file = pick(home, task.random)
        damage = task.random.choice(DAMAGE)
        where = f"{damage.__name__} {kind}"
        damage(file, task.random)
        content = file.read_bytes() if file.exists() else None
        done.count("damages")
        done.count(f"damages of {kind}")
        try:
            reported = [line for line in in_fork(look, home) if line not in usual]
            if (file.read_bytes() if file.exists() else None) != content and content is not None:
                done.fail(f"{where}: the file was overwritten")
            if reported:
                done.count("reported")
            elif kind.endswith(".db") and in_fork(values, home) != original:
                done.fail(f"{where}: values changed and nothing was reported")
            elif not kind.endswith(".db") and not _is_text(content or b""):
                done.fail(f"{where}: not text any more, and nothing was reported")
            else:
                done.count("without effect")
        except ForkFailed as failed:
            done.fail(f"{where}: {str(failed)[-900:]}")
    return done


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode("utf-8")
    except UnicodeDecodeError:
        return False


def control(task: Task) -> Round:
    """Look at damaged files without checking them."""
    return _damage(task, 20, ignore)


PART = Part(
    "truth",
    "Damage to memory.db, items.db, transcripts and notes: reported, nothing overwritten",
    {"damages": 500},
    run,
    control,
    "a program that reports nothing",
)
