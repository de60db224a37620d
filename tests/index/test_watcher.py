"""The watcher over real files, and what it does where the system gives no watches (P10)."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoriter.notes.watch import Watcher, is_hidden


class Told:
    """Collects what a watcher tells, and waits for it."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.anything = 0
        self._news = threading.Condition()

    def __call__(self, paths: frozenset[str]) -> None:
        with self._news:
            self.paths |= paths
            self.anything += not paths
            self._news.notify_all()

    def until(self, condition: object, seconds: float = 20.0) -> bool:
        with self._news:
            return self._news.wait_for(condition, seconds)  # type: ignore[arg-type]


@pytest.fixture
def told() -> Told:
    return Told()


def test_changes_below_a_folder_are_told_and_hidden_ones_are_not(tmp_path: Path, told: Told) -> None:
    deep, flat = tmp_path / "memory", tmp_path
    deep.mkdir()
    watcher = Watcher([deep], told, flat=[flat])
    watcher.start()
    assert told.until(lambda: told.anything >= 2), "both watches stand"
    (deep / ".note.md.tmp").write_text("x")
    (deep / "topic").mkdir()
    (deep / "topic/a.md").write_text("x")
    (flat / "MEMORY.md").write_text("x")
    assert told.until(lambda: str(flat / "MEMORY.md") in told.paths)
    assert told.until(lambda: any("topic" in path for path in told.paths))
    assert not any(".note" in path for path in told.paths)
    watcher.stop()
    assert watcher.mode == "watching"
    assert not [thread for thread in threading.enumerate() if thread.name == "memoriter-watch"]


def test_a_folder_that_comes_later_is_watched_then(tmp_path: Path, told: Told) -> None:
    folder = tmp_path / "later"
    watcher = Watcher([folder], told)
    watcher.start()
    folder.mkdir()
    assert told.until(lambda: told.anything >= 1)
    (folder / "a.md").write_text("x")
    assert told.until(lambda: str(folder / "a.md") in told.paths)
    watcher.stop()


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "OS file watch limit reached"), RuntimeError("too many")]
)
def test_without_watches_it_looks_at_intervals_and_says_so(
    tmp_path: Path, told: Told, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def native(*paths: object, **settings: object) -> Iterator[set[tuple[object, str]]]:
        raise error
        yield set()

    watcher = Watcher([tmp_path], told, poll_s=0.01, native=native)
    watcher.start()
    assert told.until(lambda: told.anything >= 3)
    watcher.stop()
    assert watcher.mode == "polling"
    assert "They are checked every 0.01 s instead" in str(watcher.note)
    assert "cannot be watched" in caplog.text


def test_hidden_means_below_the_watched_folder() -> None:
    root = Path("/home/a/.openclaw/memory")
    assert not is_hidden(f"{root}/note.md", [root])
    assert is_hidden(f"{root}/.git/note.md", [root])
    assert is_hidden(f"{root}/.note.swp", [root])
