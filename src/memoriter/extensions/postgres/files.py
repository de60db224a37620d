"""The files of one agent on a Postgres server: notes with earlier versions, transcripts and small state files.

A file consists of parts, so that a transcript that grows adds a part and is not written again as a whole. Every change
has a number, by which a working copy asks for what is new. Changes of one agent are made one after another, under the
advisory lock of `PostgresDatabase.write`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoriter.extensions.postgres.manifest import Clock, FileState

if TYPE_CHECKING:
    from memoriter.extensions.postgres.connection import PostgresConnection

#: A part grows up to this size. An addition rewrites the last part at most.
PART_BYTES = 64 * 1024
#: Earlier versions of a note that are kept.
MAX_VERSIONS = 50
#: The channel on which gateways learn that something changed.
CHANNEL = "memoriter"
#: Paths that keep earlier versions.
NOTES = "workspace/"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file on the server."""

    path: str
    state: FileState
    is_deleted: bool


def read_clock(connection: PostgresConnection) -> Clock:
    """Return the number of the last change."""
    rows = connection.execute("select version, stamp from file_clock where name = 'files'")
    return Clock(*rows[0]) if rows else Clock(0, "")


def list_files(connection: PostgresConnection, since: int) -> list[StoredFile]:
    """Return the files that were changed after a version, also those that were deleted."""
    rows = connection.execute(
        "select path, version, size, digest, changed_ns, is_deleted from files where version > ? order by path",
        (since,),
    )
    return [StoredFile(path, FileState(*state), deleted) for path, *state, deleted in rows]


def read_parts(connection: PostgresConnection, path: str, since: int) -> tuple[int, bytes]:
    """Return where the first part begins that was changed after a version, and the content from there on."""
    rows = connection.execute(
        "select start, content from file_parts where path = ? and start >= coalesce((select min(start) from"
        " file_parts where path = ? and version > ?), 0) order by start",
        (path, path, since),
    )
    return (rows[0][0] if rows else 0), b"".join(content for _, content in rows)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to be stored, and what the store holds of it."""

    data: bytes
    changed_ns: int
    #: None: the file is new.
    known: FileState | None = None


def write_files(connection: PostgresConnection, files: Mapping[str, NewFile | None]) -> Clock:
    """Store files, and delete those that are None, as one change. Return its number."""
    rows = connection.execute(
        "insert into file_clock(name, version, stamp) values('files', 1, ?) on conflict(name) do update"
        " set version = file_clock.version + 1, stamp = excluded.stamp returning version, stamp",
        (secrets.token_hex(8),),
    )
    clock = Clock(*rows[0])
    for path, new in files.items():
        appended = new is not None and new.known is not None and starts_with(new.data, new.known)
        if path.startswith(NOTES) and not appended:
            _keep_version(connection, path)
        if new is None:
            connection.execute("delete from file_parts where path = ?", (path,))
            connection.execute(
                "update files set version = ?, size = 0, digest = '', is_deleted = true where path = ?",
                (clock.version, path),
            )
        else:
            _write_parts(connection, path, new, clock.version, appended=appended)
    announce(connection, "files")
    return clock


def starts_with(data: bytes, known: FileState) -> bool:
    """Return whether a file still starts with what is stored of it, so that only the rest must be added."""
    return len(data) >= known.size > 0 and hashlib.sha256(data[: known.size]).hexdigest() == known.digest


def _write_parts(
    connection: PostgresConnection, path: str, new: NewFile, version: int, *, appended: bool
) -> None:
    start = _last_part(connection, path) if appended else 0
    connection.execute("delete from file_parts where path = ? and start >= ?", (path, start))
    connection.executemany(
        "insert into file_parts(path, start, version, content) values(?, ?, ?, ?)",
        [
            (path, at, version, new.data[at : at + PART_BYTES])
            for at in range(start, len(new.data), PART_BYTES)
        ],
    )
    connection.execute(
        "insert into files(path, version, size, digest, changed_ns, is_deleted) values(?, ?, ?, ?, ?, false)"
        " on conflict(path) do update set version = excluded.version, size = excluded.size,"
        " digest = excluded.digest, changed_ns = excluded.changed_ns, is_deleted = false",
        (path, version, len(new.data), digest_of(new.data), new.changed_ns),
    )


def _last_part(connection: PostgresConnection, path: str) -> int:
    rows = connection.execute("select max(start) from file_parts where path = ?", (path,))
    return int(rows[0][0] or 0) if rows else 0


def _keep_version(connection: PostgresConnection, path: str) -> None:
    """Keep what a note says now as an earlier version."""
    connection.execute(
        "insert into file_versions(path, version, digest, changed_ns, content)"
        " select path, version, digest, changed_ns, coalesce((select string_agg(p.content, ''::bytea order by"
        " p.start) from file_parts p where p.path = files.path), ''::bytea) from files"
        " where path = ? and not is_deleted",
        (path,),
    )
    connection.execute(
        "delete from file_versions where path = ? and version <= (select version from file_versions"
        " where path = ? order by version desc offset ? limit 1)",
        (path, path, MAX_VERSIONS),
    )


def erase_versions(connection: PostgresConnection, path: str) -> None:
    """Delete the earlier versions of a note."""
    connection.execute("delete from file_versions where path = ?", (path,))


def announce(connection: PostgresConnection, kind: str) -> None:
    """Tell other gateways at the commit that something of this agent has changed."""
    connection.execute(
        "select pg_notify(?, json_build_array(current_setting('memoriter.tenant'),"
        " current_setting('memoriter.agent'), ?::text)::text)",
        (CHANNEL, kind),
    )


def parse_announcement(payload: str) -> tuple[str, str, str]:
    """Return the tenant, the agent and the kind of a change."""
    tenant, agent, kind = json.loads(payload)
    return tenant, agent, kind


def digest_of(data: bytes) -> str:
    """Return the digest by which contents are compared."""
    return hashlib.sha256(data).hexdigest()
