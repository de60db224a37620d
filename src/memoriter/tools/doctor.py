"""Is everything in order, and if not, how is it mended? One examination for every door that is asked.

It looks and says; it mends nothing.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from memoriter.errors import MemoriterError, MemoryDisabled

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.memory import Memory
    from memoriter.records import Status

#: The index of a large workspace needs some hundred megabytes; less than this is a warning.
LOW_DISK_BYTES = 500 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "note", "wrong"]
    text: str
    mend: str = ""


def examine(
    load: Callable[[], Settings], opened: Callable[[], AbstractContextManager[Memory]]
) -> list[Finding]:
    """Look at everything; a check that cannot be made is itself a finding."""
    try:
        settings = load()
    except MemoriterError as error:
        return [Finding("settings", "wrong", str(error), "Mend the named key, then run this again.")]
    findings = list(around(settings))
    if any(finding.name == "workspace" and finding.state == "wrong" for finding in findings):
        return findings  # without it there is nothing that an index could be compared with
    try:
        with opened() as memory:
            memory.warm_up()
            findings += inside(memory, memory.status(deep=True))
    except MemoryDisabled as error:
        findings.append(Finding("memory", "note", str(error), "Set it to `memory-core` to switch memory on."))
    except MemoriterError as error:
        findings.append(Finding("index", "wrong", str(error), "Run `memoriter index --force`."))
    return findings


def around(settings: Settings) -> Iterator[Finding]:
    """The machine and the places that the settings name."""
    yield Finding("settings", "ok", f"valid; home {settings.home}")
    yield from _machine()
    yield _workspace(settings)
    yield from _home(settings)


def inside(memory: Memory, status: Status) -> Iterator[Finding]:
    """What an open memory says of itself; the more, the deeper the status looked."""
    yield from _backend(memory.settings, status)
    yield from _index(status)
    yield from _entries(memory)
    yield from _items(memory)


def _items(memory: Memory) -> Iterator[Finding]:
    """`items.db` is truth as well."""
    try:
        counted = memory.item_namespaces()
    except (MemoriterError, OSError) as error:
        yield Finding("items", "wrong", str(error), "Restore the file from a backup, or set it aside.")
        return
    if counted is not None:
        yield Finding("items", "ok", f"kept in {counted} {'namespace' if counted == 1 else 'namespaces'}")


def _entries(memory: Memory) -> Iterator[Finding]:
    """`memory.db` is truth, not a cache: damage to it is the owner's to mend."""
    try:
        counted = memory.entries.stats() if memory.has_entries else None
    except MemoriterError as error:
        mend = "Restore the file from a backup, or set it aside and `memoriter import` an export."
        yield Finding("entries", "wrong", str(error), mend)
        return
    if counted is not None:
        yield Finding("entries", "ok", f"{counted['total']} kept")


def _machine() -> Iterator[Finding]:
    import apsw

    python = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding("python", "ok", f"Python {python}, SQLite {apsw.sqlite_lib_version()}")
    if importlib.util.find_spec("sqlite_vec") is None:
        yield Finding(
            "sqlite-vec",
            "note",
            "not installed; the default engine `scan` does not need it",
            "pip install 'memoriter[sqlite-vec]'",
        )


def _workspace(settings: Settings) -> Finding:
    root = settings.workspace
    if not root.is_dir():
        return Finding(
            "workspace", "wrong", f"{root} is not a folder", "Run `memoriter init`, or name --workspace."
        )
    if not any((root / name).exists() for name in ("MEMORY.md", "memory.md", "memory")):
        return Finding(
            "workspace", "note", f"{root} has no notes yet", "Run `memoriter init`, then write some."
        )
    return Finding("workspace", "ok", str(root))


def _home(settings: Settings) -> Iterator[Finding]:
    home = settings.home
    if not home.exists():
        return
    if os.name == "posix" and stat.S_IMODE(home.stat().st_mode) & 0o077:
        yield Finding("home", "note", f"{home} can be read by other users", f"chmod 700 {home}")
    free = shutil.disk_usage(home).free
    if free < LOW_DISK_BYTES:
        yield Finding("disk", "note", f"only {free >> 20} MB are free under {home}", "Make room.")


def _backend(settings: Settings, status: Status) -> Iterator[Finding]:
    """Whether the engine that the settings name is the one that answers, and answers as it should."""
    if settings.memory.backend == "builtin":
        return
    if status.fallback:
        mend = "Mend what is named, or set `memory.backend: builtin`."
        yield Finding("backend", "wrong", str(status.details["last_error"]), mend)
    else:
        version = status.details.get(settings.memory.backend, settings.memory.backend)
        yield Finding("backend", "note" if status.degraded else "ok", status.degraded or str(version))
    if trouble := status.details.get("upkeep"):
        yield Finding("upkeep", "note", str(trouble), "It is tried again by itself.")


def _index(status: Status) -> Iterator[Finding]:
    details = status.details
    store = str(details.get("store", "ok"))
    damaged = store != "ok"
    yield Finding(
        "index",
        "wrong" if damaged else "ok",
        store if damaged else f"{status.files} files, {status.chunks} chunks",
        "Run `memoriter index`: it is rebuilt from the files." if damaged else "",
    )
    if behind := details.get("behind"):
        yield Finding("freshness", "note", f"{behind} files differ from the index", "Run `memoriter index`.")
    trouble = str(details.get("embedding", "ok" if status.provider != "none" else details["embedder"]))
    working = trouble == "ok"
    if working and status.backend == "builtin" and status.embedded < status.chunks:
        missing = status.chunks - status.embedded
        yield Finding("vectors", "note", f"{missing} chunks have no vector", "Run `memoriter index`.")
    yield Finding("embedder", "ok" if working else "note", str(details["embedder"]) if working else trouble)
