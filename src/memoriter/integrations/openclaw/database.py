"""The sessions that OpenClaw keeps in a database of its own, told as transcripts.

Each agent has one SQLite file; what happened in a session stands there event by event, the longer ones compressed. It
is read in one snapshot, beside an OpenClaw that runs, and nothing is written to it. Told is what a person and the agent
said, on the branch of the conversation that OpenClaw itself goes on with; of a tool its name alone. Sessions in which
no person spoke to the agent are left out, and so are those that the owner told OpenClaw to forget. Where a transcript
is put is not known here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from memoriter.errors import SourceError
from memoriter.integrations.openclaw.home import is_shared

MISSING = "it holds compressed messages: pip install 'memoriter[openclaw]', then import again"


def unpacked(data: bytes, most: int) -> bytes:
    """What was packed; raises `SourceError` where it cannot be unpacked or is longer than ``most``."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd

            try:
                plain = zstd.ZstdDecompressor().decompress(data, most + 1)
            except zstd.ZstdError as error:
                raise SourceError(f"a message in it is damaged: {error}") from error
        else:
            import zstandard

            try:
                with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                    plain = reader.read(most + 1)
            except zstandard.ZstdError as error:
                raise SourceError(f"a message in it is damaged: {error}") from error
    except ImportError as error:
        raise SourceError(MISSING) from error
    if len(plain) > most:
        raise SourceError("a message in it is too long")
    return plain


MOST = 20_000  #: sessions
LONGEST = 64 * 1024 * 1024  #: bytes of one session, told
SENDERS = 4  #: the version of a session since which messages say whether the owner sent them
LATEST_MS = 10**13  #: no time beyond is one
EVENT = 8 * 1024 * 1024  #: bytes of one event

_NEEDED = {"session_id", "session_key", "updated_at"}
_EVENTS = {"session_id", "seq", "event_json"}
_OWNERS = ("spawned_by", "plugin_owner_id", "acp_owned", "hook_external_content_source")
_NOBODYS = re.compile(r"(?:agent:[^:]*:)?(?:(?:subagent|cron|hook|acp):|dreaming-narrative-)|.*:heartbeat$")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,150}", re.ASCII)

Tables = dict[str, set[str]]
"""The columns of each table."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session."""

    id: str
    written_ns: int
    events: tuple[dict[str, Any], ...] = ()  #: its head and what was said; empty when nothing was
    why: str = ""  #: it could not be told


@dataclass(frozen=True, slots=True)
class Sessions:
    """What one database holds, while it is open."""

    database: apsw.Connection
    tables: Tables
    wanted: tuple[tuple[str, int], ...]  #: ids, and when each was written last
    unwanted: frozenset[str]
    shared: frozenset[str]  #: of groups and channels, where others speak too
    remarks: tuple[str, ...]

    def __iter__(self) -> Iterator[Session]:
        for session, written in self.wanted:
            events, why = tuple[dict[str, Any], ...](), ""
            try:
                events = _whole(session, tuple(self._events(session)))
            except SourceError as error:
                why = str(error)
            except (apsw.Error, ValueError, RecursionError) as error:
                why = f"it cannot be read: {error}"
            yield Session(session, written * 1_000_000, events, why)

    def _events(self, session: str) -> Iterator[dict[str, Any]]:
        length, version = 0, SENDERS if session in self.shared else 0
        for text in self._texts(session):
            length += len(text)
            if length > LONGEST:
                raise SourceError(f"it is longer than {LONGEST // 1024 // 1024} MB")
            event = json.loads(text)
            if isinstance(event, dict) and (told := _told(event, senders=version >= SENDERS)):
                if told["type"] == "session" and isinstance(told.get("version"), int):
                    version = max(version, told["version"])
                yield told

    def _texts(self, session: str) -> Iterator[str]:
        """The events as JSON, in order: the session's first, then those of the branch that it goes on with."""
        packed = "event_zstd" in self.tables["transcript_events"]
        columns = f"event.seq, event.event_json, {'event.event_zstd' if packed else 'NULL'}"
        chosen = "WHERE event.session_id = ?1"
        order = "event.seq"
        if self._has_branch(session):
            chosen = (
                "LEFT JOIN session_transcript_active_events AS active"
                " ON active.session_id = event.session_id AND active.event_seq = event.seq"
                f" {chosen} AND (active.active_position IS NOT NULL OR event.seq = 0)"
            )
            order = "coalesce(active.active_position, -1), event.seq"
        select = f"SELECT {columns} FROM transcript_events AS event {chosen} ORDER BY {order}"  # noqa: S608
        for _, text, data in self.database.execute(select, (session,)):
            if text is None and data is not None:
                yield unpacked(data, EVENT).decode()
            elif isinstance(text, str):
                yield text

    def _has_branch(self, session: str) -> bool:
        """Whether OpenClaw has noted which events its conversation goes on with, up to the last one."""
        wanted = {"session_transcript_active_events", "session_transcript_index_state"}
        if not wanted <= self.tables.keys():
            return False
        row = self.database.execute(
            "SELECT needs_rebuild = 0 AND indexed_seq = (SELECT max(seq) FROM transcript_events WHERE session_id = ?1)"
            " FROM session_transcript_index_state WHERE session_id = ?1",
            (session,),
        ).fetchone()
        return bool(row and row[0])


