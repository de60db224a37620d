"""Sessions in OpenClaw's database, read as transcripts.

Each agent has one SQLite file with the events of its sessions. Long events are compressed. The database is read in one
snapshot, also while OpenClaw runs, and is never written. A transcript contains the messages on the active branch of the
conversation, and of tools only their names. Sessions without a person, and sessions that the owner made OpenClaw
forget, are excluded.
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

from memoriter.errors import SourceError, install_command, reason_of
from memoriter.extensions.openclaw.home import is_shared

MAX_SESSIONS = 20_000
MAX_SESSION_CHARS = 64 * 1024 * 1024
MAX_EVENT_BYTES = 8 * 1024 * 1024
#: Since this version of a session, messages record whether the owner sent them.
SENDER_VERSION = 4
#: Times from here on are not valid milliseconds.
TIME_LIMIT_MS = 10**13
#: Time to wait for a lock of OpenClaw.
BUSY_TIMEOUT_MS = 5000

_SESSION_COLUMNS = {"session_id", "session_key", "updated_at"}
_EVENT_COLUMNS = {"session_id", "seq", "event_json"}
_OWNER_COLUMNS = ("spawned_by", "plugin_owner_id", "acp_owned", "hook_external_content_source")
_AUTOMATIC_KEY = re.compile(
    r"(?:agent:[^:]*:)?(?:(?:subagent|cron|hook|acp):|dreaming-narrative-)|.*:heartbeat$"
)
_SESSION_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,150}", re.ASCII)

Tables = dict[str, set[str]]
"""The columns of each table."""


@dataclass(frozen=True, slots=True)
class OpenClawSession:
    """One session."""

    id: str
    written_ns: int
    #: The header and the messages; empty if there are no messages.
    events: tuple[dict[str, Any], ...] = ()
    #: The reason why the session could not be read.
    problem: str = ""


@dataclass(frozen=True, slots=True)
class StoredSessions:
    """The sessions of an open database. Iterate over it to read them."""

    database: apsw.Connection
    tables: Tables
    #: Ids of the sessions to import, and the time of their last change in milliseconds.
    included: tuple[tuple[str, int], ...]
    excluded: frozenset[str]
    #: Ids of sessions of groups and channels.
    shared: frozenset[str]
    remarks: tuple[str, ...]

    def __iter__(self) -> Iterator[OpenClawSession]:
        for session, written_ms in self.included:
            events, problem = tuple[dict[str, Any], ...](), ""
            try:
                events = _with_header(session, tuple(self._events(session)))
            except SourceError as error:
                problem = str(error)
            except (apsw.Error, ValueError, RecursionError) as error:
                problem = f"it cannot be read: {error}"
            yield OpenClawSession(session, written_ms * 1_000_000, events, problem)

    def _events(self, session: str) -> Iterator[dict[str, Any]]:
        length, version = 0, SENDER_VERSION if session in self.shared else 0
        for text in self._texts(session):
            length += len(text)
            if length > MAX_SESSION_CHARS:
                raise SourceError(f"it is longer than {MAX_SESSION_CHARS // 1024 // 1024} MB")
            event = json.loads(text)
            if not isinstance(event, dict):
                continue
            record = _transcript_record(event, has_senders=version >= SENDER_VERSION)
            if record:
                if record["type"] == "session" and isinstance(record.get("version"), int):
                    version = max(version, record["version"])
                yield record

    def _texts(self, session: str) -> Iterator[str]:
        """Return the events as JSON in order: the session's first event, then those of the active branch."""
        has_packed = "event_zstd" in self.tables["transcript_events"]
        columns = f"event.seq, event.event_json, {'event.event_zstd' if has_packed else 'NULL'}"
        condition = "WHERE event.session_id = ?1"
        order = "event.seq"
        if self._has_active_branch(session):
            condition = (
                "LEFT JOIN session_transcript_active_events AS active"
                " ON active.session_id = event.session_id AND active.event_seq = event.seq"
                f" {condition} AND (active.active_position IS NOT NULL OR event.seq = 0)"
            )
            order = "coalesce(active.active_position, -1), event.seq"
        select = f"SELECT {columns} FROM transcript_events AS event {condition} ORDER BY {order}"  # noqa: S608
        for _, text, packed in self.database.execute(select, (session,)):
            if text is None and packed is not None:
                yield decompress(packed, MAX_EVENT_BYTES).decode()
            elif isinstance(text, str):
                yield text

    def _has_active_branch(self, session: str) -> bool:
        """Return whether OpenClaw recorded the active branch up to the last event."""
        needed = {"session_transcript_active_events", "session_transcript_index_state"}
        if not needed <= self.tables.keys():
            return False
        row = self.database.execute(
            "SELECT needs_rebuild = 0 AND indexed_seq = (SELECT max(seq) FROM transcript_events WHERE session_id = ?1)"
            " FROM session_transcript_index_state WHERE session_id = ?1",
            (session,),
        ).fetchone()
        return bool(row and row[0])


