"""Check the installation and the memory, and say how to fix problems.

`examine` makes the report for the command line. `check_setup` and `check_memory` are its two halves; `health.get` uses
them too. The checks change nothing, except that a damaged derived index is built again.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from memoriter.errors import BackupError, MemoriterError, MemoryDisabled, StoreBroken, message_of
from memoriter.extension import extensions, problems, resolve
from memoriter.files.platform import how_to_make_private, is_private
from memoriter.memory import Memory, parts_of
from memoriter.records import Finding
from memoriter.sentences import sentence

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.records import Status

#: The index of a large workspace needs some hundred megabytes. Less free space than this is a warning.
LOW_DISK_BYTES = 500 * 1024 * 1024


def examine(
    load: Callable[[], Settings], opened: Callable[[], AbstractContextManager[Memory]]
) -> list[Finding]:
    """Run all checks. A check that cannot run is a finding as well."""
    try:
        settings = load()
    except MemoriterError as error:
        fix = "" if isinstance(error, BackupError) else sentence("check.fix_setting")  # its message says how
        return [Finding("settings", "wrong", message_of(error), fix)]
    findings = list(check_setup(settings))
    if any(finding.name == "workspace" and finding.state == "wrong" for finding in findings):
        return findings  # without a workspace there is nothing to compare the index with
    try:
        with opened() as memory:
            parts_of(memory).warm_up()
            findings += check_memory(memory, memory.status(deep=True))
    except MemoryDisabled as error:
        findings.append(Finding("memory", "note", message_of(error), sentence("check.switch_on")))
    except MemoriterError as error:
        if settings.store.is_shared:
            fix = "Correct the server or `store.url`, then run this again."
            return [*findings, Finding("server", "wrong", message_of(error), fix)]
        fix = sentence("check.rebuild")
        if isinstance(error.__cause__, OSError):  # a new index does not make a folder writable
            fix = sentence("check.make_writable", path=settings.home)
        findings.append(Finding("index", "wrong", message_of(error), fix))
    return findings


def check_setup(settings: Settings) -> Iterator[Finding]:
    """Check the machine and the folders that the settings name."""
    import apsw

    yield Finding("settings", "ok", sentence("check.settings", home=settings.home))
    python = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding("python", "ok", sentence("check.python", python=python, sqlite=apsw.sqlite_lib_version()))
    if not settings.store.is_shared:  # otherwise opening the memory creates the workspace, a working copy
        yield _workspace(settings)
    yield from _home(settings)


def check_memory(memory: Memory, status: Status) -> Iterator[Finding]:
    """Check an open memory. A deep status gives more findings."""
    yield from _backend(memory.settings, status)
    yield from _index(status)
    if problem := parts_of(memory).judge_problem():
        yield Finding("changes", "note", problem, sentence("check.reinstall"))
    yield from _skipped(status)
    yield from _models(memory.settings, status)
    yield from _entries(memory, deep="store" in status.details)
    yield from _extensions(memory, deep="store" in status.details)
    yield from parts_of(memory).store.check()


def _skipped(status: Status) -> Iterator[Finding]:
    """Name the files that are not indexed, with the reason for each."""
    skipped = status.details.get("skipped")
    if isinstance(skipped, Mapping):
        lines = "\n".join(f"{path}: {reason}" for path, reason in skipped.items())
        yield Finding("skipped files", "note", lines, sentence("check.fix_files"))


def _models(settings: Settings, status: Status) -> Iterator[Finding]:
    """Check settings that need a key or a model which is missing."""
    provider = settings.embedding.provider
    key = f"{provider}_api_key"
    if hasattr(settings.embedding, key) and getattr(settings.embedding, key) is None:
        fix = sentence("check.set_key", key=f"embedding.{key}")
        yield Finding("provider", "note", sentence("check.no_key", provider=provider), fix)
    if settings.extraction.auto_extract and settings.llm.provider == "none":
        yield Finding("extraction", "note", sentence("check.no_model"), sentence("check.set_model"))
    is_chosen = not settings.store.is_shared and status.backend == "builtin"  # a server has its own engine
    if is_chosen and status.vector_engine != settings.index.vector_engine:
        text = f"`{status.vector_engine}` answers instead of `{settings.index.vector_engine}`."
        yield Finding(
            "vector engine", "note", text, "Install the package of the engine, or change the setting."
        )


def _extensions(memory: Memory, *, deep: bool) -> Iterator[Finding]:
    """Name extensions that cannot be used, and run the checks of the others."""
    for name, reason in problems().items():
        yield Finding(name, "note", f"The extension {name} {reason}.")
    for extension in extensions():
        for code in extension.checks:
            yield from resolve(code)(memory, deep=deep)


def truth_fix(memory: Memory, error: Exception, restore: str) -> str:
    """Return how to fix a database that cannot be used. Only a damaged one has to be restored."""
    if isinstance(error, StoreBroken):
        return sentence(restore)
    is_low = shutil.disk_usage(memory.settings.home).free < LOW_DISK_BYTES
    return sentence("check.free_disk") if is_low else ""


def _entries(memory: Memory, *, deep: bool) -> Iterator[Finding]:
    """Check `memory.db`. It is a source of truth and cannot be rebuilt."""
    try:
        if not memory.has_entries:
            return
        context, total = parts_of(memory).entry_context, memory.entries.stats().total
        damage = context.store.check(deep=True) if deep else []
    except MemoriterError as error:
        yield Finding(
            "entries", "wrong", message_of(error), truth_fix(memory, error, "check.restore_entries")
        )
        return
    if damage:
        yield Finding("entries", "wrong", "; ".join(damage), sentence("check.restore_entries"))
        return
    yield Finding("entries", "ok", sentence("check.entries", n=total))
    if problem := context.clock_problem():
        yield Finding("clock", "note", problem, sentence("check.fix_clock"))
    yield from _entry_index(memory) if deep else ()
    if memory.settings.entries.vector_engine != "scan" and (problem := context.probe_vector()):
        yield Finding("vectors of entries", "note", problem, sentence("check.retried"))


def _entry_index(memory: Memory) -> Iterator[Finding]:
    """Check the index of entries, which is built again if it is damaged."""
    try:
        healed = memory.entries.repair_index()
    except MemoriterError as error:
        yield Finding("index of entries", "wrong", message_of(error), sentence("check.rebuild"))
        return
    if healed:
        yield Finding("index of entries", "note", healed, sentence("check.rebuilt"))


def _workspace(settings: Settings) -> Finding:
    root = settings.workspace
    if not root.is_dir():
        text = sentence("check.no_workspace", path=root)
        return Finding("workspace", "wrong", text, sentence("check.set_workspace"))
    notes = (root / name for name in ("MEMORY.md", "memory.md", settings.files.folder))
    if not settings.extra_paths and not any(path.exists() for path in notes):
        text = sentence("check.no_notes", path=root)
        return Finding("workspace", "note", text, sentence("check.write_notes"))
    return Finding("workspace", "ok", sentence("check.workspace", path=root))


def _home(settings: Settings) -> Iterator[Finding]:
    home = settings.home
    if not home.exists():
        return
    if not is_private(home):
        fix = sentence("check.chmod", command=how_to_make_private(home))
        yield Finding("home", "note", sentence("check.readable", path=home), fix)
    if not os.access(home, os.W_OK):
        fix = sentence("check.make_writable", path=home)
        yield Finding("home", "note", sentence("check.read_only", path=home), fix)
    free = shutil.disk_usage(home).free
    if free < LOW_DISK_BYTES:
        text = sentence("check.disk", megabytes=free >> 20, path=home)
        yield Finding("disk", "note", text, sentence("check.free_disk"))


def _backend(settings: Settings, status: Status) -> Iterator[Finding]:
    """Check whether the engine that the settings name is the one that answers."""
    if settings.memory.backend == "builtin":
        return
    if status.fallback:
        yield Finding("backend", "wrong", str(status.details["last_error"]), sentence("check.backend"))
    else:
        version = status.details.get(settings.memory.backend, settings.memory.backend)
        yield Finding("backend", "note" if status.degraded else "ok", status.degraded or str(version))
    if problem := status.details.get("upkeep"):
        yield Finding("upkeep", "note", str(problem), sentence("check.retried"))


def _index(status: Status) -> Iterator[Finding]:
    details = status.details
    store = str(details.get("store", "ok"))
    if store == "ok":
        yield Finding("index", "ok", sentence("check.indexed", files=status.files, chunks=status.chunks))
    else:
        yield Finding("index", "wrong", store, sentence("check.rebuilds"))
    if stale := details.get("behind"):
        yield Finding("freshness", "note", sentence("check.stale", n=stale), sentence("check.index"))
    yield from _embedder(status)
    vectors = str(details.get("vectors", "ok"))
    if vectors not in ("ok", str(details.get("embedding"))) and status.provider != "none":
        yield Finding("vector engine", "note", vectors, sentence("check.retried"))


def _embedder(status: Status) -> Iterator[Finding]:
    details = status.details
    problem = details.get("embedding", "ok" if status.provider != "none" else details["embedder"])
    works = problem == "ok"
    is_off = getattr(problem, "code", "") == "embedder.none"
    if status.backend == "builtin" and status.embedded < status.chunks and not is_off:
        missing = status.chunks - status.embedded
        text = sentence("check.no_vectors", missing=missing, total=status.chunks)
        # Without an embedder, indexing does not help. The next finding names the reason.
        fix = sentence("check.index") if status.provider != "none" else ""
        yield Finding("vectors", "note", text, fix)
    reason = details["embedder"] if works else problem
    yield Finding("embedder", "ok" if works else "note", reason if isinstance(reason, str) else str(reason))
