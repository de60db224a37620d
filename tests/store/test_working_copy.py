"""Files of an agent in Postgres: what one working copy writes, the others read, and the folders may be deleted."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from note_edits import append

from memoriter.errors import EditConflict, LockTimeout, StoreError
from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.extensions.postgres.files import PART_BYTES
from memoriter.extensions.postgres.manifest import NAME
from memoriter.extensions.postgres.working_copy import WorkingCopy
from memoriter.files import durable, edits, shared
from memoriter.files.locks import file_lock
from memoriter.sessions.transcript_writer import TranscriptWriter

PARTS = ("workspace", "sessions", "tokens.json")

OpenCopy = Callable[[str], Path]
OpenDatabase = Callable[..., PostgresDatabase]


@pytest.fixture
def open_copy(tmp_path: Path, postgres_database: OpenDatabase) -> Iterator[OpenCopy]:
    """Return a function that opens a working copy of the same agent in a folder with this name."""
    opened: list[Path] = []

    def open_(name: str) -> Path:
        root = Path(os.path.realpath(tmp_path)) / name / "main"
        shared.share(root, WorkingCopy(postgres_database(area="files"), root, PARTS))
        opened.append(root)
        return root

    yield open_
    for root in opened:
        shared.unshare(root)


def contents(root: Path) -> dict[str, bytes]:
    shared.refresh(root)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(NAME)
    }


def test_a_note_that_one_gateway_writes_is_read_by_the_other(open_copy: OpenCopy) -> None:
    one, two = open_copy("one"), open_copy("two")
    note = Path("workspace/memory/2026-02-08.md")

    append(one / note, "Bees need water.\n")
    assert contents(two) == {str(note): b"Bees need water.\n"}

    append(two / note, "In July.\n")
    assert contents(one) == contents(two) == {str(note): b"Bees need water.\nIn July.\n"}
    assert (one / note).stat().st_mtime_ns == (two / note).stat().st_mtime_ns

    edits.move(two / note, two / "workspace/memory/old/a.md", lambda _: None)
    assert contents(one) == {"workspace/memory/old/a.md": b"Bees need water.\nIn July.\n"}

    edits.remove(one / "workspace/memory/old/a.md", lambda _: None)
    assert contents(two) == {}
    assert not (two / "workspace/memory").exists()


def test_a_change_starts_from_what_the_other_gateway_wrote(open_copy: OpenCopy) -> None:
    one, two = open_copy("one"), open_copy("two")
    note = Path("workspace/memory/a.md")
    edits.write(one / note, "first", expected=None)

    with pytest.raises(EditConflict):
        edits.write(two / note, "second", expected=None)
    edits.write(two / note, "second", expected=edits.digest("first"))
    with pytest.raises(EditConflict):
        edits.write(one / note, "third", expected=edits.digest("first"))

    assert contents(one) == contents(two) == {str(note): b"second"}


def test_the_folder_may_be_deleted_at_any_time(open_copy: OpenCopy) -> None:
    one, two = open_copy("one"), open_copy("two")
    edits.write(one / "workspace/memory/a.md", "A", expected=None)
    durable.write(two / "tokens.json", b"{}")
    expected = {"tokens.json": b"{}", "workspace/memory/a.md": b"A"}
    assert contents(one) == expected

    shutil.rmtree(one)
    assert contents(one) == expected

    shutil.rmtree(one)
    append(one / "workspace/memory/a.md", "B\n")
    assert contents(one) == contents(two) == {**expected, "workspace/memory/a.md": b"A\nB\n"}


def test_what_a_killed_writer_left_in_the_folder_is_not_stored(open_copy: OpenCopy) -> None:
    one, two = open_copy("one"), open_copy("two")
    note = Path("workspace/memory/a.md")
    edits.write(one / note, "stored", expected=None)
    (one / note).write_text("left by a killed writer")
    (one / "workspace/memory/new.md").write_text("left too")

    append(one / note, "more\n")
    append(one / "workspace/memory/new.md", "own words\n")

    assert contents(two)[str(note)] == b"stored\nmore\n"
    assert contents(two)["workspace/memory/new.md"] == b"own words\n"


def test_files_of_the_machine_are_not_stored(open_copy: OpenCopy) -> None:
    one, two = open_copy("one"), open_copy("two")
    durable.write(one / "map.json", b"{}")
    durable.write(one / "sessions" / "a.lock", b"")
    durable.write(one / "workspace" / ".hidden.md", b"")
    assert contents(two) == {}


def test_a_failed_change_leaves_the_folder_as_it_was(open_copy: OpenCopy) -> None:
    one, two = open_copy("one"), open_copy("two")
    note = one / "workspace/memory/a.md"
    edits.write(note, "before", expected=None)

    def fail() -> None:
        with shared.changing(note, note.with_name("b.md")):
            note.write_text("after")
            note.with_name("b.md").write_text("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert contents(one) == contents(two) == {"workspace/memory/a.md": b"before"}


def test_a_change_that_the_server_refuses_is_not_acknowledged(
    open_copy: OpenCopy, postgres_database: OpenDatabase
) -> None:
    one = open_copy("one")
    edits.write(one / "workspace/memory/a.md", "before", expected=None)
    database = postgres_database(area="files")
    with database.write() as connection:
        connection.execute("update file_clock set version = 9223372036854775807")

    with pytest.raises(StoreError):
        append(one / "workspace/memory/a.md", "lost")

    assert (one / "workspace/memory/a.md").read_bytes() == b"before"


def test_a_transcript_that_grows_is_extended_in_place(
    open_copy: OpenCopy, postgres_database: OpenDatabase
) -> None:
    one, two = open_copy("one"), open_copy("two")
    text = "tea " * (PART_BYTES // 10)
    writer, other = (TranscriptWriter(root / "sessions", "s") for root in (one, two))
    for number in range(6):
        writer.add([{"role": "user", "content": f"{number} {text}"}])
        shared.refresh(two)
        inode = other.path.stat().st_ino
    other.add([{"role": "user", "content": "short"}])

    assert other.path.stat().st_ino == inode
    assert writer.items() == other.items()
    assert [str(item["content"])[:5] for item in writer.items()] == [
        *(f"{number} tea" for number in range(6)),
        "short",
    ]
    assert other.pop() == {"role": "user", "content": "short"}
    assert len(writer.items()) == 6
    with postgres_database(area="files").read() as connection:
        sizes = connection.execute("select max(length(content)), sum(length(content)) from file_parts")
    assert sizes == [(PART_BYTES, writer.path.stat().st_size)]
    writer.clear()
    assert contents(two) == {}


def test_earlier_versions_of_a_note_are_kept_until_they_are_erased(
    tmp_path: Path, postgres_database: OpenDatabase
) -> None:
    root = Path(os.path.realpath(tmp_path)) / "main"
    copy = WorkingCopy(postgres_database(area="files"), root, PARTS)
    shared.share(root, copy)
    note = root / "workspace/memory/a.md"
    for text in ("one", "two", "two and more", "three"):
        edits.update(note, lambda _, text=text: text)  # type: ignore[misc]
    edits.remove(note, lambda _: None)

    def versions() -> list[bytes]:
        with copy._database.read() as connection:
            rows = connection.execute("select content from file_versions order by version desc")
        return [content for (content,) in rows]

    assert versions() == [b"three", b"two and more", b"one"]
    shared.erase_history(note)
    assert versions() == []
    shared.unshare(root)


def test_a_lock_keeps_other_machines_out(open_copy: OpenCopy) -> None:
    one, two = open_copy("one"), open_copy("two")
    with file_lock(one / "sessions" / "a.lock"):
        with pytest.raises(LockTimeout), file_lock(two / "sessions" / "a.lock", 0.0):
            pass
        with file_lock(two / "sessions" / "b.lock", 0.0):
            pass
    with file_lock(two / "sessions" / "a.lock", 0.0):
        pass


def test_many_threads_of_two_gateways_lose_no_line(open_copy: OpenCopy) -> None:
    roots = [open_copy("one"), open_copy("two")]
    note = Path("workspace/memory/log.md")

    def write(thread: int) -> None:
        for number in range(5):
            append(roots[thread % 2] / note, f"{thread}-{number}\n")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    expected = sorted(f"{thread}-{number}" for thread in range(4) for number in range(5))
    assert [sorted(contents(root)[str(note)].decode().split()) for root in roots] == [expected] * 2


def test_a_change_of_another_gateway_is_fetched_in_the_background(
    open_copy: OpenCopy, tmp_path: Path, postgres_database: OpenDatabase
) -> None:
    root = Path(os.path.realpath(tmp_path)) / "following" / "main"
    following = WorkingCopy(postgres_database(area="files"), root, PARTS)
    arrived, note = threading.Event(), root / "workspace/memory/a.md"
    end = following.follow(lambda: arrived.set() if note.exists() else None)
    one = open_copy("one")

    append(one / "workspace/memory/a.md", "news\n")

    assert arrived.wait(120)
    assert note.read_text() == "news\n"
    end()


def test_a_change_between_opening_and_following_is_announced_at_once(
    open_copy: OpenCopy, tmp_path: Path, postgres_database: OpenDatabase
) -> None:
    database = postgres_database(area="files")
    following = WorkingCopy(database, tmp_path / "following", PARTS)
    following.refresh()
    seen, arrived = threading.Event(), threading.Event()
    end_other = database.server.feed.subscribe(database.tenant, database.agent, seen.set)
    assert seen.wait(120)
    seen.clear()
    append(open_copy("one") / "workspace/memory/a.md", "news\n")
    assert seen.wait(120)

    end = following.follow(arrived.set)

    assert arrived.wait(120)
    assert (following.root / "workspace/memory/a.md").read_text() == "news\n"
    end()
    end_other()


def test_a_change_that_a_reader_fetched_first_is_announced_too(
    open_copy: OpenCopy, tmp_path: Path, postgres_database: OpenDatabase
) -> None:
    blocked, release, arrived = threading.Event(), threading.Event(), threading.Event()

    def block() -> None:
        blocked.set()
        release.wait(60)

    busy = WorkingCopy(postgres_database(area="files"), tmp_path / "busy", PARTS)
    following = WorkingCopy(postgres_database(area="files"), tmp_path / "following", PARTS)
    following.refresh()
    end_busy, end = busy.follow(block), following.follow(arrived.set)
    append(open_copy("one") / "workspace/memory/a.md", "news\n")
    assert blocked.wait(120)

    following.refresh()
    release.set()

    assert arrived.wait(120)
    end()
    end_busy()


NAMES = st.sampled_from(["a.md", "b.md", "c/d.md", "s.jsonl"])
TEXTS = st.text("ab\n", min_size=1, max_size=12)


def test_any_sequence_of_changes_leaves_all_copies_equal(open_copy: OpenCopy) -> None:
    class Copies(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.roots = [open_copy("one"), open_copy("two")]
            for root in self.roots:
                for path in contents(root):
                    edits.remove(root / path, lambda _: None)
            self.model: dict[str, bytes] = {}

        @rule(copy=st.integers(0, 1), name=NAMES, text=TEXTS)
        def append(self, copy: int, name: str, text: str) -> None:
            file = self.roots[copy] / "workspace" / name
            edits.update(file, lambda old: (old or "") + text)
            path = f"workspace/{name}"
            self.model[path] = self.model.get(path, b"") + text.encode()

        @rule(copy=st.integers(0, 1), name=NAMES, text=TEXTS)
        def replace(self, copy: int, name: str, text: str) -> None:
            durable.write(self.roots[copy] / "workspace" / name, text.encode())
            self.model[f"workspace/{name}"] = text.encode()

        @rule(copy=st.integers(0, 1), name=NAMES)
        def remove(self, copy: int, name: str) -> None:
            if self.model.pop(f"workspace/{name}", None) is not None:
                edits.remove(self.roots[copy] / "workspace" / name, lambda _: None)

        @rule(copy=st.integers(0, 1), name=NAMES)
        def damage(self, copy: int, name: str) -> None:
            file = self.roots[copy] / "workspace" / name
            if file.exists():
                shutil.rmtree(self.roots[copy])

        @invariant()
        def all_are_equal(self) -> None:
            assert [contents(root) for root in self.roots] == [self.model, self.model]

    run_state_machine_as_test(
        Copies, settings=hypothesis.settings(max_examples=8, stateful_step_count=8, deadline=None)
    )
