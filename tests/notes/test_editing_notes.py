"""The owner's edits of whole notes: guarded by the version that was read, and never a loss."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.errors import EditConflict, NotFound, PathRefused, WriteError
from memoriter.files import platform
from memoriter.notes.editing import NoteText


@pytest.fixture
def memory(workspace: Path, tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(workspace, home=tmp_path / "home", overrides={"embedding.provider": "none"}) as opened:
        yield opened


def test_a_note_is_created_read_changed_moved_and_removed(memory: Memory, workspace: Path) -> None:
    text = "# Pier\r\n\r\nno line break at the end \u202e"
    created = memory.notes.put("memory/pier.md", text, version=None)
    assert memory.notes.text("memory/pier.md") == created
    assert (workspace / "memory/pier.md").read_bytes() == text.encode()
    changed = memory.notes.put("memory/pier.md", "# Pier\n", version=created.version)
    assert [hit.path for hit in memory.search("pier").hits] == ["memory/pier.md"]
    moved = memory.notes.move("memory/pier.md", "memory/harbour/quay.md", version=changed.version or "")
    assert moved == NoteText("memory/harbour/quay.md", "# Pier\n", changed.version)
    assert not (workspace / "memory/pier.md").exists()
    removed = memory.notes.remove("memory/harbour/quay.md", version=moved.version or "")
    assert removed == NoteText("memory/harbour/quay.md", "# Pier\n", None)
    assert memory.search("pier").hits == ()
    restored = memory.notes.put(removed.path, removed.text, version=None)
    assert restored.version == changed.version


@pytest.mark.parametrize(
    "path", ["memory/\u202egnp.md", "memory/a\u2066b.md", f"memory/{'/'.join('abcdefghijklmnopqrst')}/x.md"]
)
def test_a_new_note_has_a_name_that_people_can_read(memory: Memory, workspace: Path, path: str) -> None:
    with pytest.raises(PathRefused, match="invisible characters"):
        memory.notes.put(path, "text", version=None)
    note = memory.notes.put("memory/a.md", "text", version=None)
    with pytest.raises(PathRefused, match="invisible characters"):
        memory.notes.move("memory/a.md", path, version=note.version or "")
    (workspace / path).parent.mkdir(parents=True, exist_ok=True)
    (workspace / path).write_text("by hand", encoding="utf-8")  # it can still be edited
    memory.notes.put(path, "edited", version=memory.notes.text(path).version)


@pytest.mark.parametrize(
    "name", ["aux.md", "CON", "NUL.txt.md", "com1.md", "lpt².md", "a.md:b.md", "why?.md", "a."]
)
def test_on_windows_a_note_is_not_named_like_a_device(
    name: str, memory: Memory, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "HAS_RESERVED_NAMES", True)
    path = f"memory/{name}/note.md"
    refused = f"^'{re.escape(path)}' is refused. Windows has no file or folder named '{re.escape(name)}'.$"
    with pytest.raises(PathRefused, match=refused):
        memory.notes.put(path, "text", version=None)
    note = memory.notes.put("memory/a.md", "text", version=None)
    with pytest.raises(PathRefused, match=refused):
        memory.notes.move("memory/a.md", path, version=note.version or "")
    assert [file.name for file in (workspace / "memory").iterdir()] == ["a.md"]


def test_another_version_is_never_overwritten_moved_or_removed(memory: Memory, workspace: Path) -> None:
    read = memory.notes.put("memory/a.md", "one\n", version=None)
    (workspace / "memory/a.md").write_text("two\n")
    for edit in (
        lambda: memory.notes.put("memory/a.md", "three\n", version=read.version),
        lambda: memory.notes.put("memory/a.md", "three\n", version=None),
        lambda: memory.notes.move("memory/a.md", "memory/b.md", version=read.version or ""),
        lambda: memory.notes.remove("memory/a.md", version=read.version or ""),
        lambda: memory.notes.remove("memory/none.md", version=read.version or ""),
    ):
        with pytest.raises(EditConflict):
            edit()
    assert (workspace / "memory/a.md").read_text() == "two\n"
    assert not (workspace / "memory/b.md").exists()


def test_a_note_does_not_replace_another_when_it_moves(memory: Memory, workspace: Path) -> None:
    first = memory.notes.put("memory/a.md", "one\n", version=None)
    memory.notes.put("memory/b.md", "two\n", version=None)
    with pytest.raises(EditConflict, match="already exists"):
        memory.notes.move("memory/a.md", "memory/b.md", version=first.version or "")
    texts = [(workspace / name).read_text() for name in ("memory/a.md", "memory/b.md")]
    assert texts == ["one\n", "two\n"]


@pytest.mark.parametrize(
    "path",
    [
        "../outside.md",
        "/etc/note.md",
        "memory/../../x.md",
        "memory/a.py",
        "memory/.hidden.md",
        "",
        "a\nb.md",
    ],
)
def test_only_notes_of_the_workspace_can_be_written(path: str, memory: Memory, workspace: Path) -> None:
    before = sorted(workspace.rglob("*"))
    with pytest.raises(PathRefused):
        memory.notes.put(path, "text", version=None)
    assert sorted(workspace.rglob("*")) == before


def test_a_link_is_not_followed_out_of_the_workspace(memory: Memory, workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("secret\n")
    (workspace / "memory").mkdir(exist_ok=True)
    (workspace / "memory/link.md").symlink_to(outside)
    with pytest.raises((PathRefused, WriteError)):
        memory.notes.text("memory/link.md")
    with pytest.raises((PathRefused, WriteError)):
        memory.notes.put("memory/link.md", "changed\n", version=None)
    assert outside.read_text() == "secret\n"


def test_a_missing_note_is_not_found(memory: Memory) -> None:
    with pytest.raises(NotFound):
        memory.notes.text("memory/none.md")
