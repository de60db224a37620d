"""A backup holds everything that cannot be rebuilt, and a restore gives it back byte for byte."""

from __future__ import annotations

import errno
import json
import os
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.config import load
from memoriter.config.loading import RESTORE_MARKER
from memoriter.errors import BackupError, StoreBroken
from memoriter.extensions.backup.creating import create
from memoriter.extensions.backup.restoring import restore
from memoriter.extensions.langgraph.items import items_of
from memoriter.extensions.langgraph.items.store import Put
from memoriter.files import platform

OpenMemory = Callable[..., Memory]
RENAME = os.rename
Note = Callable[[str, str], Path]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def filled(open_memory: OpenMemory, note: Note, home: Path) -> Memory:
    """A memory with notes, entries, a session and settings."""
    note("MEMORY.md", "The heron nests in the marsh.\n")
    note("memory/鸟/苍鹭.md", "苍鹭在沼泽里筑巢。\n")
    memory = open_memory()
    memory.remember("I prefer tabs over spaces.")
    memory.sync()
    session = home / "agents/main/sessions/one.jsonl"
    session.parent.mkdir(parents=True, exist_ok=True)
    session.write_text('{"role": "user", "content": "hello"}\n', "utf-8")
    (home / "config.yaml").write_text("# mine\nsearch:\n  max_results: 4\n", "utf-8")
    return memory


def settings_of(memory: Memory, home: Path):
    return load(arguments={"home": home, "workspace": memory.settings.workspace}, environ={})


def texts(home: Path, workspace: Path | None = None) -> list[str]:
    arguments = {
        "home": home,
        "embedding.provider": "none",
        **({"workspace": workspace} if workspace else {}),
    }
    with Memory.open(settings=load(arguments=arguments, environ={}, cwd=home)) as memory:
        return [entry.text for entry in memory.entries.list()]


def test_the_settings_of_the_workspace_are_in_the_backup_and_not_counted_as_a_note(
    filled: Memory, home: Path, tmp_path: Path
) -> None:
    (filled.settings.workspace / ".memoriter.yaml").write_text("search:\n  max_results: 4\n", "utf-8")
    report = create(settings_of(filled, home), tmp_path / "memory.zip")
    with zipfile.ZipFile(tmp_path / "memory.zip") as archive:
        assert "notes/.memoriter.yaml" in archive.namelist()
    restored = restore(
        tmp_path / "memory.zip", home=tmp_path / "other", workspace=tmp_path / "notes", dry_run=True
    )
    assert (report.notes, restored.notes) == (2, 2)


def test_a_restored_memory_has_the_same_notes_entries_sessions_and_settings(
    filled: Memory, home: Path, tmp_path: Path
) -> None:
    file, other, notes = tmp_path / "memory.zip", tmp_path / "new home", tmp_path / "new notes"
    report = create(settings_of(filled, home), file)
    assert (report.notes, report.agents, report.not_included) == (2, ("main",), ())
    assert platform.is_private(file)
    restored = restore(file, home=other, workspace=notes)
    assert (restored.home, restored.workspace, restored.replaced) == (other, notes, None)
    for path in ("MEMORY.md", "memory/鸟/苍鹭.md"):
        old, new = filled.settings.workspace / path, notes / path
        assert (new.read_bytes(), new.stat().st_mtime) == (
            old.read_bytes(),
            pytest.approx(old.stat().st_mtime),
        )
    assert (other / "agents/main/sessions/one.jsonl").read_text(
        "utf-8"
    ) == '{"role": "user", "content": "hello"}\n'
    assert (other / "config.yaml").read_text(
        "utf-8"
    ) == f"# mine\nsearch:\n  max_results: 4\nworkspace: {notes}\n"
    assert texts(other) == ["I prefer tabs over spaces."]
    with Memory.open(
        home=other, config=other / "config.yaml", overrides={"embedding.provider": "none"}
    ) as memory:
        assert [hit.path for hit in memory.search("沼泽").hits] == ["memory/鸟/苍鹭.md"]


