"""Memories of other programs, in the files that they write.

The files of EverOS, Hermes, MemPalace, Zep and supermemory were written with the classes of their packages
(everos 1.5.1, hermes-agent 0.19.0, mempalace 3.11.0, zep-cloud 4.0.1, supermemory 5.0.1), those of Hindsight and Letta
by their schemas (hindsight-api 1.1.0, files of letta-ai/agent-file), those of memsearch by its documentation.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoriter import Memory
from memoriter.errors import SourceError
from memoriter.extensions.importing import import_export, import_from
from memoriter.hosts import ImportReport
from memoriter.records import Imported

pytestmark = pytest.mark.requirement("X12")


def done(report: ImportReport) -> tuple[str, list[str], int]:
    """Return the program, what was done with each file, and the number of new entries."""
    return report.program, sorted(f"{step.kind} {step.action}" for step in report.steps), report.entries.added


def texts(memory: Memory) -> dict[str, str]:
    """Return the trust of each entry by its text."""
    return {entry.text: entry.trust for entry in memory.entries.list()}


# ---- EverOS ---------------------------------------------------------------------------------------------------------

FACTS = """---
id: atomic_fact_log_alice_2026-10-20
type: atomic_fact_daily
file_type: atomic_fact_daily
schema_version: 1
user_id: alice
track: user
date: '2026-10-20'
entry_count: 3
deprecated_entries:
  af_20261020_00000003: merged
last_appended_at: '2026-11-18T03:10:32.196916+00:00'
---
<!-- entry:af_20261020_00000001 -->
## af_20261020_00000001

**owner_id**: alice
**session_id**: s1
**timestamp**: 2026-10-20T09:00:00+00:00
**parent_type**: episode
**parent_id**: ep_20261020_00000001

### Fact
Alice climbs in Yosemite every spring.
<!-- /entry:af_20261020_00000001 -->
<!-- entry:af_20261020_00000002 -->
## af_20261020_00000002

**owner_id**: alice
**timestamp**: 2026-10-20T09:01:00+00:00

### Fact
Alice is allergic to hazelnuts.
<!-- /entry:af_20261020_00000002 -->
<!-- entry:af_20261020_00000003 -->
## af_20261020_00000003

**owner_id**: alice

### Fact
Alice climbs.
<!-- /entry:af_20261020_00000003 -->
"""
EPISODE = """---
id: episode_log_alice_2026-10-20
type: episode_daily
file_type: episode_daily
schema_version: 1
user_id: alice
track: user
date: '2026-10-20'
entry_count: 1
---
<!-- entry:ep_20261020_00000001 -->
## ep_20261020_00000001

**owner_id**: alice

### Content
Alice told the assistant that she climbs in Yosemite with a red rope.
<!-- /entry:ep_20261020_00000001 -->
"""


def test_facts_of_everos_are_entries_and_episodes_are_notes(memory: Memory, tmp_path: Path) -> None:
    user = tmp_path / "root/default_app/default_project/users/alice"
    (user / ".atomic_facts").mkdir(parents=True)
    (user / "episodes").mkdir()
    (user / ".atomic_facts/atomic_fact-2026-10-20.md").write_text(FACTS)
    (user / "episodes/episode-2026-10-20.md").write_text(EPISODE)
    assert done(import_export(memory, tmp_path / "root")) == ("everos", ["note new"], 2)
    assert texts(memory) == {
        "Alice climbs in Yosemite every spring.": "agent",
        "Alice is allergic to hazelnuts.": "agent",
    }
    [entry] = [one for one in memory.entries.list(tags=["user:alice"]) if "Yosemite" in one.text]
    assert (entry.source, entry.session, entry.created_at) == ("import:everos", "s1", 1_792_486_800.0)
    hit = memory.search("red rope").hits[0]
    assert hit.path.endswith("everos/default_app/default_project/users/alice/episodes/episode-2026-10-20.md")
    assert hit.trust == "agent"
    again = import_export(memory, tmp_path / "root")
    assert done(again) == ("everos", ["note same"], 0)


# ---- Hermes ---------------------------------------------------------------------------------------------------------

HERMES = """
create table sessions (id text primary key, source text not null, started_at real not null);
create table messages (id integer primary key autoincrement, session_id text not null, role text not null, content text,
  tool_calls text, timestamp real not null, active integer not null default 1, compacted integer not null default 0);
