"""Edits of notes are atomic, keep the mode, and never overwrite edits of others."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from note_edits import append

from memoriter.errors import EditConflict, WriteError
from memoriter.files import edits
from memoriter.files.platform import is_private, make_private


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "memory/note.md"
    path.parent.mkdir()
    path.write_text("# Herons\n", encoding="utf-8")
    return path


def test_a_new_note_is_created_with_its_folders_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "memory/birds/苍鹭.md"
    assert append(path, "grey\n", head="# 苍鹭\n")
    assert path.read_bytes() == "# 苍鹭\ngrey\n".encode()
    assert is_private(path)
    assert is_private(path.parent)


def test_text_that_cannot_be_encoded_is_not_written(note: Path) -> None:
    for broken in ("\udcff", "\ud83d"):
        with pytest.raises(WriteError, match="cannot be encoded as UTF-8"):
            append(note, broken)
    assert note.read_bytes() == b"# Herons\n"


@pytest.mark.posix("files have no modes")
def test_the_mode_of_a_note_is_kept_under_any_umask(note: Path) -> None:
    note.chmod(0o640)
    before = os.umask(0)
    try:
        append(note, "grey\n")
    finally:
        os.umask(before)
    assert stat.S_IMODE(note.stat().st_mode) == 0o640


def test_a_note_that_only_its_owner_can_read_stays_so(note: Path) -> None:
    note.chmod(0o644)
    make_private(note)
    append(note, "grey\n")
    assert (note.read_text(), is_private(note)) == ("# Herons\ngrey\n", True)


def test_line_endings_and_a_missing_last_one_are_kept(note: Path) -> None:
    note.write_bytes(b"\xef\xbb\xbf# Herons\r\nlast")
    append(note, "one\ntwo\n")
    assert note.read_bytes() == b"\xef\xbb\xbf# Herons\r\nlast\r\none\r\ntwo\r\n"


def test_a_write_based_on_an_old_version_is_refused(note: Path) -> None:
    believed = edits.digest(edits.read(note) or "")
    note.write_text("# Herons, by hand\n", encoding="utf-8")
    with pytest.raises(EditConflict, match=r"note\.md has been changed"):
        edits.write(note, "# Mine\n", expected=believed)
    assert note.read_text(encoding="utf-8") == "# Herons, by hand\n"
    assert edits.write(note, "# Mine\n", expected=edits.digest("# Herons, by hand\n"))
    with pytest.raises(EditConflict):
        edits.write(note, "# New\n", expected=None)


def save_in_place(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def save_by_rename(path: Path, text: str) -> None:
    """Save as vim and most editors do."""
    other = path.with_name("4913~")
    other.write_text(text, encoding="utf-8")
    other.replace(path)


@pytest.mark.parametrize("save", [save_in_place, save_by_rename])
def test_an_edit_between_read_and_write_survives(note: Path, save: object) -> None:
    seen: list[str | None] = []

    def change(old: str | None) -> str:
        if not seen:
            save(note, f"{old}by hand\n")  # type: ignore[operator]
        seen.append(old)
        return f"{old}by the agent\n"

    assert edits.update(note, change)
    assert seen == ["# Herons\n", "# Herons\nby hand\n"]
    assert note.read_text(encoding="utf-8") == "# Herons\nby hand\nby the agent\n"


def test_a_note_deleted_during_an_append_is_created_again(note: Path) -> None:
    seen: list[str | None] = []

    def change(old: str | None) -> str:
        seen.append(old)
        if len(seen) == 1:
            note.unlink()
        return (old or "") + "by the agent\n"

    assert edits.update(note, change)
    assert (seen, note.read_text(encoding="utf-8")) == (["# Herons\n", None], "by the agent\n")


@pytest.mark.parametrize("action", ["create", "change", "move", "remove"])
def test_a_folder_that_becomes_a_link_during_a_change_leads_nowhere(
    note: Path, tmp_path: Path, action: str
) -> None:
    """The swap happens after the path was resolved, once before and once after the folder is opened."""
    outside, folder = tmp_path / "outside", note.parent
    outside.mkdir()
    (outside / "note.md").write_text("# Herons\n", encoding="utf-8")

    def swap(_: object = None) -> None:
        if not folder.is_symlink():
            folder.rename(tmp_path / "away")
            folder.symlink_to(outside)

    def change(old: str | None) -> str:
        swap()
        return f"{old}changed\n"

    def act() -> None:
        match action:
            case "create":
                edits.update(folder / "new.md", change)
            case "change":
                edits.update(note, change)
            case "move":
                edits.move(note, folder / "moved.md", swap)
            case _:
                edits.remove(note, swap)

    with contextlib.suppress(WriteError):
        act()
    assert folder.is_symlink()
    for _ in range(2):
        assert {path.name: path.read_text("utf-8") for path in outside.iterdir()} == {"note.md": "# Herons\n"}
        with pytest.raises(WriteError, match="symbolic link"):
            act()


def test_many_threads_append_to_one_note(note: Path) -> None:
    def work(name: int) -> None:
        for number in range(10):
            append(note, f"{name}-{number}\n")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = note.read_text(encoding="utf-8").splitlines()
    assert sorted(lines[1:]) == sorted(f"{a}-{b}" for a in range(4) for b in range(10))


def test_a_writer_without_the_lock_raises_an_error(note: Path) -> None:
    def change(old: str | None) -> str | None:
        with pytest.raises(WriteError, match="Another process has held"):
            edits.update(note, lambda text: f"{text}x", wait_s=0.02)
        return None

    assert not edits.update(note, change)
    assert note.read_text(encoding="utf-8") == "# Herons\n"


def test_links_and_other_encodings_are_not_changed(note: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("mine\n", encoding="utf-8")
    link = note.with_name("link.md")
    link.symlink_to(outside)
    with pytest.raises(WriteError, match="symbolic link"):
        append(link, "x\n")
    note.write_bytes("# 苍鹭\n".encode("gb18030"))
    with pytest.raises(WriteError, match="not UTF-8"):
        append(note, "x\n")
    os.mkfifo(note.with_name("pipe.md"))
    with pytest.raises(WriteError, match="not a regular file"):
        append(note.with_name("pipe.md"), "x\n")
    assert outside.read_text(encoding="utf-8") == "mine\n"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root can write everywhere")
def test_a_read_only_folder_is_reported(note: Path) -> None:
    note.parent.chmod(0o500)
    with pytest.raises(WriteError, match="It is unchanged"):
        append(note, "x\n")


@pytest.mark.posix("no limit for the size of files")
def test_a_full_disk_is_reported_and_the_old_note_is_unchanged(note: Path) -> None:
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))
    try:
        with pytest.raises(WriteError, match="File too large"):
            append(note, "x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert note.read_text(encoding="utf-8") == "# Herons\n"
    assert [file.name for file in note.parent.iterdir()] == ["note.md"]


@settings(deadline=None)  # the duration of a sync depends on the disk
@given(parts=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")), max_size=5))
def test_appending_keeps_every_existing_byte(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("notes") / "note.md"
    before = b""
    for part in parts:
        append(path, part)
        after = path.read_bytes() if path.exists() else b""
        assert after.startswith(before)
        assert after.endswith(part.encode())
        before = after
