"""The watcher over real files, and its fallback on systems without watches (P10)."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoriter.notes.watch import Watcher, is_hidden


class ReportedChanges:
    """Collects the changes that a watcher reports, and waits for them."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.unspecific = 0
        self._condition = threading.Condition()

    def __call__(self, paths: frozenset[str]) -> None:
        with self._condition:
            self.paths |= paths
            self.unspecific += not paths
            self._condition.notify_all()

    def wait_until(self, condition: object, seconds: float = 20.0) -> bool:
        with self._condition:
            return self._condition.wait_for(condition, seconds)  # type: ignore[arg-type]


@pytest.fixture
def changes() -> ReportedChanges:
    return ReportedChanges()


@pytest.mark.requirement("E2")
def test_changes_below_a_folder_are_reported_and_hidden_ones_are_not(
    tmp_path: Path, changes: ReportedChanges
) -> None:
    deep, flat = tmp_path / "memory", tmp_path
    deep.mkdir()
    watcher = Watcher([deep], changes, flat=[flat])
    watcher.start()
    assert changes.wait_until(lambda: changes.unspecific >= 2), "both watches are active"
    (deep / ".note.md.tmp").write_text("x")
    (deep / "topic").mkdir()
    (deep / "topic/a.md").write_text("x")
    (flat / "MEMORY.md").write_text("x")
    assert changes.wait_until(lambda: str(flat / "MEMORY.md") in changes.paths)
    assert changes.wait_until(lambda: any("topic" in path for path in changes.paths))
    assert not any(".note" in path for path in changes.paths)
    watcher.stop()
    assert watcher.mode == "watching"
    assert not [thread for thread in threading.enumerate() if thread.name == "memoriter-watch"]


def test_a_folder_created_later_is_watched(tmp_path: Path, changes: ReportedChanges) -> None:
    folder = tmp_path / "later"
    watcher = Watcher([folder], changes)
    watcher.start()
    folder.mkdir()
    assert changes.wait_until(lambda: changes.unspecific >= 1)
    (folder / "a.md").write_text("x")
    assert changes.wait_until(lambda: str(folder / "a.md") in changes.paths)
    watcher.stop()


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "OS file watch limit reached"), RuntimeError("too many")]
)
def test_without_watches_the_watcher_polls_and_says_so(
    tmp_path: Path, changes: ReportedChanges, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def native(*paths: object, **settings: object) -> Iterator[set[tuple[object, str]]]:
        raise error
        yield set()

    watcher = Watcher([tmp_path], changes, poll_s=0.01, native=native)
    watcher.start()
    assert changes.wait_until(lambda: changes.unspecific >= 3)
    watcher.stop()
    assert watcher.mode == "polling"
    assert "They are checked every 0.01 s instead" in str(watcher.note)
    assert "cannot be watched" in caplog.text


def test_only_names_below_the_watched_folder_make_a_file_hidden() -> None:
    root = Path("/data/.openclaw/memory")
    assert not is_hidden(f"{root}/note.md", [root])
    assert is_hidden(f"{root}/.git/note.md", [root])
    assert is_hidden(f"{root}/.note.swp", [root])
