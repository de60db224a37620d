"""The operation that says how the memory is: fresh, complete, who answers, what is wrong and how it is mended."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoriter import logs
from memoriter.errors import MemoriterError
from memoriter.tools import results
from memoriter.tools.doctor import Finding, around, inside
from memoriter.tools.tool import Call, Param, Result, Tool

if TYPE_CHECKING:
    from memoriter.memory import Memory
    from memoriter.records import Status

ERRORS = 50  #: of the last ones that are shown


def _health(call: Call) -> Result:
    memory, deep = call.memory, bool(call["deep"])
    findings = list(around(memory.settings))
    status: Status | None = None
    try:
        status = memory.status(deep=deep)
        findings += inside(memory, status)
    except (MemoriterError, OSError) as error:
        findings.append(Finding("index", "wrong", str(error), "Run `memoriter index --force`."))
    queue, behind = _queue(memory, status), _behind(memory, status)
    if behind and not any(finding.name == "freshness" for finding in findings):
        findings.append(
            Finding("freshness", "note", f"{behind} files differ from the index", "Run `memoriter index`.")
        )
    errors = logs.troubles(str(memory.settings.agent_folder))[:ERRORS]
    return {
        "status": _word(findings, status),
        "freshness": {
            "behind": behind,
            "lastSync": status.last_sync if status else None,
            "watching": memory.watching() if memory.watching else None,
        },
        "embedder": {
            "provider": status.provider if status else "none",
            "model": status.model if status else "",
            "embedded": status.embedded if status else 0,
            "vectorEngine": status.vector_engine if status else "none",
            "degraded": status.degraded if status else None,
        },
        "backend": status.backend if status else "none",
        "fallback": status.fallback if status else False,
        "sizes": {**_counts(memory, status), **_sizes(memory.settings.agent_folder)},
        "queue": queue,
        "findings": [asdict(finding) for finding in findings],
        "errors": [asdict(error) for error in errors],
    }


def _word(findings: list[Finding], status: Status | None) -> str:
    """The whole in one word; that something could be installed is no flaw."""
    if any(finding.state == "wrong" for finding in findings):
        return "wrong"
    flawed = any(finding.state == "note" and finding.name != "sqlite-vec" for finding in findings)
    return "degraded" if flawed or (status and status.degraded) else "ok"


def _behind(memory: Memory, status: Status | None) -> int | None:
    known = status.details.get("behind") if status else None
    if isinstance(known, int):
        return known
    try:
        return memory.behind()
    except (MemoriterError, OSError):
        return None


def _queue(memory: Memory, status: Status | None) -> dict[str, int]:
    """What has still to be done: vectors of chunks and of entries, and entries for the owner to look at."""
    try:
        waiting = memory.waiting_entries()
    except (MemoriterError, OSError):
        waiting = {"vectors": 0, "staged": 0}
    makes_vectors = status is not None and status.backend == "builtin" and status.provider != "none"
    missing = status.chunks - status.embedded if status and makes_vectors else 0
    return {"pending": missing, "pendingEntries": waiting["vectors"], "staged": waiting["staged"]}


def _counts(memory: Memory, status: Status | None) -> dict[str, int]:
    """How much there is of everything."""
    try:
        entries = (memory.entry_stats() or {}).get("total", 0)
    except (MemoriterError, OSError):
        entries = 0
    held = {"files": status.files, "chunks": status.chunks} if status else {"files": 0, "chunks": 0}
    noted = status.details.get("source_bytes", 0) if status else 0
    return {**held, "entries": _whole(entries), "notesBytes": _whole(noted)}


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


#: What the things in an agent's folder are for; the rest is counted together.
_PLACES = {
    "memory.db": "memoryBytes",
    "index.db": "indexBytes",
    "vectors": "indexBytes",
    "entries": "entryIndexBytes",
    "sessions": "sessionBytes",
}
_BYTES = (*dict.fromkeys(_PLACES.values()), "otherBytes")


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes on the disk of what is kept for this agent, logs of databases with their databases."""
    sizes = dict.fromkeys(_BYTES, 0)
    for one in folder.iterdir() if folder.is_dir() else ():
        name = one.name.removesuffix("-wal").removesuffix("-shm")
        sizes[_PLACES.get(name, "otherBytes")] += _bytes(one)
    return sizes


def _bytes(path: Path) -> int:
    total = 0
    for file in (path, *path.rglob("*")) if path.is_dir() else (path,):
        try:
            total += 0 if file.is_dir() else file.lstat().st_size
        except OSError:  # it went away meanwhile
            continue
    return total


_FINDING = results.shape(
    name=results.TEXT,
    state=results.one_of("ok", "note", "wrong"),
    text=results.TEXT,
    mend={"type": "string", "description": "What mends it; empty where nothing has to be."},
)
_ERROR = results.shape(
    at=results.NUMBER,
    level=results.one_of("warning", "error", "critical"),
    room=results.TEXT,
    text=results.TEXT,
)
_EMPTY: dict[str, Any] = {
    "status": "ok",
    "freshness": {"behind": None, "lastSync": None, "watching": None},
    "embedder": {"provider": "none", "model": "", "embedded": 0, "vectorEngine": "none", "degraded": None},
    "backend": "none",
    "fallback": False,
    "sizes": dict.fromkeys(("files", "chunks", "entries", "notesBytes", *_BYTES), 0),
    "queue": {"pending": 0, "pendingEntries": 0, "staged": 0},
    "findings": [],
    "errors": [],
}

HEALTH = (
    Tool(
        "health.get",
        "How the memory is: freshness, embedder, engine, sizes, what waits, findings with the way to mend each, and "
        "the last warnings and errors of this process about this agent.",
        (Param("deep", "boolean", "Also try the embedder and check every page of the store; slower."),),
        _health,
        {},
        empty=_EMPTY,
        about_us=True,
        returns={
            "status": results.one_of("ok", "degraded", "wrong"),
            "freshness": results.shape(
                behind=results.MAYBE_COUNT, lastSync=results.MAYBE_NUMBER, watching=results.MAYBE_TEXT
            ),
            "embedder": results.shape(
                provider=results.TEXT,
                model=results.TEXT,
                embedded=results.COUNT,
                vectorEngine=results.TEXT,
                degraded=results.DEGRADED,
            ),
            "backend": results.TEXT,
            "fallback": results.BOOLEAN,
            "sizes": results.shape(**dict.fromkeys(_EMPTY["sizes"], results.COUNT)),
            "queue": results.shape(**dict.fromkeys(_EMPTY["queue"], results.COUNT)),
            "findings": results.many(_FINDING),
            "errors": results.many(_ERROR),
        },
    ),
)