def test_items_of_frameworks_are_restored(filled: Memory, home: Path, tmp_path: Path) -> None:
    items_of(filled).put([Put(("users", "ada"), "tea", {"cups": 3}, ("tea",), None)])
    create(settings_of(filled, home), tmp_path / "memory.zip")
    restore(tmp_path / "memory.zip", home=tmp_path / "other", workspace=tmp_path / "notes")
    settings = load(
        arguments={"home": tmp_path / "other", "workspace": tmp_path / "notes", "embedding.provider": "none"},
        environ={},
    )
    with Memory.open(settings=settings) as memory:
        item = items_of(memory).get(("users", "ada"), "tea", refresh=False)
    assert item is not None
    assert item.value == {"cups": 3}


def test_settings_in_braces_are_restored_with_the_new_folder_of_the_notes(
    filled: Memory, home: Path, tmp_path: Path
) -> None:
    (home / "config.yaml").write_text('{"search": {"max_results": 4}}', "utf-8")
    create(settings_of(filled, home), tmp_path / "backup.zip")
    restore(tmp_path / "backup.zip", home=tmp_path / "new", workspace=tmp_path / "notes")
    settings = load(arguments={"home": tmp_path / "new"}, environ={}, cwd=tmp_path)
    assert (settings.workspace, settings.search.max_results) == (tmp_path / "notes", 4)


def test_derived_files_and_locks_are_left_out(filled: Memory, home: Path, tmp_path: Path) -> None:
    create(settings_of(filled, home), tmp_path / "memory.zip")
    names = sorted(zipfile.ZipFile(tmp_path / "memory.zip").namelist())
    assert names == [
        "agents/main/memory.db",
        "agents/main/sessions/one.jsonl",
        "config.yaml",
        "manifest.json",
        "notes/MEMORY.md",
        "notes/memory/鸟/苍鹭.md",
    ]


def test_a_backup_during_writes_is_one_state_of_the_memory(
    filled: Memory, home: Path, tmp_path: Path
) -> None:
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            filled.remember(f"Fact number {number} is about the colour {number * 7}.")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            create(settings_of(filled, home), tmp_path / f"{number}.zip")
    finally:
        stop.set()
        writer.join()
    for number in range(5):
        restore(tmp_path / f"{number}.zip", home=tmp_path / f"home{number}", workspace=tmp_path / "notes")
        assert texts(tmp_path / f"home{number}")[-1] == "I prefer tabs over spaces."