@contextlib.contextmanager
def opened(file: Path) -> Iterator[Sessions]:
    """The sessions of a database, as they stand now; raises `SourceError`."""
    before = _unused(file)
    try:
        with contextlib.closing(_connected(file, in_use=before is None)) as database:
            database.execute("BEGIN")
            tables = _tables(database)
            yield Sessions(database, tables, *_wanted(database, tables))
    except apsw.Error as error:
        raise SourceError(f"its sessions cannot be read: {error}") from error
    if before is not None and _unused(file) != before:
        raise SourceError("OpenClaw began to write to it meanwhile; import again")


def _unused(file: Path) -> tuple[int, ...] | None:
    """What tells whether a database has changed that keeps a log and has none now; None for all others."""
    try:
        with file.open("rb") as opened:
            has_log = opened.read(20)[18:] == b"\x02\x02"
            status = os.fstat(opened.fileno())
    except OSError as error:
        raise SourceError(f"its sessions cannot be read: {error.strerror or error}") from error
    if not has_log or file.with_name(file.name + "-wal").exists():
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _connected(file: Path, *, in_use: bool) -> apsw.Connection:
    """A connection that only reads.

    A database whose log is there may be in use, and so may one that keeps none: reading takes part in its locks. Where
    the log is missing nobody uses it, and it is opened so that none is made: it may lie where nothing can be written.
    """
    address = f"{file.absolute().as_uri()}?mode=ro{'' if in_use else '&immutable=1'}"
    database = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    database.set_busy_timeout(5000)
    return database


def _tables(database: apsw.Connection) -> Tables:
    """What the database is made of; raises `SourceError` where that is not what is known here."""
    columns = database.execute(
        "SELECT one.name, field.name FROM sqlite_master AS one, pragma_table_info(one.name) AS field"
        " WHERE one.type = 'table' AND one.sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    tables: Tables = {}
    for table, column in columns:
        tables.setdefault(table, set()).add(column)
    if not (
        tables.get(_listed_in(tables), set()) >= _NEEDED and tables.get("transcript_events", set()) >= _EVENTS
    ):
        (number,) = database.execute("PRAGMA user_version").fetchone() or (0,)
        raise SourceError(
            f"sessions are kept there in a form that is not known here (version {number} of its tables)"
        )
    return tables


def _listed_in(tables: Tables) -> str:
    """The table of sessions, by the name that it has now or had in the first releases with a database."""
    return "session_windows" if "session_windows" in tables else "sessions"


def _wanted(
    database: apsw.Connection, tables: Tables
) -> tuple[tuple[tuple[str, int], ...], frozenset[str], frozenset[str], tuple[str, ...]]:
    """The sessions in which a person spoke to the agent, oldest first, the others, those of several people, remarks."""
    listed = _listed_in(tables)
    owners = [name for name in _OWNERS if name in tables[listed]]
    selected = ", ".join(["session_id", "session_key", "updated_at", *owners])
    rows = database.execute(f"SELECT {selected} FROM {listed} ORDER BY updated_at, session_id").fetchall()  # noqa: S608
    spoken = {
        str(session): written if isinstance(written, int) and 0 <= written < LATEST_MS else 0
        for session, key, written, *owned in rows
        if not any(owned) and not _NOBODYS.match(str(key)) and _NAME.fullmatch(str(session))
    }
    forgotten = spoken.keys() & _ids(database, tables, "memory_session_tombstones")
    away = (spoken.keys() - forgotten) & _ids(database, tables, "session_transcript_cold_archives")
    kept = tuple(one for one in spoken.items() if one[0] not in forgotten | away)[-MOST:]
    remarks = tuple(
        f"Sessions {which} are left out: {len(ids)}."
        for which, ids in (
            ("that OpenClaw was told to forget", forgotten),
            ("in OpenClaw's cold storage", away),
        )
        if ids
    )
    shared = frozenset(str(row[0]) for row in rows if is_shared(str(row[1])))
    return kept, frozenset(str(row[0]) for row in rows) - dict(kept).keys(), shared, remarks


def _ids(database: apsw.Connection, tables: Tables, table: str) -> set[str]:
    if "session_id" not in tables.get(table, ()):
        return set()
    return {str(one) for (one,) in database.execute(f"SELECT session_id FROM {table}")}  # noqa: S608


def _whole(session: str, events: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """With a head, which the first releases did not always write; nothing where nobody said anything."""
    messages = tuple(event for event in events if event.get("type") == "message")
    head = next((event for event in events if event.get("type") == "session"), None)
    return (head or {"type": "session", "id": session}, *messages) if messages else ()


def _told(event: dict[str, Any], *, senders: bool) -> dict[str, Any] | None:
    """What of an event belongs into a transcript: the session's head and messages, and of a tool that it was used.

    ``senders``: messages say whether the owner sent them, or others may have; one that does not say is somebody else's.
    """
    if event.get("type") == "session":
        return event
    message = event.get("message")
    if event.get("type") != "message" or not isinstance(message, dict):
        return None
    if message.get("role") in ("user", "assistant"):
        if not senders or isinstance(message.get("__openclaw"), dict):
            return event
        return {**event, "message": {**message, "__openclaw": {}}}
    details = message.get("details")
    inner = {key: details.get(key) for key in ("toolName", "toolCallId")} if isinstance(details, dict) else {}
    named = {key: message[key] for key in ("role", "toolName", "toolCallId", "customType") if key in message}
    return {
        **event,
        "message": {**named, "content": [], **({"details": inner} if any(inner.values()) else {})},
    }
