"""OpenClaw's database for tests: the tables from which sessions are read, filled by hand or from a recording."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECORDING = Path(__file__).with_name("openclaw_recorded.json")

Row = Mapping[str, Any]


def recording() -> dict[str, Any]:
    """Return what the real program wrote, and its version. `tests/programs/openclaw_itself.py` records it."""
    return dict(json.loads(RECORDING.read_text("utf-8")))


def play_back(home: Path) -> None:
    """Create the recorded database in a home of OpenClaw."""
    tables = recording()["tables"]
    with closing(_opened(home)) as database, database:
        for table, held in tables.items():
            _make(database, table, held["columns"])
            for row in held["rows"]:
                values = [base64.b64decode(one["base64"]) if isinstance(one, dict) else one for one in row]
                database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", values)


@dataclass
class Database:
    """A database that is filled by hand."""

    home: Path
    windows: str = "session_windows"
    owners: tuple[str, ...] = ("acp_owned", "plugin_owner_id", "hook_external_content_source", "spawned_by")
    made: bool = field(default=False)

    @property
    def file(self) -> Path:
        return self.home / "agents" / "main" / "agent" / "openclaw-agent.sqlite"

    def open(self) -> sqlite3.Connection:
        database = _opened(self.home)
        if not self.made:
            self.made = True
            _make(database, self.windows, ("session_id", "session_key", "updated_at", *self.owners))
            _make(database, "transcript_events", ("session_id", "seq", "event_json", "event_zstd"))
            _make(
                database, "session_transcript_active_events", ("session_id", "active_position", "event_seq")
            )
            _make(database, "session_transcript_index_state", ("session_id", "indexed_seq", "needs_rebuild"))
            _make(database, "memory_session_tombstones", ("session_id",))
            _make(database, "session_transcript_cold_archives", ("session_id",))
            database.commit()
        return database

    def put(self, table: str, **values: object) -> None:
        with closing(self.open()) as database, database:
            _put(database, table, values)

    def session(self, name: str, events: Iterable[Row], key: str = "", **owner: object) -> None:
        """Add a session with a header and these events."""
        header = {"type": "session", "version": 4, "id": name, "timestamp": "2026-02-08T01:58:00.000Z"}
        window = {
            "session_id": name,
            "session_key": key or f"agent:main:{name}",
            "updated_at": 1_770_516_065_000,
        }
        with closing(self.open()) as database, database:
            _put(database, self.windows, {**window, **owner})
            for seq, event in enumerate([header, *events]):
                _put(
                    database,
                    "transcript_events",
                    {"session_id": name, "seq": seq, "event_json": json.dumps(event)},
                )

    def set_branch(self, name: str, *seqs: int) -> None:
        """Set the active branch of the conversation."""
        with closing(self.open()) as database, database:
            (last,) = database.execute(
                "SELECT max(seq) FROM transcript_events WHERE session_id = ?", (name,)
            ).fetchone()
        self.put("session_transcript_index_state", session_id=name, indexed_seq=last, needs_rebuild=0)
        for position, seq in enumerate(seqs):
            self.put(
                "session_transcript_active_events", session_id=name, active_position=position, event_seq=seq
            )

    def change(self, statement: str, *values: object) -> None:
        with closing(self.open()) as database, database:
            database.execute(statement, values)


def message_event(number: int, role: str, text: str, **more: object) -> dict[str, Any]:
    """Return a message as OpenClaw stores it. By default the owner sent it."""
    sender = {"__openclaw": {"senderIsOwner": True}} if role == "user" else {}
    message = {"role": role, "content": [{"type": "text", "text": text}], **sender, **more}
    return {
        "type": "message",
        "id": f"m{number}",
        "timestamp": "2026-02-08T02:00:00.000Z",
        "message": message,
    }


def tool_event(number: int, tool: str) -> dict[str, Any]:
    """Return the event of a tool that was called through another one."""
    details = {"toolName": tool, "toolCallId": f"c{number}", "result": {"content": "much"}}
    message = {"role": "custom", "customType": "openclaw.nested-tool.v1", "content": "", "details": details}
    return {
        "type": "message",
        "id": f"m{number}",
        "timestamp": "2026-02-08T02:00:00.000Z",
        "message": message,
    }


def _opened(home: Path) -> sqlite3.Connection:
    file = home / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    file.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(file)
    database.execute("PRAGMA journal_mode = WAL")
    return database


def _make(database: sqlite3.Connection, table: str, columns: Iterable[str]) -> None:
    database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")


def _put(database: sqlite3.Connection, table: str, values: Row) -> None:
    marks = ", ".join("?" * len(values))
    database.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))
