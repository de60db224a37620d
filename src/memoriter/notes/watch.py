"""Noticing that files changed. What to do about it, and when, is not decided here.

Folders of notes and transcripts are watched with all that is below them, the workspace itself only for its own files:
it may be a whole project. Where the system has no watches left to give, we say so and look at intervals instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, cast

from memoriter import logs

log = logs.get("sources")

Change = Callable[[frozenset[str]], None]
"""Told the changed paths; none are named when anything may have changed."""

Native = Callable[..., Iterator[set[tuple[object, str]]]]

_GATHER_MS = 200  #: changes that come together are told together
_REFRESH_MS = 1000  #: how soon a folder that was missing at first is watched


class Watcher:
    """Watches folders in threads of its own, until it is stopped."""

    def __init__(
        self,
        folders: Sequence[Path],
        on_change: Change,
        *,
        flat: Sequence[Path] = (),
        poll_s: float = 10.0,
        native: Native | None = None,
    ) -> None:
        self.note: str | None = None  #: in words, why it looks at intervals instead of watching
        self._places = ((tuple(folders), True), (tuple(flat), False))
        self._on_change = on_change
        self._poll_s = poll_s
        self._native = native
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def mode(self) -> Literal["watching", "polling"]:
        return "polling" if self.note else "watching"

    def start(self) -> None:
        """Begin. Once the watches stand, it is told that anything may have changed, for something may have before."""
        for folders, deep in self._places:
            if folders:
                thread = threading.Thread(target=self._run, args=(folders, deep), name="memoriter-watch")
                thread.daemon = True
                self._threads.append(thread)
                thread.start()

    def stop(self) -> None:
        """End all threads."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=10)
        self._threads = []

    def _run(self, folders: Sequence[Path], deep: bool) -> None:
        while not self._stop.is_set():
            present = _present(folders)
            if not present:
                self._stop.wait(_REFRESH_MS / 1000)
                continue
            try:
                self._watch(present, deep, lambda watched=present: _present(folders) == watched)  # type: ignore[misc]
            except (OSError, RuntimeError) as error:
                if _present(folders) == present:  # else a folder went away under our hands
                    self._poll(error)

    def _watch(self, present: Sequence[Path], deep: bool, still_right: Callable[[], bool]) -> None:
        """Tell of changes until the folders are others or the end has come."""
        standing = False
        for changes in self._changes(present, deep):
            if not standing:
                self._on_change(frozenset())
                standing = True
            self._tell(changes, present)
            if self._stop.is_set() or not still_right():
                return

    def _changes(self, present: Sequence[Path], deep: bool) -> Iterator[set[tuple[object, str]]]:
        native = self._native
        if native is None:
            import watchfiles

            native = cast("Native", watchfiles.watch)
        return native(
            *present,
            watch_filter=None,
            debounce=_GATHER_MS,
            stop_event=self._stop,
            rust_timeout=_REFRESH_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=deep,
            ignore_permission_denied=False,  # True would swallow the system's limit too
        )

    def _tell(self, changes: set[tuple[object, str]], roots: Sequence[Path]) -> None:
        paths = frozenset(path for _, path in changes if not is_hidden(path, roots))
        if paths:
            self._on_change(paths)

    def _poll(self, error: Exception) -> None:
        self.note = f"Files cannot be watched ({error}); they are looked at every {self._poll_s:g} s instead."
        log.warning("%s", self.note)
        while not self._stop.wait(self._poll_s):
            self._on_change(frozenset())


def is_hidden(path: str, roots: Sequence[Path]) -> bool:
    """Whether a name below the watched folder begins with a dot: editors' and our own temporary files do."""
    for root in roots:
        place = Path(path)
        if place.is_relative_to(root):
            return any(part.startswith(".") for part in place.relative_to(root).parts)
    return False


def _present(folders: Sequence[Path]) -> list[Path]:
    return [folder for folder in folders if folder.exists()]