insert into sessions values('20261101_090000_ab12cd', 'cli', 1794970810.4);
insert into messages(session_id, role, content, timestamp, active, compacted) values
  ('20261101_090000_ab12cd', 'user', 'Where does the heron of Ghent nest?', 1794970810.4, 0, 1),
  ('20261101_090000_ab12cd', 'assistant', 'The heron of Ghent nests in the marsh.', 1794970811.4, 1, 0),
  ('20261101_090000_ab12cd', 'user', 'an undone message about otters', 1794970812.4, 0, 0),
  ('20261101_090000_ab12cd', 'tool', 'output', 1794970813.4, 1, 0),
  ('20261101_090000_ab12cd', 'user', char(0) || 'json:[{"type": "text", "text": "See the kestrel photo"}]',
   1794970814.4, 1, 0);
"""


@pytest.fixture
def hermes(tmp_path: Path) -> Path:
    home = tmp_path / "hermes"
    (home / "memories").mkdir(parents=True)
    (home / "memories/MEMORY.md").write_text(
        "The staging server runs in Frankfurt.\n§\nTests run with pytest -x.\nNever with unittest."
    )
    (home / "memories/USER.md").write_text("Ada prefers tabs over spaces.")
    connection = apsw.Connection(str(home / "state.db"))
    connection.execute(HERMES)
    connection.close()
    return home


def test_entries_and_sessions_of_hermes_are_imported(
    memory: Memory, hermes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert done(import_export(memory, hermes)) == ("hermes", ["session new"], 3)
    assert texts(memory)["Tests run with pytest -x.\nNever with unittest."] == "agent"
    memory.sync()
    questions = ("heron of Ghent", "kestrel photo", "undone otters")
    found = "\n".join(hit.snippet for text in questions for hit in memory.search(text, source="sessions"))
    assert "marsh" in found
    assert "kestrel photo" in found
    assert "otters" not in found
    monkeypatch.setenv("HERMES_HOME", str(hermes))
    assert import_from(memory, "hermes").entries == Imported(0, 3)


def test_a_home_of_hermes_that_is_missing_is_named(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "none"))
    with pytest.raises(SourceError, match="none does not exist"):
        import_from(memory, "hermes")


# ---- Hindsight ------------------------------------------------------------------------------------------------------

DOCUMENT = {
    "id": "chat-7",
    "original_text": "Alice: I moved to Munich.",
    "tags": [],
    "chunks": [],
    "facts": [
        {
            "text": "Alice lives in Munich.",
            "source_id": "550e8400-e29b-41d4-a716-446655440000",
            "fact_type": "world",
            "mentioned_at": "2026-09-01T08:00:00Z",
            "tags": ["user:alice"],
            "entities": ["Alice", "Munich"],
        }
    ],
}


def test_the_archive_of_a_hindsight_bank_is_imported(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "bank.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"schema_version": 1, "source_bank_id": "alice"}))
        archive.writestr("documents/000000.json", json.dumps(DOCUMENT))
        archive.writestr(
            "observations.json", json.dumps([{"text": "Alice likes the Alps.", "proof_count": 3}])
        )
    assert done(import_export(memory, file)) == ("hindsight", [], 2)
    [entry] = memory.entries.list(tags=["user:alice"])
    assert (entry.text, entry.session, entry.trust) == ("Alice lives in Munich.", "chat-7", "agent")
    assert done(import_export(memory, file)) == ("hindsight", [], 0)


def test_a_page_of_hindsight_leaves_out_invalidated_facts(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "memories.json"
    valid = {"id": "m1", "text": "Bob works at Fern.", "fact_type": "world", "state": "valid", "tags": []}
    old = valid | {"id": "m2", "text": "Bob works at Oak.", "state": "invalidated"}
    file.write_text(json.dumps({"items": [valid, old], "total": 2, "limit": 100, "offset": 0}))
    report = import_export(memory, file)
    assert (list(texts(memory)), report.remarks) == (
        ["Bob works at Fern."],
        ("Facts that are no longer valid were left out: 1.",),
    )


# ---- Letta ----------------------------------------------------------------------------------------------------------


def message(role: str, text: str, number: int) -> dict[str, object]:
    content = [{"type": "text", "text": text, "signature": None}]
    at = f"2026-10-31T22:56:{number:02d}+00:00"
    return {"type": "message", "role": role, "content": content, "id": f"message-{number}", "created_at": at}


AGENT_FILE = {
    "agents": [
        {
            "name": "memgpt_agent",
            "id": "agent-0",
            "messages": [
                message("system", "You are a helpful agent.", 0),
                message("user", '{"type": "user_message", "message": "I race bicycles in Ghent"}', 1),
                message("assistant", "A fine town for bicycles!", 2),
            ],
        }
    ],
    "groups": [],
    "blocks": [
        {
            "label": "human",
            "value": "\nFirst name: Chad\nLast name: ?\n\n- Studies at Berkeley\n",
            "id": "block-0",
        }
    ],
}


def test_blocks_and_messages_of_a_letta_agent_are_imported(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "agent.af"
    file.write_text(json.dumps(AGENT_FILE))
    assert done(import_export(memory, file)) == ("letta", ["session new"], 2)
    assert texts(memory) == {"First name: Chad": "agent", "Studies at Berkeley": "agent"}
    memory.sync()
    found = "\n".join(hit.snippet for hit in memory.search("bicycles in Ghent", source="sessions"))
    assert "I race bicycles in Ghent" in found
    assert "user_message" not in found


def test_the_memory_folder_of_letta_code_becomes_notes(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "agent/system").mkdir(parents=True)
    (tmp_path / "agent/system/human.md").write_text(
        "---\ndescription: The owner\n---\nRides a yellow tandem.\n"
    )
    assert done(import_export(memory, tmp_path / "agent")) == ("letta", ["note new"], 0)
    assert memory.search("yellow tandem").hits[0].trust == "agent"


# ---- MemPalace ------------------------------------------------------------------------------------------------------

ROOM = """# family / school

