"""An engine with scripted answers, and a clock that tests move."""

from __future__ import annotations

import threading
from collections.abc import Callable

from memoriter.records import Answer, Excerpt, Explanation, Hit, Query, Status, SyncReport


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def hit(path: str = "memory/a.md", snippet: str = "text", start: int = 1, end: int = 1) -> Hit:
    return Hit(path, start, end, 0.5, snippet, "memory", f"{path}#L{start}-L{end}", Explanation("", ()))


class StubEngine:
    """Answers every search with its name, until `error` is set."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: BaseException | None = None
        self.closed = 0
        self.searches = 0
        self.marked = 0
        self.started = 0
        self.purged = 0
        self.before_search: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    def search(self, query: Query) -> Answer:
        with self._lock:
            self.searches += 1
        self.before_search()
        if self.error:
            raise self.error
        return Answer((hit(),), provider=self.name, model="stub")

    choice = None
    index = None
    knows_notes = False

    def count_stale(self) -> int | None:
        return None

    def purge(self) -> None:
        self.purged += 1

    def read_file(self, rel_path: str, from_line: int = 1, lines: int | None = None) -> Excerpt:
        return Excerpt(rel_path, self.name, from_line, from_line, 1)

    def status(self, *, deep: bool = False) -> Status:
        return Status(self.name, "", 0, 0, 0, self.name, "stub", "none", "", 0)

    def sync(self, **_: object) -> SyncReport:
        return SyncReport(degraded=self.name)

    def mark_changed(self) -> None:
        self.marked += 1

    def start(self) -> None:
        self.started += 1

    def probe_embedding(self) -> str | None:
        return None

    def probe_vector(self) -> str | None:
        return str(self.error) if self.error else None

    def close(self) -> None:
        self.closed += 1


class Maker:
    """Creates and records engines of one name. `error` makes the next creation fail."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: Exception | None = None
        self.created: list[StubEngine] = []

    def __call__(self) -> StubEngine:
        if self.error:
            raise self.error
        self.created.append(StubEngine(self.name))
        return self.created[-1]