def test_an_existing_memory_is_replaced_only_with_force_and_is_kept(
    filled: Memory, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "memory.zip"
    create(settings_of(filled, home), file)
    filled.remember("The deploy runs on Friday.")
    filled.close()
    with pytest.raises(BackupError, match="already contains a memory"):
        restore(file, home=home, workspace=filled.settings.workspace)
    report = restore(file, home=home, workspace=filled.settings.workspace, force=True)
    assert report.replaced == home / "replaced-1"
    assert texts(home) == ["I prefer tabs over spaces."]
    assert (report.replaced / "agents/main/memory.db").is_file()


def test_a_note_that_differs_is_not_overwritten_without_force(
    filled: Memory, home: Path, tmp_path: Path
) -> None:
    file, note = tmp_path / "memory.zip", filled.settings.workspace / "MEMORY.md"
    create(settings_of(filled, home), file)
    note.write_text("Newer.\n", "utf-8")
    with pytest.raises(BackupError, match=r"MEMORY\.md differs from the note in the backup"):
        restore(file, home=tmp_path / "other", workspace=note.parent)
    assert note.read_text("utf-8") == "Newer.\n"
    assert not (tmp_path / "other").exists()
    report = restore(file, home=tmp_path / "other", workspace=note.parent, force=True)
    assert note.read_text("utf-8") == "The heron nests in the marsh.\n"
    assert report.replaced is not None
    assert (report.replaced / "notes/MEMORY.md").read_text("utf-8") == "Newer.\n"


def test_every_damaged_byte_is_noticed_before_anything_is_written(
    filled: Memory, home: Path, tmp_path: Path
) -> None:
    file, broken, other = tmp_path / "memory.zip", tmp_path / "broken.zip", tmp_path / "other"
    create(settings_of(filled, home), file)
    data = file.read_bytes()
    for place in range(40, len(data), max(1, len(data) // 60)):
        broken.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            restore(broken, home=other, workspace=tmp_path / "elsewhere", dry_run=True)
        except BackupError:
            pass
        else:  # a byte that ZIP readers ignore, such as a time
            assert zipfile.ZipFile(broken).testzip() is None
        assert not other.exists()
    broken.write_bytes(data[: len(data) // 2])
    with pytest.raises(BackupError, match="not a backup of memoriter, or it is damaged"):
        restore(broken, home=other)


def test_a_name_that_leads_outside_is_refused(filled: Memory, home: Path, tmp_path: Path) -> None:
    file, hostile = tmp_path / "memory.zip", tmp_path / "hostile.zip"
    create(settings_of(filled, home), file)
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(hostile, "w") as target:
        manifest = json.loads(source.read("manifest.json"))
        manifest["files"]["notes/../../evil.md"] = manifest["files"]["notes/MEMORY.md"]
        target.writestr("notes/../../evil.md", source.read("notes/MEMORY.md"))
        target.writestr("manifest.json", json.dumps(manifest))
    with pytest.raises(BackupError, match="unsafe name"):
        restore(hostile, home=tmp_path / "other")


def test_an_interrupted_restore_is_completed_by_the_next(
    filled: Memory, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, other, notes = tmp_path / "memory.zip", tmp_path / "other", tmp_path / "notes"
    create(settings_of(filled, home), file)
    for stop in range(1, 5):
        moves = 0

        def move(
            source: Path, target: Path, stop: int = stop, original: Callable[..., object] = RENAME
        ) -> None:
            nonlocal moves
            moves += 1
            if moves == stop:
                raise KeyboardInterrupt
            original(source, target)

        with monkeypatch.context() as patch:
            patch.setattr("os.rename", move)
            with pytest.raises(KeyboardInterrupt):
                restore(file, home=other, workspace=notes, force=True)
        assert (other / RESTORE_MARKER).is_file()
        restore(file, home=other, workspace=notes, force=True)
        assert texts(other) == ["I prefer tabs over spaces."]
        assert not (other / RESTORE_MARKER.parent).exists()


def test_folders_that_the_settings_name_below_the_workspace_move_with_it(
    filled: Memory, note: Note, home: Path, tmp_path: Path
) -> None:
    note("journal/day.md", "The kettle was repaired.\n")
    journal, elsewhere = filled.settings.workspace / "journal", tmp_path / "elsewhere"
    (home / "config.yaml").write_text(f"files:\n  extra_paths:\n    - {journal}\n    - {elsewhere}\n")
    create(settings_of(filled, home), tmp_path / "memory.zip")
    other, notes = tmp_path / "other", tmp_path / "notes"
    restore(tmp_path / "memory.zip", home=other, workspace=notes, accept=True)
    restored = load(arguments={"home": other}, environ={}, cwd=tmp_path)
    assert restored.files.extra_paths == (notes / "journal", elsewhere)


def test_a_restore_that_fails_in_the_middle_names_the_cause_and_is_completed_by_the_next(
    filled: Memory, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, other, notes = tmp_path / "memory.zip", tmp_path / "other", tmp_path / "notes"
    create(settings_of(filled, home), file)

    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", full)
        with pytest.raises(BackupError, match=r"(?s)No space left on device.*restore` again"):
            restore(file, home=other, workspace=notes, force=True)
    with pytest.raises(BackupError, match="was interrupted"):
        texts(other)
    restore(file, home=other, workspace=notes, force=True)
    assert texts(other) == ["I prefer tabs over spaces."]


def test_a_damaged_database_is_not_backed_up(filled: Memory, home: Path, tmp_path: Path) -> None:
    filled.close()
    database = home / "agents/main/memory.db"
    database.write_bytes(database.read_bytes()[:4096] + b"x" * 20_000)
    with pytest.raises(StoreBroken, match="damaged"):
        create(settings_of(filled, home), tmp_path / "memory.zip")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith((".memory", "memory"))] == []


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing.zip", "There is no file"), ("text.zip", "is not a backup of memoriter")],
)
def test_another_file_is_not_a_backup(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "text.zip").write_text("hello", "utf-8")
    with pytest.raises(BackupError, match=message):
        restore(tmp_path / name, home=tmp_path / "other")