## drawer_family_school_1

> Mia starts school on 1 September.
> She wants the blue bag.

| Field | Value |
|-------|-------|
| Source | chat-2026-08.md |
| Filed | 2026-08-20T10:00:00 |
| Added by | claude |

---

"""


def test_rooms_of_mempalace_become_notes(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "palace/family").mkdir(parents=True)
    (tmp_path / "palace/index.md").write_text(
        "# Palace Export — 2026-11-18\n\n\n| Wing | Rooms | Drawers |\n"
    )
    (tmp_path / "palace/family/school.md").write_text(ROOM)
    report = import_export(memory, tmp_path / "palace")
    assert done(report) == ("mempalace", ["note new"], 0)
    assert report.remarks == ("The rooms contain 1 drawers.",)
    hit = memory.search("blue bag for school").hits[0]
    assert (hit.path, hit.trust) == ("memory/imports/mempalace/family/school.md", "agent")


# ---- memsearch ------------------------------------------------------------------------------------------------------

DAY = """
## Session 14:30

### 14:32
<!-- session:abc123 turn:def456 transcript:/srv/ada/.claude/projects/x/abc123.jsonl -->
- User asked for Redis caching with a TTL of five minutes
- Claude added the cache to the orders endpoint
"""


def test_days_of_memsearch_become_notes(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / ".memsearch"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory/2026-02-10.md").write_text(DAY)
    (folder / "USER.md").write_text("# User\n\nWorks at night.\n")
    assert done(import_export(memory, folder)) == ("memsearch", ["note new", "note new"], 0)
    hit = memory.search("Redis caching").hits[0]
    assert (hit.path, hit.trust) == ("memory/imports/memsearch/memory/2026-02-10.md", "agent")
    (folder / "memory/2026-02-10.md").write_text(DAY + "- more\n")
    assert done(import_export(memory, folder))[1] == ["note other", "note same"]


# ---- supermemory and Zep --------------------------------------------------------------------------------------------

SUPERMEMORY: dict[str, Any] = {
    "documents": [],
    "chunks": [],
    "memories": [
        {
            "id": "mem_1",
            "memory": "Alice drinks green tea",
            "metadata": {},
            "isStatic": True,
            "isInference": False,
            "isLatest": True,
            "isForgotten": False,
            "version": 2,
            "system": {"createdAt": "2026-09-01T08:00:00Z", "updatedAt": "2026-09-02T08:00:00Z"},
        }
    ],
    "pagination": {"currentPage": 1.0, "limit": 10.0, "totalItems": 1.0, "totalPages": 1.0},
}


def test_memories_of_supermemory_are_imported_without_older_versions(memory: Memory, tmp_path: Path) -> None:
    current: dict[str, object] = SUPERMEMORY["memories"][0]
    older = current | {"id": "mem_0", "memory": "Alice drinks coffee", "isLatest": False}
    file = tmp_path / "memories.json"
    file.write_text(json.dumps(SUPERMEMORY | {"memories": [current, older]}))
    report = import_export(memory, file)
    assert done(report) == ("supermemory", [], 1)
    assert report.remarks == ("Replaced and forgotten memories were left out: 1.",)
    [entry] = memory.entries.list()
    assert (entry.text, entry.trust, entry.created_at) == ("Alice drinks green tea", "agent", 1_788_249_600.0)


def test_documents_of_supermemory_are_entries(memory: Memory, tmp_path: Path) -> None:
    document = {"id": "d1", "content": "The garage code is on the fridge", "containerTags": ["home"]}
    file = tmp_path / "documents.json"
    file.write_text(
        json.dumps({"memories": [document | {"createdAt": "2026-09-01T08:00:00Z"}], "pagination": {}})
    )
    assert done(import_export(memory, file)) == ("supermemory", [], 1)
    assert [entry.tags for entry in memory.entries.list()] == [("home",)]


ZEP = {
    "items": [
        {
            "created_at": "2026-09-01T08:00:00Z",
            "fact": "Alice lives in Munich.",
            "name": "LIVES_IN",
            "scope": "entity",
            "source_node_name": "Alice",
            "target_node_name": "Munich",
            "uuid": "5f0c1c1e-0f0e-4a55-9d3b-6f4d2f6f0a01",
            "valid_at": "2026-08-30T00:00:00Z",
        },
        {
            "created_at": "2025-01-01T08:00:00Z",
            "expired_at": "2026-09-01T08:00:00Z",
            "fact": "Alice lives in Berlin.",
            "invalid_at": "2026-08-30T00:00:00Z",
            "name": "LIVES_IN",
            "uuid": "5f0c1c1e-0f0e-4a55-9d3b-6f4d2f6f0a02",
            "valid_at": "2025-01-01T00:00:00Z",
        },
    ]
}


def test_facts_of_zep_that_hold_are_imported(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "edges.json"
    file.write_text(json.dumps(ZEP))
    report = import_export(memory, file)
    assert done(report) == ("zep", [], 1)
    assert report.remarks == ("Facts that are no longer true were left out: 1.",)
    [entry] = memory.entries.list()
    assert (entry.text, entry.tags, entry.trust) == ("Alice lives in Munich.", ("alice", "munich"), "agent")
    assert entry.valid_from == 1_788_048_000.0


def test_messages_of_zep_are_sessions(memory: Memory, tmp_path: Path) -> None:
    said = {"role": "user", "name": "Alice", "thread_uuid": "t1", "created_at": "2026-09-01T08:00:00Z"}
    file = tmp_path / "messages.json"
    file.write_text(
        json.dumps({"items": [said | {"uuid": "m1", "content": "Where does the heron of Ghent nest?"}]})
    )
    assert done(import_export(memory, file)) == ("zep", ["session new"], 0)
    memory.sync()
    assert "heron of Ghent" in memory.search("heron of Ghent", source="sessions").hits[0].snippet


# ---- Open Knowledge Format ------------------------------------------------------------------------------------------


def test_a_bundle_without_an_index_becomes_notes(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "bundle/tables").mkdir(parents=True)
    (tmp_path / "bundle/tables/orders.md").write_text(
        "---\ntype: table\ntitle: Orders\n---\n\nOne row per parcel.\n"
    )
    (tmp_path / "bundle/log.md").write_text("## 2026-09-01: Created\n")
    assert done(import_export(memory, tmp_path / "bundle")) == ("okf", ["note new"], 0)
    assert memory.search("parcel row").hits[0].path == "memory/imports/okf/tables/orders.md"
