"""Exports of basic-memory and claude-mem, in the formats that these programs write."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from reports import counts

from memoriter import Memory
from memoriter.extensions.importing import import_export
from memoriter.records import Imported

# ---- basic-memory -------------------------------------------------------------------------------------------------

COFFEE = """---
title: Coffee Brewing Methods
type: note
permalink: coffee/coffee-brewing-methods
tags:
- coffee
- brewing
---

# Coffee Brewing Methods

## Observations

- [method] Pour over extracts more floral notes than French press #brewing (from a tasting)
- [tip] Grind size should be medium-fine for pour over #grinding
- [ ] buy filters

## Relations

- relates_to [[Coffee Bean Origins]]
- requires [[Proper Grinding Technique]]
- [[Water]]
"""


def test_notes_of_basic_memory_are_copied(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "basic-memory"
    (folder / "coffee").mkdir(parents=True)
    (folder / "coffee" / "Coffee Brewing Methods.md").write_text(COFFEE)
    (folder / "plain.md").write_text("# Water\n\nSoft water is best.\n")
    report = import_export(memory, folder)
    assert counts(report) == ("basic-memory", {"note new": 2}, Imported(0, 0))
    assert report.remarks == ("The notes contain 2 observations, 3 relations.",)
    assert counts(import_export(memory, folder))[1] == {"note same": 2}
    hit = memory.search("pour over floral").hits[0]
    assert hit.path == "memory/imports/basic-memory/coffee/Coffee Brewing Methods.md"
    assert "Pour over extracts more floral notes" in hit.snippet


# ---- claude-mem ---------------------------------------------------------------------------------------------------

SCHEMA = """
create table sdk_sessions (id integer primary key autoincrement, content_session_id text unique not null,
  memory_session_id text unique, project text not null, platform_source text not null default 'claude',
  user_prompt text, started_at text not null, started_at_epoch integer not null, completed_at text,
  completed_at_epoch integer, status text not null default 'active', worker_port integer,
  prompt_counter integer default 0, custom_title text);
create table observations (id integer primary key autoincrement, memory_session_id text not null,
  project text not null, text text, type text not null, title text, subtitle text, facts text, narrative text,
  concepts text, files_read text, files_modified text, prompt_number integer, discovery_tokens integer default 0,
  content_hash text, agent_type text, agent_id text, merged_into_project text, generated_by_model text, metadata text,
  created_at text not null, created_at_epoch integer not null);
create table session_summaries (id integer primary key autoincrement, memory_session_id text not null,
  project text not null, request text, investigated text, learned text, completed text, next_steps text,
  files_read text, files_edited text, notes text, prompt_number integer, discovery_tokens integer default 0,
  merged_into_project text, created_at text not null, created_at_epoch integer not null);
create table user_prompts (id integer primary key autoincrement, content_session_id text not null,
  prompt_number integer not null, prompt_text text not null, created_at text not null,
  created_at_epoch integer not null);
create table directives (id integer primary key autoincrement, scope text not null default 'global', project text,
  content text not null, status text not null default 'active', source text not null default 'manual',
  created_at text not null, created_at_epoch integer not null, updated_at_epoch integer not null);
"""


@pytest.fixture
def claude_mem(tmp_path: Path) -> Path:
    file = tmp_path / "claude-mem.db"
    connection = apsw.Connection(str(file))
    connection.execute("pragma journal_mode = wal")
    connection.execute(SCHEMA)
    at, day = 1_762_000_000_000, "2025-11-01T12:26:40.000Z"
    connection.execute(
        "insert into sdk_sessions(content_session_id, memory_session_id, project, started_at, started_at_epoch)"
        " values ('c-1', 'm-1', 'fern', ?, ?)",
        (day, at),
    )
    connection.execute(
        "insert into observations(memory_session_id, project, type, title, subtitle, facts, narrative, concepts,"
        " content_hash, created_at, created_at_epoch) values ('m-1', 'fern', 'decision', 'Chose SQLite', 'a queue',"
        " '[\"one file\"]', 'The queue uses SQLite because it needs no server.', '[\"trade-off\"]', 'h1', ?, ?),"
        " ('m-1', 'fern', 'bugfix', 'Fixed the retry', null, '[\"Retries stop after five.\", \"They wait.\"]', null,"
        " 'not json', null, ?, ?), ('m-1', 'fern', 'change', '', null, null, null, null, null, ?, ?)",
        (day, at, day, at + 1000, day, at),
    )
    connection.execute(
        "insert into session_summaries(memory_session_id, project, request, learned, created_at, created_at_epoch)"
        " values ('m-1', 'fern', 'Make the queue durable', 'WAL survives a kill', ?, ?)",
        (day, at + 9000),
    )
    connection.execute(
        "insert into user_prompts(content_session_id, prompt_number, prompt_text, created_at, created_at_epoch)"
        " values ('c-1', 1, 'Please make the queue durable', ?, ?)",
        (day, at),
    )
    connection.execute(
        "insert into directives(content, created_at, created_at_epoch, updated_at_epoch)"
        " values ('Always run the tests before a commit', ?, ?, ?)",
        (day, at, at),
    )
    connection.close()
    return file


def test_observations_and_sessions_of_claude_mem_are_imported(memory: Memory, claude_mem: Path) -> None:
    before = claude_mem.read_bytes()
    assert counts(import_export(memory, claude_mem)) == ("claude-mem", {"session new": 1}, Imported(3, 0))
    assert counts(import_export(memory, claude_mem.parent)) == (
        "claude-mem",
        {"session same": 1},
        Imported(0, 3),
    )
    assert claude_mem.read_bytes() == before
    entries = {entry.text: entry for entry in memory.entries.list()}
    chosen = entries["Chose SQLite: The queue uses SQLite because it needs no server."]
    assert (chosen.type, chosen.trust, chosen.session, chosen.created_at) == (
        "technical_decision",
        "agent",
        "m-1",
        1_762_000_000.0,
    )
    assert chosen.tags == ("decision", "fern", "trade-off")
    assert "Fixed the retry: Retries stop after five. They wait." in entries
    assert "Always run the tests before a commit" in entries
    (hit,) = memory.search("queue durable", source="sessions")
    assert hit.snippet == (
        "User: Please make the queue durable\n\n"
        "Assistant: Request: Make the queue durable\nLearned: WAL survives a kill"
    )
