"""A folder and the notes of a memory in step: changes go both ways, and a conflict keeps both versions."""

from __future__ import annotations

import itertools
import json
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import hypothesis
import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from memoriter import Memory
from memoriter.errors import WriteError
from memoriter.extensions.exchange.folder import MANIFEST, ExchangedNote, NoteSide, exchange
from memoriter.files import edits
from memoriter.notes.workspace import Workspace
from memoriter.testing import HashEmbedder

if TYPE_CHECKING:
    from postgres_cluster import PostgresCluster

OpenMemory = Callable[..., Memory]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mine") / "notes"


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def notes(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*.md"))
    }


def test_changes_of_one_side_are_copied_to_the_other(
    open_memory: OpenMemory, workspace: Path, folder: Path
) -> None:
    both = exchange(open_memory(), folder)
    write(workspace, "memory/a.md", "A")
    write(workspace, "MEMORY.md", "M")
    first = both.pull()
    assert [(note.path, note.action) for note in first.notes] == [
        ("MEMORY.md", "pulled"),
        ("memory/a.md", "pulled"),
    ]
    assert notes(folder) == notes(workspace) == {"MEMORY.md": "M", "memory/a.md": "A"}

    write(folder, "memory/a.md", "A changed")
    write(folder, "memory/deep/b.md", "B")
    (folder / "MEMORY.md").unlink()
    assert [(note.path, note.action) for note in both.pull().notes] == [
        ("MEMORY.md", "to push"),
        ("memory/a.md", "to push"),
        ("memory/deep/b.md", "to push"),
    ]
    assert [(note.path, note.action) for note in both.push().notes] == [
        ("MEMORY.md", "removed there"),
        ("memory/a.md", "pushed"),
        ("memory/deep/b.md", "pushed"),
    ]
    assert notes(folder) == notes(workspace) == {"memory/a.md": "A changed", "memory/deep/b.md": "B"}

    (workspace / "memory/deep/b.md").unlink()
    assert [(note.path, note.action) for note in both.pull().notes] == [("memory/deep/b.md", "removed here")]
    assert not (folder / "memory/deep").exists()
    again = both.push()
    assert (again.notes, again.same, again.problems) == ((), 1, ())


@pytest.mark.parametrize("direction", ["pull", "push"])
def test_a_conflict_keeps_both_versions_and_names_them(
    direction: str, open_memory: OpenMemory, workspace: Path, folder: Path
) -> None:
    both = exchange(open_memory(), folder)
    write(workspace, "MEMORY.md", "base")
    both.pull()
    write(workspace, "MEMORY.md", "memory's words")
    write(folder, "MEMORY.md", "folder's words")

    report = both.pull() if direction == "pull" else both.push()

    other = "memory's words" if direction == "pull" else "folder's words"
    copy = f"memory/MEMORY.conflict-{edits.digest(other)[:8]}.md"
    assert ExchangedNote("MEMORY.md", "conflict", copy) in report.notes
    both.push()
    both.pull()
    remaining = "folder's words" if direction == "pull" else "memory's words"
    assert notes(folder) == notes(workspace) == {"MEMORY.md": remaining, copy: other}


@pytest.mark.parametrize("direction", ["pull", "push"])
def test_a_list_of_notes_that_cannot_be_stored_is_a_clear_error(
    direction: str, open_memory: OpenMemory, workspace: Path, folder: Path
) -> None:
    both = exchange(open_memory(), folder)
    write(workspace, "memory/a.md", "A")
    (folder / MANIFEST).mkdir(parents=True)
    with pytest.raises(WriteError, match=f"{MANIFEST} .*([Dd]irectory|denied)"):
        both.pull() if direction == "pull" else both.push()
    (folder / MANIFEST).rmdir()
    both.pull()
    assert notes(folder) == notes(workspace) == {"memory/a.md": "A"}


def test_new_words_outlive_a_removal(open_memory: OpenMemory, workspace: Path, folder: Path) -> None:
    both = exchange(open_memory(), folder)
    write(workspace, "memory/a.md", "A")
    write(workspace, "memory/b.md", "B")
    both.pull()
    (workspace / "memory/a.md").unlink()
    write(folder, "memory/a.md", "A changed")
    (folder / "memory/b.md").unlink()
    write(workspace, "memory/b.md", "B changed")

    for _ in range(2):
        both.push()
        both.pull()
    assert notes(folder) == notes(workspace) == {"memory/a.md": "A changed", "memory/b.md": "B changed"}


def test_files_that_cannot_be_exchanged_are_named(
    open_memory: OpenMemory, workspace: Path, folder: Path
) -> None:
    both = exchange(open_memory(), folder)
    write(folder, "memory/a.md", "A")
    (folder / "memory/bytes.md").write_bytes(b"\xff\xfe\x00")
    (folder / "memory/link.md").symlink_to("/etc/passwd")

    report = both.push()

    assert [problem.path for problem in report.problems] == ["memory/link.md", "memory/bytes.md"]
    assert notes(workspace) == {"memory/a.md": "A"}