# ---- opening --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_sessions(file: Path) -> Iterator[StoredSessions]:
    """Open a snapshot of the sessions in a database; raise `SourceError`."""
    before = _unused_state(file)
    try:
        with contextlib.closing(_connect(file, in_use=before is None)) as database:
            database.execute("BEGIN")
            tables = _read_tables(database)
            yield StoredSessions(database, tables, *_select_sessions(database, tables))
    except apsw.Error as error:
        raise SourceError(f"its sessions cannot be read: {error}") from error
    if before is not None and _unused_state(file) != before:
        raise SourceError("OpenClaw started to write to it during the import; import again")


def _unused_state(file: Path) -> tuple[int, ...] | None:
    """Return values that change when the file changes; None if the database may be in use.

    A database in WAL mode without a `-wal` file is not in use.
    """
    try:
        with file.open("rb") as stream:
            is_wal = stream.read(20)[18:] == b"\x02\x02"
            status = os.fstat(stream.fileno())
    except OSError as error:
        raise SourceError(f"its sessions cannot be read: {reason_of(error)}") from error
    if not is_wal or file.with_name(file.name + "-wal").exists():
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _connect(file: Path, *, in_use: bool) -> apsw.Connection:
    """Open a read-only connection.

    A database that may be in use is read with its locks. One that is not in use is opened as immutable, so that SQLite
    creates no `-wal` file: its folder may be read-only.
    """
    address = f"{file.absolute().as_uri()}?mode=ro{'' if in_use else '&immutable=1'}"
    database = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    database.set_busy_timeout(BUSY_TIMEOUT_MS)
    return database


