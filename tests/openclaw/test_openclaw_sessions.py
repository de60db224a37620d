"""Sessions in OpenClaw's database, imported as transcripts, also repeatedly and while OpenClaw runs."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from openclaw_tables import Database, message_event, play_back, recording, tool_event

from memoriter import Memory
from memoriter.errors import SourceError
from memoriter.extensions.openclaw.database import open_sessions
from memoriter.extensions.openclaw.importing import import_openclaw

OpenMemory = Callable[..., Memory]


@pytest.fixture
def database(home: Path) -> Database:
    return Database(home)


def sessions(report: Any) -> dict[str, tuple[str, str]]:
    return {step.target.stem: (step.action, step.note) for step in report.steps if step.kind == "session"}


def imported(memory: Memory, name: str) -> Path:
    return memory.settings.agent_folder / "sessions" / "openclaw" / f"{name}.jsonl"


def search_sessions(memory: Memory, query: str) -> list[tuple[str, str]]:
    """Return the snippets found in sessions, and their trust."""
    hits = memory.search(query, source="sessions", max_results=10).hits
    return [(hit.snippet, hit.trust) for hit in hits]


TALK = [
    message_event(1, "user", "Which queue do we use for mail?"),
    message_event(2, "assistant", "NATS, since March."),
]


def test_a_recording_of_the_real_program_is_imported_and_found(home: Path, open_memory: OpenMemory) -> None:
    play_back(home)
    assert recording()["program"] == "openclaw 2026.9.6"
    memory = open_memory()
    report = import_openclaw(memory, home)
    assert sorted(action for action, _ in sessions(report).values()) == ["new"] * 4
    withheld = "Of 11 turns, these are never added to a prompt: 4 of the agent after text from outside."
    assert report.remarks == ("Skipped 1 session that OpenClaw was told to forget.", withheld)
    assert search_sessions(memory, "which queue for mail")[0] == (
        "User: Which queue do we use for mail?\n\nAssistant: NATS, since March.",
        "agent",
    )
    assert [
        text for text, _ in search_sessions(memory, "crane 273") if "crane number 273 stood" in text
    ] != []
    assert ("Assistant: The page says that the moon is a stork.", "untrusted") in search_sessions(
        memory, "moon stork"
    )
    found = " ".join(
        text
        for query in ("secret kept", "count birds pond", "cut")
        for text, _ in search_sessions(memory, query)
    )
    assert "secret" not in found
    assert "Count the birds" not in found
    assert "(cut)" not in found


def test_a_session_is_imported_once_and_updated_when_it_changes(
    database: Database, open_memory: OpenMemory
) -> None:
    database.session("one", TALK)
    memory = open_memory()
    preview = import_openclaw(memory, database.home, dry_run=True)
    assert not imported(memory, "one").exists()
    first = import_openclaw(memory, database.home)
    assert (first.steps, sessions(first)) == (preview.steps, {"one": ("new", "")})
    assert imported(memory, "one").stat().st_mtime_ns == 1_770_516_065_000 * 1_000_000
    assert sessions(import_openclaw(memory, database.home)) == {"one": ("same", "")}

    more = message_event(3, "user", "And for heron pictures?")
    database.put("transcript_events", session_id="one", seq=3, event_json=json.dumps(more))
    assert sessions(import_openclaw(memory, database.home)) == {"one": ("grown", "")}
    rewritten = json.dumps(message_event(2, "assistant", "Kafka, it turns out."))
    database.change("UPDATE transcript_events SET event_json = ? WHERE seq = 2", rewritten)
    assert sessions(import_openclaw(memory, database.home)) == {"one": ("grown", "")}
    assert search_sessions(memory, "heron pictures")[0] == ("User: And for heron pictures?", "owner")
    assert search_sessions(memory, "Kafka queue for mail")[0] == (
        "User: Which queue do we use for mail?\n\nAssistant: Kafka, it turns out.",
        "agent",
    )


def test_an_edited_transcript_is_kept_and_reported(database: Database, open_memory: OpenMemory) -> None:
    database.session("one", TALK)
    memory = open_memory()
    import_openclaw(memory, database.home)
    mine = imported(memory, "one").read_bytes().replace(b"March", b"April")
    imported(memory, "one").write_bytes(mine)
    report = import_openclaw(memory, database.home)
    assert sessions(report) == {"one": ("other", "a different file exists there")}
    assert imported(memory, "one").read_bytes() == mine


def test_a_session_that_moved_from_a_file_to_the_database_is_not_duplicated(
    database: Database, open_memory: OpenMemory
) -> None:
    file = database.home / "agents" / "main" / "sessions" / "one.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in [{"type": "session", "id": "one"}, *TALK]))
    memory = open_memory()
    assert sessions(import_openclaw(memory, database.home)) == {"one": ("new", "")}
    database.session("one", [*TALK, message_event(3, "user", "Good.")])
    assert sessions(import_openclaw(memory, database.home)) == {"one": ("grown", "")}
    file.unlink()
    assert sessions(import_openclaw(memory, database.home)) == {"one": ("same", "")}


def test_sessions_without_a_person_are_skipped(database: Database, open_memory: OpenMemory) -> None:
    database.session("talk", TALK, "agent:main:hook-and-cron")
    others: list[tuple[str, dict[str, object]]] = [
        ("agent:main:subagent:3acf", {}),
        ("agent:main:helper", {"spawned_by": "agent:main:main"}),
        ("agent:main:cron:nightly:run:1", {}),
        ("cron:nightly", {}),
        ("hook:9f1c", {}),
        ("agent:main:mail", {"hook_external_content_source": "gmail"}),
        ("agent:main:acp:1", {}),
        ("agent:main:editor", {"acp_owned": 1}),
        ("agent:main:plugin", {"plugin_owner_id": "memory-core"}),
        ("agent:main:dreaming-narrative-light-1", {}),
        ("agent:main:main:heartbeat", {}),
    ]
    for number, (key, owner) in enumerate(others):
        database.session(f"other-{number}", TALK, key, **owner)
    assert sessions(import_openclaw(open_memory(), database.home)) == {"talk": ("new", "")}


def test_sessions_that_openclaw_forgot_are_skipped(database: Database, open_memory: OpenMemory) -> None:
    for name in ("one", "two", "three"):
        database.session(name, TALK)
    file = database.home / "agents" / "main" / "sessions" / "two.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(TALK[0]) + "\n")
    database.put("memory_session_tombstones", session_id="two")
    database.put("session_transcript_cold_archives", session_id="three")
    report = import_openclaw(open_memory(), database.home)
    assert sessions(report) == {"one": ("new", "")}
    assert report.remarks == (
        "Skipped 1 session that OpenClaw was told to forget.",
        "Skipped 1 session in OpenClaw's cold storage.",
    )


def test_only_the_active_branch_is_imported(database: Database, open_memory: OpenMemory) -> None:
    database.session(
        "one",
        [
            TALK[0],
            message_event(2, "assistant", "Kafka?"),
            message_event(3, "assistant", "NATS, since March."),
        ],
    )
    database.set_branch("one", 1, 3)
    memory = open_memory()
    import_openclaw(memory, database.home)
    assert search_sessions(memory, "queue for mail") == [
        ("User: Which queue do we use for mail?\n\nAssistant: NATS, since March.", "agent")
    ]


def test_messages_keep_the_trust_of_their_sender(database: Database, open_memory: OpenMemory) -> None:
    events = [
        message_event(1, "user", "The stork is mine."),
        message_event(2, "assistant", "The stork is noted."),
        message_event(
            3, "user", "The crane is Bob's.", __openclaw={"senderIsOwner": False, "senderId": "bob"}
        ),
        message_event(4, "assistant", "The crane is noted."),
        message_event(5, "user", "The heron comes at noon."),
        tool_event(6, "web_fetch"),
        message_event(7, "assistant", "The web says that herons fly."),
        message_event(8, "user", "The egret is white."),
        message_event(9, "assistant", "Egrets are said to be white.", __openclaw={"turnTainted": True}),
        message_event(
            10, "user", "The osprey wakes.", provenance={"kind": "internal_system", "sourceTool": "heartbeat"}
        ),
    ]
    anonymous = message_event(11, "user", "The bittern has no sender.")
    del anonymous["message"]["__openclaw"]
    database.session(
        "one", [*events, anonymous, message_event(12, "user", "The grebe has none.", __openclaw=None)]
    )
    memory = open_memory()
    import_openclaw(memory, database.home)
    whose = {
        line.partition(": ")[2]: trust
        for query in ("stork", "crane", "heron", "egret", "osprey", "bittern", "grebe")
        for text, trust in search_sessions(memory, query)
        for line in text.splitlines()
        if line
    }
    assert whose == {
        "The stork is mine.": "agent",
        "The stork is noted.": "agent",
        "The crane is Bob's.": "untrusted",
        "The crane is noted.": "untrusted",
        "The heron comes at noon.": "owner",
        "The web says that herons fly.": "untrusted",
        "The egret is white.": "owner",
        "Egrets are said to be white.": "untrusted",
        "The bittern has no sender.": "untrusted",
        "The grebe has none.": "untrusted",
    }


def test_group_messages_from_before_senders_were_recorded_are_untrusted(
    database: Database, open_memory: OpenMemory
) -> None:
    for name, key in (("group", "agent:main:telegram:group:-100"), ("direct", "agent:main:main")):
        event = message_event(1, "user", f"The {name} meets at noon.")
        del event["message"]["__openclaw"]
        database.session(name, [event], key)
    database.change(
        "UPDATE transcript_events SET event_json = json_set(event_json, '$.version', 3) WHERE seq = 0"
    )
    memory = open_memory()
    import_openclaw(memory, database.home)
    assert sorted(trust for _, trust in search_sessions(memory, "meets at noon")) == ["owner", "untrusted"]


def test_tool_results_are_not_copied(database: Database, open_memory: OpenMemory) -> None:
    result = message_event(3, "toolResult", "a long answer", toolName="exec", toolCallId="c3", isError=False)
    database.session("one", [*TALK, result, tool_event(4, "web_fetch")])
    memory = open_memory()
    import_openclaw(memory, database.home)
    *_, answered, nested = (
        json.loads(line)["message"] for line in imported(memory, "one").read_text().splitlines()[1:]
    )
    assert answered == {"role": "toolResult", "toolName": "exec", "toolCallId": "c3", "content": []}
    assert nested == {
        "role": "custom",
        "customType": "openclaw.nested-tool.v1",
        "content": [],
        "details": {"toolName": "web_fetch", "toolCallId": "c4"},
    }


def test_a_session_is_read_while_openclaw_writes_to_it(database: Database, open_memory: OpenMemory) -> None:
    database.session("one", TALK)
    memory = open_memory()
    with closing(sqlite3.connect(database.file)) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        row = ("one", 3, json.dumps(message_event(3, "user", "Good.")), None)
        writer.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?)", row)
        writer.commit()
        writer.execute("DELETE FROM transcript_events")
        held = {path.name: path.read_bytes() for path in database.file.parent.iterdir()}
        assert sessions(import_openclaw(memory, database.home)) == {"one": ("new", "")}
        after = {path.name: path.read_bytes() for path in database.file.parent.iterdir()}
        writer.rollback()
    locks = "openclaw-agent.sqlite-shm"
    assert {**after, locks: b""} == {**held, locks: b""}
    assert len(imported(memory, "one").read_text().splitlines()) == 4


def test_an_unused_database_is_not_changed(database: Database, open_memory: OpenMemory) -> None:
    database.session("one", TALK)
    before = {path.name: path.read_bytes() for path in database.file.parent.iterdir()}
    assert list(before) == ["openclaw-agent.sqlite"]
    assert sessions(import_openclaw(open_memory(), database.home)) == {"one": ("new", "")}
    assert {path.name: path.read_bytes() for path in database.file.parent.iterdir()} == before


def test_a_write_during_the_import_is_reported(database: Database) -> None:
    database.session("one", TALK)

    def read() -> None:
        with open_sessions(database.file) as held:
            assert [session.id for session in held] == ["one"]
            database.session("two", TALK)  # closed again, so there is no -wal file

    with pytest.raises(SourceError, match="started to write"):
        read()


def test_an_interrupted_transaction_is_not_read(database: Database, open_memory: OpenMemory) -> None:
    database.session("one", [message_event(number, "user", "word " * 1000) for number in range(20)])
    broken = Database(database.home.with_name("broken"))
    broken.file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(database.file)) as writer:
        for pragma in ("journal_mode = DELETE", "cache_size = 1"):
            writer.execute(f"PRAGMA {pragma}")
        writer.execute("UPDATE transcript_events SET event_json = replace(event_json, 'word', 'half')")
        for end in ("", "-journal"):
            shutil.copy(f"{database.file}{end}", f"{broken.file}{end}")
    assert b"half" in broken.file.read_bytes()
    report = import_openclaw(open_memory(), broken.home)
    assert (sessions(report), [remark.partition(": ")[0] for remark in report.remarks]) == (
        {},
        [str(broken.file)],
    )


def test_the_first_schema_is_supported(home: Path, open_memory: OpenMemory) -> None:
    database = Database(home, windows="sessions", owners=())
    database.session("one", TALK)
    database.change("ALTER TABLE transcript_events DROP COLUMN event_zstd")
    for table in (
        "session_transcript_active_events",
        "session_transcript_index_state",
        "memory_session_tombstones",
    ):
        database.change(f"DROP TABLE {table}")
    assert sessions(import_openclaw(open_memory(), home)) == {"one": ("new", "")}


def test_an_unknown_schema_is_reported(database: Database, open_memory: OpenMemory) -> None:
    database.session("one", TALK)
    database.change("ALTER TABLE transcript_events RENAME COLUMN event_json TO event_cbor")
    database.change("PRAGMA user_version = 99")
    report = import_openclaw(open_memory(), database.home)
    assert (sessions(report), report.remarks) == (
        {},
        (f"{database.file}: its schema is not supported (version 99).",),
    )


def test_a_damaged_database_is_reported(database: Database, open_memory: OpenMemory) -> None:
    database.file.parent.mkdir(parents=True)
    database.file.write_bytes(b"not a database" * 100)
    (remark,) = import_openclaw(open_memory(), database.home).remarks
    assert remark.startswith(f"{database.file}: its sessions cannot be read: ")


def test_a_damaged_session_does_not_affect_others(database: Database, open_memory: OpenMemory) -> None:
    for name in ("one", "two", "three"):
        database.session(name, TALK)
    database.change("UPDATE transcript_events SET event_json = '{' WHERE session_id = 'one' AND seq = 2")
    database.change(
        "UPDATE transcript_events SET event_json = NULL, event_zstd = x'00' WHERE session_id = 'two' AND seq = 2"
    )
    found = sessions(import_openclaw(open_memory(), database.home))
    assert {name: (action, note.partition(":")[0]) for name, (action, note) in found.items()} == {
        "one": ("other", "it cannot be read"),
        "two": ("other", "a message in it is damaged"),
        "three": ("new", ""),
    }


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python has its own decompressor")
def test_without_the_extra_compressed_messages_are_reported(
    home: Path, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_back(home)
    memory = open_memory()
    monkeypatch.setitem(sys.modules, "zstandard", None)
    notes = [note for action, note in sessions(import_openclaw(memory, home)).values() if action == "other"]
    assert set(notes) == {
        "it contains compressed messages. Run `pip install 'zstandard>=0.23'`, then import again"
    }
    monkeypatch.undo()
    assert {action for action, _ in sessions(import_openclaw(memory, home)).values()} == {"new", "same"}


def test_invalid_times_and_versions_are_ignored(database: Database, open_memory: OpenMemory) -> None:
    for name, written in (("one", "soon"), ("two", -5), ("three", 10**18)):
        database.session(name, TALK)
        database.change("UPDATE session_windows SET updated_at = ? WHERE session_id = ?", written, name)
    database.change(
        "UPDATE transcript_events SET event_json = ? WHERE seq = 0", '{"type": "session", "version": "x"}'
    )
    memory = open_memory()
    assert sessions(import_openclaw(memory, database.home)) == dict.fromkeys(
        ("one", "two", "three"), ("new", "")
    )
    assert {imported(memory, name).stat().st_mtime for name in ("one", "two", "three")} == {0}


def test_ids_that_are_not_strings_are_ignored(database: Database, open_memory: OpenMemory) -> None:
    database.session("one", [{**TALK[0], "id": {}}])
    memory = open_memory()
    imported(memory, "one").parent.mkdir(parents=True)
    imported(memory, "one").write_text(json.dumps({"type": "session", "id": "one"}) + "\n")
    assert sessions(import_openclaw(memory, database.home)) == {
        "one": ("other", "a different file exists there")
    }


def test_sessions_without_messages_or_with_invalid_names_are_skipped(
    database: Database, open_memory: OpenMemory
) -> None:
    database.session("empty", [])
    database.session("../../escaped", TALK)
    assert sessions(import_openclaw(open_memory(), database.home)) == {}