def test_a_folder_of_another_memory_is_refused(open_memory: OpenMemory, folder: Path) -> None:
    exchange(open_memory(), folder).pull()
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, "owner": "other@0"}))
    with pytest.raises(WriteError, match="another memory"):
        exchange(open_memory(), folder).push()


def test_a_folder_inside_the_workspace_is_refused(open_memory: OpenMemory, workspace: Path) -> None:
    memory = open_memory()
    for place in (workspace, workspace / "memory", workspace.parent):
        with pytest.raises(WriteError, match="Choose a folder outside"):
            exchange(memory, place)


def test_a_watched_folder_stays_in_step(open_memory: OpenMemory, workspace: Path, folder: Path) -> None:
    both = exchange(open_memory(), folder)
    write(workspace, "memory/a.md", "A")
    reported, stop = threading.Semaphore(0), threading.Event()
    thread = threading.Thread(target=both.watch, args=(lambda _: reported.release(), stop))
    thread.start()
    try:
        assert reported.acquire(timeout=60)
        assert notes(folder) == {"memory/a.md": "A"}
        write(folder, "memory/b.md", "B")
        assert reported.acquire(timeout=60)
        assert notes(workspace) == {"memory/a.md": "A", "memory/b.md": "B"}
    finally:
        stop.set()
        thread.join(60)


NAMES = st.sampled_from(["MEMORY.md", "memory/a.md", "memory/b/c.md"])
SIDES = st.sampled_from(["memory", "folder"])


class Exchange(RuleBasedStateMachine):
    """Two sides that are edited at random, with unique texts, and exchanged at random."""

    overrides: ClassVar[dict[str, object]] = {}

    def __init__(self) -> None:
        super().__init__()
        self._temporary = tempfile.TemporaryDirectory()
        home = Path(self._temporary.name) / "home"
        self._memory = Memory.open(
            None if self.overrides else home / "workspace",
            home=home,
            overrides={"agent": f"a{next(_agents)}", **self.overrides},
            embedder=HashEmbedder(),
        )
        self._memory.settings.workspace.mkdir(parents=True, exist_ok=True)
        folder = Path(self._temporary.name) / "mine"
        self._exchange = exchange(self._memory, folder)
        self._exchange.pull()
        self._sides = {"memory": self._memory.settings.workspace, "folder": folder}
        self._texts = itertools.count()
        #: Texts that an editor wrote and that no editor has replaced or removed.
        self.current = set[str]()

    @rule(side=SIDES, path=NAMES)
    def edit(self, side: str, path: str) -> None:
        text = f"text {next(self._texts)}"
        old = notes(self._sides[side]).get(path)
        if side == "folder":
            write(self._sides[side], path, text)
        else:
            version = None if old is None else edits.digest(old)
            self._memory.notes.put(path, text, version=version)
        self.current.discard(old or "")
        self.current.add(text)

    @rule(side=SIDES, path=NAMES)
    def remove(self, side: str, path: str) -> None:
        old = notes(self._sides[side]).get(path)
        if old is not None and side == "folder":
            (self._sides[side] / path).unlink()
        elif old is not None:
            self._memory.notes.remove(path, version=edits.digest(old))
        self.current.discard(old or "")

    @rule(lose=st.booleans())
    def pull(self, lose: bool) -> None:
        if lose:
            (self._sides["folder"] / MANIFEST).unlink(missing_ok=True)
        self._exchange.pull()

    @rule()
    def push(self) -> None:
        self._exchange.push()

    @invariant()
    def no_version_is_lost(self) -> None:
        kept = {text for root in self._sides.values() for text in notes(root).values()}
        assert self.current <= kept

    def teardown(self) -> None:
        self._exchange.push()
        self._exchange.pull()
        self._exchange.push()
        assert notes(self._sides["memory"]) == notes(self._sides["folder"])
        self.no_version_is_lost()
        self._memory.close()
        self._temporary.cleanup()


_agents = itertools.count()


def test_any_edits_on_both_sides_lose_no_version() -> None:
    run_state_machine_as_test(
        Exchange, settings=hypothesis.settings(max_examples=25, stateful_step_count=12, deadline=None)
    )


@pytest.mark.integration
def test_any_edits_on_both_sides_lose_no_version_on_postgres(postgres: PostgresCluster) -> None:
    class OnPostgres(Exchange):
        overrides: ClassVar[dict[str, object]] = {"store.url": postgres.url, "store.tenant": "exchange"}

    run_state_machine_as_test(
        OnPostgres, settings=hypothesis.settings(max_examples=5, stateful_step_count=10, deadline=None)
    )


def test_a_removal_by_the_whole_path_keeps_the_folder_of_the_notes(tmp_path: Path) -> None:
    real = tmp_path / "empty" / "real"
    write(real, "memory/a.md", "A")
    (tmp_path / "link").symlink_to(real, target_is_directory=True)
    side = NoteSide(Workspace(tmp_path / "link"), lambda: None, lambda: True)
    side.remove(str(real / "memory/a.md"), edits.digest("A"))
    assert real.is_dir()
