"""Report changes of files.

Folders of notes and transcripts are watched recursively. The workspace itself is watched without its subfolders,
because it may be a large project. If the system cannot watch more files, the watcher polls instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Literal, cast

from memoriter import logs
from memoriter.background import Workers

log = logs.get("notes")

OnChange = Callable[[frozenset[str]], None]
"""Receive the changed paths. An empty set means that anything may have changed."""

Native = Callable[..., Iterator[set[tuple[object, str]]]]

#: How long `Watcher.stop` waits for the threads.
STOP_TIMEOUT_S = 10.0
#: Changes within this time are reported together.
_GATHER_MS = 200
#: How often missing folders are looked for.
_REFRESH_MS = 1000


class Watcher:
    """Watches folders in background threads until it is stopped."""

    def __init__(
        self,
        folders: Sequence[Path],
        on_change: OnChange,
        *,
        flat: Sequence[Path] = (),
        poll_s: float = 10.0,
        native: Native | None = None,
    ) -> None:
        #: The reason why the watcher polls, or None.
        self.note: str | None = None
        self._groups = ((tuple(folders), True), (tuple(flat), False))
        self._on_change = on_change
        self._poll_s = poll_s
        self._native = native
        self._stop = threading.Event()
        self._workers: Workers | None = None

    @property
    def mode(self) -> Literal["watching", "polling"]:
        """The method that detects changes."""
        return "polling" if self.note else "watching"

    def start(self) -> None:
        """Start the threads. Once they watch, they report that anything may have changed before."""
        self._workers = Workers("memoriter-watch", threads=len(self._groups))
        for folders, deep in self._groups:
            if folders:
                self._workers.submit(partial(self._run, folders, deep)).add_done_callback(_log_failure)

    def stop(self) -> None:
        """Stop all threads."""
        self._stop.set()
        if self._workers is not None:
            self._workers.close(STOP_TIMEOUT_S)

    def _run(self, folders: Sequence[Path], deep: bool) -> None:
        while not self._stop.is_set():
            present = _present(folders)
            if not present:
                self._stop.wait(_REFRESH_MS / 1000)
                continue
            try:
                self._watch(present, deep, lambda watched=present: _present(folders) == watched)  # type: ignore[misc]
            except (OSError, RuntimeError) as error:
                if _present(folders) == present:  # otherwise a folder was removed
                    self._poll(error)

    def _watch(self, present: Sequence[Path], deep: bool, still_right: Callable[[], bool]) -> None:
        """Report changes until the set of existing folders changes or the watcher stops."""
        watching = False
        for changes in self._changes(present, deep):
            if not watching:
                self._on_change(frozenset())
                watching = True
            self._report(changes, present)
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
            ignore_permission_denied=False,  # True would also hide that the system's limit is reached
        )

    def _report(self, changes: set[tuple[object, str]], roots: Sequence[Path]) -> None:
        paths = frozenset(path for _, path in changes if not is_hidden(path, roots))
        if paths:
            self._on_change(paths)

    def _poll(self, error: Exception) -> None:
        self.note = f"Files cannot be watched ({error}). They are checked every {self._poll_s:g} s instead."
        log.warning("%s", self.note)
        while not self._stop.wait(self._poll_s):
            self._on_change(frozenset())


def is_hidden(path: str, roots: Sequence[Path]) -> bool:
    """Return whether a name below a watched folder starts with a dot, as temporary files do."""
    for root in roots:
        place = Path(path)
        if place.is_relative_to(root):
            return any(part.startswith(".") for part in place.relative_to(root).parts)
    return False


def _log_failure(future: Future[None]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        log.error("watching files failed: %s", error, exc_info=error)


def _present(folders: Sequence[Path]) -> list[Path]:
    return [folder for folder in folders if folder.exists()]
