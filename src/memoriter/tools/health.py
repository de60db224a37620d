"""`health.get`: how fresh and complete the memory is, and what to fix. `overview.get`: what it did on the last days."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import Field

from memoriter import logs
from memoriter.config.fields import described
from memoriter.errors import MemoriterError, message_of
from memoriter.memory import Memory, parts_of
from memoriter.records import Bucket, Entry, Finding, Status
from memoriter.sentences import sentence
from memoriter.tools.doctor import check_memory, check_setup
from memoriter.tools.entries import EntryJson, Time
from memoriter.tools.tool import Arguments, Call, Count, Degraded, Shape, operation

#: Warnings and errors that are listed.
MAX_ERRORS = 50


# ---- shapes -------------------------------------------------------------------------------------------------------


class HealthArguments(Arguments):
    deep: bool = described(False, "Also test the embedder and check every page of the database; slower.")


class FreshnessJson(Shape):
    """Freshness of the index."""

    behind: Count | None = described(None, "Files that differ from the index.")
    last_sync: float | None = None
    watching: str | None = None


class EmbedderJson(Shape):
    """The embedder that answers."""

    provider: str = "none"
    model: str = ""
    embedded: Count = 0
    vector_engine: str = "none"
    degraded: Degraded = None


class SizesJson(Shape):
    """Amount of stored data."""

    files: Count = 0
    chunks: Count = 0
    entries: Count = 0
    notes_bytes: Count = 0
    memory_bytes: Count = 0
    index_bytes: Count = 0
    entry_index_bytes: Count = 0
    session_bytes: Count = 0
    other_bytes: Count = 0


class QueueJson(Shape):
    """Pending work."""

    pending: Count = described(0, "Chunks without a vector.")
    pending_entries: Count = described(0, "Entries without a vector.")
    staged: Count = described(0, "Entries that wait for the owner's approval.")


HealthStatus = Literal["ok", "degraded", "wrong"]


class HealthResult(Shape):
    """The state of the memory."""

    status: HealthStatus = "ok"
    freshness: FreshnessJson = FreshnessJson()
    embedder: EmbedderJson = EmbedderJson()
    backend: str = "none"
    fallback: bool = False
    sizes: SizesJson = SizesJson()
    queue: QueueJson = QueueJson()
    findings: list[Finding] = Field(default=[])
    errors: list[logs.Trouble] = Field(default=[])


# ---- health.get ---------------------------------------------------------------------------------------------------


@operation("health.get", reveals_paths=True)
def _health(call: Call[HealthArguments]) -> HealthResult:
    """Report the state of the memory: freshness, embedder, engine, sizes, pending work, findings with a fix for each,
    and the last warnings and errors of this process about this agent.
    """
    memory = call.memory
    findings = list(check_setup(memory.settings))
    status: Status | None = None
    try:
        status = memory.status(deep=call.arguments.deep)
        findings += check_memory(memory, status)
    except (MemoriterError, OSError) as error:
        findings.append(Finding("index", "wrong", message_of(error), sentence("check.rebuild")))
    behind = _behind(memory, status)
    if behind and not any(finding.name == "freshness" for finding in findings):
        findings.append(
            Finding("freshness", "note", sentence("check.stale", n=behind), sentence("check.index"))
        )
    queue = _queue(memory, status)
    summary = _summary(findings, status)
    if summary == "ok" and (queue.pending or queue.pending_entries):
        summary = "degraded"  # a search by meaning misses them
    return HealthResult(
        status=summary,
        freshness=FreshnessJson(
            behind=behind, last_sync=status.last_sync if status else None, watching=parts_of(memory).watching
        ),
        embedder=EmbedderJson.model_validate(status) if status else EmbedderJson(),
        backend=status.backend if status else "none",
        fallback=status.fallback if status else False,
        sizes=SizesJson(**_counts(memory, status), **_sizes(memory.settings.agent_folder)),
        queue=queue,
        findings=findings,
        errors=logs.troubles(str(memory.settings.agent_folder))[:MAX_ERRORS],
    )


def _summary(findings: list[Finding], status: Status | None) -> HealthStatus:
    """Sum up the findings."""
    if any(finding.state == "wrong" for finding in findings):
        return "wrong"
    flawed = any(finding.state == "note" for finding in findings)
    return "degraded" if flawed or (status and status.degraded) else "ok"


def _behind(memory: Memory, status: Status | None) -> int | None:
    known = status.details.get("behind") if status else None
    if isinstance(known, int):
        return known
    try:
        return memory.count_stale()
    except (MemoriterError, OSError):
        return None


def _queue(memory: Memory, status: Status | None) -> QueueJson:
    waiting = {"vectors": 0, "staged": 0}
    with suppress(MemoriterError, OSError):
        waiting = parts_of(memory).entry_context.count_pending() if memory.has_entries else waiting
    makes_vectors = status is not None and status.backend == "builtin" and status.provider != "none"
    missing = status.chunks - status.embedded if status and makes_vectors else 0
    return QueueJson(pending=missing, pending_entries=waiting["vectors"], staged=waiting["staged"])


def _counts(memory: Memory, status: Status | None) -> dict[str, int]:
    try:
        entries = memory.entries.stats().total if memory.has_entries else 0
    except (MemoriterError, OSError):
        entries = 0
    indexed = {"files": status.files, "chunks": status.chunks} if status else {"files": 0, "chunks": 0}
    notes = status.details.get("source_bytes", 0) if status else 0
    return {**indexed, "entries": entries, "notes_bytes": notes if isinstance(notes, int) else 0}


#: The sizes that the files in the folder of an agent count for. Other files count as `other_bytes`.
_SIZE_OF = {
    "memory.db": "memory_bytes",
    "workspaces": "index_bytes",
    "entries": "entry_index_bytes",
    "sessions": "session_bytes",
}


def _sizes(folder: Path) -> dict[str, int]:
    """Return the bytes on disk. The logs of a database count as part of it."""
    sizes = dict.fromkeys((*_SIZE_OF.values(), "other_bytes"), 0)
    for path in folder.iterdir() if folder.is_dir() else ():
        name = path.name.removesuffix("-wal").removesuffix("-shm")
        sizes[_SIZE_OF.get(name, "other_bytes")] += _bytes(path)
    return sizes


def _bytes(path: Path) -> int:
    total = 0
    for file in (path, *path.rglob("*")) if path.is_dir() else (path,):
        try:
            total += 0 if file.is_dir() else file.lstat().st_size
        except OSError:  # deleted in the meantime
            continue
    return total


#: Entries in each list.
MAX_LISTED = 6
DAY_S = 86_400.0


class OverviewArguments(Arguments):
    until: Time | None = described(
        None, "The end of the last day, in seconds since the epoch. The default is now."
    )
    days: int = described(30, "Number of days.", ge=1, le=366)


class OverviewResult(Shape):
    """The last days of the memory, the last of them being today."""

    days: list[Bucket] = Field(default=[])
    active: Count = described(0, "Entries in force.")
    staged: Count = described(0, "Entries and notes that wait for the owner's approval.")
    errors: Count = described(0, "Warnings and errors of this process on the last day.")
    latest: list[EntryJson] = described([], "The entries that were learned last.")
    most_used: list[EntryJson] = described([], "The entries that were used most.")
    never_used: list[EntryJson] = described([], "The most important entries that were never used.")
    never_used_total: Count = 0


@operation("overview.get")
def _overview(call: Call[OverviewArguments]) -> OverviewResult:
    """Return what the memory did on the last days: learned, superseded and recalled entries, tokens added to prompts,
    what waits for approval, errors, and the entries that were used most and never.
    """
    entries, asked = call.memory.entries, call.arguments
    until = time.time() if asked.until is None else asked.until
    days = entries.timeline(since=max(0.0, until - asked.days * DAY_S), until=until, buckets=asked.days)
    states = entries.facets().states
    never = entries.page(sort="importance", limit=MAX_LISTED, used=False)
    troubles = logs.troubles(str(call.memory.settings.agent_folder))
    return OverviewResult(
        days=list(days),
        active=states.get("active", 0),
        staged=states.get("staged", 0) + len(call.memory.notes.pending()),
        errors=sum(until - DAY_S <= trouble.at < until for trouble in troubles),
        latest=_listed(entries.page(limit=MAX_LISTED).entries),
        most_used=_listed(entries.page(sort="used", limit=MAX_LISTED, used=True).entries),
        never_used=_listed(never.entries),
        never_used_total=never.total,
    )


def _listed(entries: tuple[Entry, ...]) -> list[EntryJson]:
    return [EntryJson.model_validate(entry) for entry in entries]


OPERATIONS = (_overview, _health)
