"""`memory.notes`: list, describe, read and save notes and transcripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoriter.errors import NotFound
from memoriter.memory import Memory


@pytest.fixture
def memory(workspace: Path, tmp_path: Path) -> Iterator[Memory]:
    (workspace / "memory").mkdir(exist_ok=True)
    for name in ("a", "b", "c"):
        (workspace / "memory" / f"{name}.md").write_text(f"# Note {name}\n\nIts text.\n", encoding="utf-8")
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    (sessions / "talk.jsonl").write_text('{"role": "user", "content": "I prefer tea"}\n', encoding="utf-8")
    overrides = {"embedding.provider": "none", "sessions.paths": [str(sessions)]}
    with Memory.open(workspace, home=tmp_path / "home", overrides=overrides) as memory:
        yield memory


def test_notes_are_listed_before_transcripts(memory: Memory) -> None:
    listed = memory.notes.list()
    assert [file.path for file in listed] == [
        "memory/a.md",
        "memory/b.md",
        "memory/c.md",
        "sessions/talk.jsonl",
    ]
    assert (len(listed), listed.total) == (4, 4)


def test_a_list_can_be_limited_and_continued(memory: Memory) -> None:
    first = memory.notes.list(source="memory", limit=2)
    assert (len(first), first.total) == (2, 3)
    rest = memory.notes.list(source="memory", after=first.files[-1].path, limit=2)
    assert ([file.path for file in rest], rest.total) == (["memory/c.md"], 1)


def test_transcripts_can_be_listed_alone(memory: Memory) -> None:
    assert [file.path for file in memory.notes.list(source="sessions")] == ["sessions/talk.jsonl"]
    assert memory.notes.paths() == ("memory/a.md", "memory/b.md", "memory/c.md")


def test_a_note_is_described_with_its_chunks_once_it_is_indexed(memory: Memory) -> None:
    assert (memory.notes.get("memory/a.md").chunks, memory.notes.chunks("memory/a.md")) == (0, ())
    memory.sync()
    assert memory.notes.get("memory/a.md").chunks == 1
    assert [(chunk.start_line, chunk.end_line) for chunk in memory.notes.chunks("memory/a.md")] == [(1, 3)]


def test_notes_and_transcripts_are_read_by_line(memory: Memory) -> None:
    assert memory.notes.read("memory/a.md", 3, 1).text == "Its text."
    assert memory.notes.read("sessions/talk.jsonl").text == "user: I prefer tea"


def test_saving_returns_where_the_note_was_written(memory: Memory) -> None:
    saved = memory.notes.save("The backup runs at three.", "Backup", category="operations")
    assert saved.path == "memory/operations/backup.md"
    assert "The backup runs at three." in memory.notes.read(saved.path).text
    assert [hit.path for hit in memory.search("backup").hits] == [saved.path]


def test_an_unknown_path_is_not_found(memory: Memory) -> None:
    with pytest.raises(NotFound, match="is not a note or a transcript"):
        memory.notes.get("memory/missing.md")