def _read_tables(database: apsw.Connection) -> Tables:
    """Return the tables and their columns; raise `SourceError` if the schema is unknown."""
    columns = database.execute(
        "SELECT one.name, field.name FROM sqlite_master AS one, pragma_table_info(one.name) AS field"
        " WHERE one.type = 'table' AND one.sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    tables: Tables = {}
    for table, column in columns:
        tables.setdefault(table, set()).add(column)
    has_sessions = tables.get(_session_table(tables), set()) >= _SESSION_COLUMNS
    if not (has_sessions and tables.get("transcript_events", set()) >= _EVENT_COLUMNS):
        (version,) = database.execute("PRAGMA user_version").fetchone() or (0,)
        raise SourceError(f"its schema is not supported (version {version})")
    return tables


def _session_table(tables: Tables) -> str:
    """Return the name of the table of sessions, which differs in the first releases with a database."""
    return "session_windows" if "session_windows" in tables else "sessions"


def _select_sessions(
    database: apsw.Connection, tables: Tables
) -> tuple[tuple[tuple[str, int], ...], frozenset[str], frozenset[str], tuple[str, ...]]:
    """Return the sessions with a person, oldest first, the ids of the others, those of groups, and remarks."""
    table = _session_table(tables)
    owners = [name for name in _OWNER_COLUMNS if name in tables[table]]
    columns = ", ".join(["session_id", "session_key", "updated_at", *owners])
    rows = database.execute(f"SELECT {columns} FROM {table} ORDER BY updated_at, session_id").fetchall()  # noqa: S608
    personal = {
        str(session): written if isinstance(written, int) and 0 <= written < TIME_LIMIT_MS else 0
        for session, key, written, *owned in rows
        if not any(owned) and not _AUTOMATIC_KEY.match(str(key)) and _SESSION_ID.fullmatch(str(session))
    }
    forgotten = personal.keys() & _session_ids(database, tables, "memory_session_tombstones")
    archived = (personal.keys() - forgotten) & _session_ids(
        database, tables, "session_transcript_cold_archives"
    )
    included = tuple(item for item in personal.items() if item[0] not in forgotten | archived)[-MAX_SESSIONS:]
    remarks = tuple(
        f"Skipped {len(ids)} {'session' if len(ids) == 1 else 'sessions'} {which}."
        for which, ids in (
            ("that OpenClaw was told to forget", forgotten),
            ("in OpenClaw's cold storage", archived),
        )
        if ids
    )
    shared = frozenset(str(row[0]) for row in rows if is_shared(str(row[1])))
    return included, frozenset(str(row[0]) for row in rows) - dict(included).keys(), shared, remarks


def _session_ids(database: apsw.Connection, tables: Tables, table: str) -> set[str]:
    if "session_id" not in tables.get(table, ()):
        return set()
    return {str(session) for (session,) in database.execute(f"SELECT session_id FROM {table}")}  # noqa: S608


# ---- events ---------------------------------------------------------------------------------------------------


def _with_header(session: str, events: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """Return the header and the messages, or nothing without messages. Early releases wrote no header."""
    messages = tuple(event for event in events if event.get("type") == "message")
    header = next((event for event in events if event.get("type") == "session"), None)
    return (header or {"type": "session", "id": session}, *messages) if messages else ()


def _transcript_record(event: dict[str, Any], *, has_senders: bool) -> dict[str, Any] | None:
    """Return the part of an event that belongs in a transcript: headers, messages, and the names of used tools.

    ``has_senders``: messages record their sender, or several people write. A message without a sender then does not
    count as the owner's.
    """
    if event.get("type") == "session":
        return event
    message = event.get("message")
    if event.get("type") != "message" or not isinstance(message, dict):
        return None
    if message.get("role") in ("user", "assistant"):
        if not has_senders or isinstance(message.get("__openclaw"), dict):
            return event
        return {**event, "message": {**message, "__openclaw": {}}}
    details = message.get("details")
    inner = {key: details.get(key) for key in ("toolName", "toolCallId")} if isinstance(details, dict) else {}
    named = {key: message[key] for key in ("role", "toolName", "toolCallId", "customType") if key in message}
    return {
        **event,
        "message": {**named, "content": [], **({"details": inner} if any(inner.values()) else {})},
    }


def decompress(data: bytes, max_bytes: int) -> bytes:
    """Decompress zstd data; raise `SourceError` if that fails or the result is longer than ``max_bytes``."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd

            try:
                plain = zstd.ZstdDecompressor().decompress(data, max_bytes + 1)
            except zstd.ZstdError as error:
                raise SourceError(f"a message in it is damaged: {error}") from error
        else:
            import zstandard

            try:
                with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                    plain = reader.read(max_bytes + 1)
            except zstandard.ZstdError as error:
                raise SourceError(f"a message in it is damaged: {error}") from error
    except ImportError as error:
        raise SourceError(
            f"it contains compressed messages. Run `{install_command('openclaw')}`, then import again"
        ) from error
    if len(plain) > max_bytes:
        raise SourceError("a message in it is too long")
    return plain
