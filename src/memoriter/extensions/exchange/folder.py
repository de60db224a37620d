"""Keep a folder of Markdown files in step with the notes of a memory, in both directions.

The folder remembers the digest of each note as both sides last had it. A note that only one side has changed since is
copied to the other. If both sides have changed it differently, both versions stay, one of them under another name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memoriter.errors import (
    EditConflict,
    LockTimeout,
    MemoriterError,
    NotFound,
    SourceError,
    WriteError,
    reason_of,
)
from memoriter.files import durable, edits, shared
from memoriter.files.locks import file_lock
from memoriter.memory import Memory, parts_of
from memoriter.notes.editing import NoteEditor
from memoriter.notes.watch import Watcher
from memoriter.notes.workspace import Workspace
from memoriter.records import Problem

MANIFEST = ".memoriter-notes.json"
#: How often both sides are compared while they are watched.
POLL_S = 10.0


ExchangeAction = Literal[
    "pulled", "pushed", "removed here", "removed there", "conflict", "to push", "to pull"
]


@dataclass(frozen=True, slots=True)
class ExchangedNote:
    """The outcome for one note."""

    path: str
    action: ExchangeAction
    #: Where the other version of a conflict is.
    copy: str | None = None


@dataclass(frozen=True, slots=True)
class ExchangeReport:
    """The result of a pull or push."""

    folder: Path
    notes: tuple[ExchangedNote, ...]
    #: Notes that are the same on both sides.
    same: int
    #: Files that were left out.
    problems: tuple[Problem, ...]

    @property
    def changed(self) -> bool:
        """Whether anything was copied or removed."""
        return any(note.action not in ("to push", "to pull") for note in self.notes)


@dataclass(frozen=True, slots=True)
class _Versions:
    """The digests of one note: as both sides last had it, in the memory, and in the folder. None: it is not there."""

    base: str | None
    memory: str | None
    folder: str | None


#: What was done with a note, and its digest as both sides have it now.
_Outcome = tuple[ExchangedNote | None, str | None]


class NoteSide:
    """The notes of one side: the memory's workspace or the folder, with the same rules for paths."""

    def __init__(
        self, workspace: Workspace, changed: Callable[[], None], was_there: Callable[[], bool]
    ) -> None:
        self._workspace = workspace
        self.root = workspace.root
        self._editor = NoteEditor(workspace, changed=changed, was_there=was_there)

    def digests(self) -> tuple[dict[str, str], list[Problem]]:
        """Return the digest of each note, and the files that cannot be exchanged."""
        found, problems = dict[str, str](), list[Problem]()
        scan = self._workspace.scan()
        problems += scan.problems
        for file in scan.files:
            try:
                text = edits.read(file.absolute)
                if text is not None:
                    found[file.path] = edits.digest(text)
            except (MemoriterError, OSError) as error:
                problems.append(Problem(file.path, reason_of(error)))
        return found, problems

    def text(self, path: str) -> str:
        """Return the text of a note."""
        return self._editor.text(path).text

    def put(self, path: str, text: str, version: str | None) -> None:
        """Replace a version of a note. Raises `EditConflict` if the note has another one."""
        self._editor.put(path, text, version=version)

    def remove(self, path: str, version: str) -> None:
        """Remove a version of a note, and the folders that are empty then."""
        self._editor.remove(path, version=version)
        if Path(path).is_absolute():  # of a folder elsewhere, which is not ours to tidy
            return
        with contextlib.suppress(OSError):
            for folder in list(Path(path).parents)[:-1]:
                (self._workspace.root / folder).rmdir()


class FolderExchange:
    """Exchanges the notes of a memory with a folder. ``owner`` names the memory, so that folders are not mixed up."""

    def __init__(self, memory: NoteSide, folder: NoteSide, root: Path, notes: str, owner: str) -> None:
        self._memory, self._folder = memory, folder
        self._root = root
        self._notes = notes
        self._owner = owner

    def pull(self) -> ExchangeReport:
        """Copy what has changed in the memory to the folder. Changes of the folder wait for `push`."""
        return self._run(self._pull)

    def push(self) -> ExchangeReport:
        """Copy what has changed in the folder to the memory. Changes of the memory wait for `pull`."""
        return self._run(self._push)

    def _run(self, step: Callable[[str, _Versions], _Outcome]) -> ExchangeReport:
        with self._locked():
            bases = self._read_manifest()
            memory, left_out = self._memory.digests()
            folder, problems = self._folder.digests()
            problems += left_out
            unreadable = {problem.path for problem in problems}
            notes, same = list[ExchangedNote](), 0
            try:
                for path in sorted({*bases, *memory, *folder} - unreadable):
                    versions = _Versions(bases.get(path), memory.get(path), folder.get(path))
                    if versions.memory == versions.folder:
                        base, note = versions.memory, None
                        same += base is not None
                    else:
                        note, base = self._attempt(step, path, versions, problems)
                    bases.pop(path, None)
                    bases |= {path: base} if base is not None else {}
                    notes += [note] if note else []
            finally:
                self._write_manifest(bases)
        return ExchangeReport(self._root, tuple(notes), same, tuple(problems))

    def _attempt(
        self,
        step: Callable[[str, _Versions], _Outcome],
        path: str,
        versions: _Versions,
        problems: list[Problem],
    ) -> _Outcome:
        try:
            return step(path, versions)
        except (EditConflict, NotFound):
            problems.append(Problem(path, "It was changed meanwhile. Run the command again."))
        except (WriteError, SourceError) as error:
            problems.append(Problem(path, str(error)))
        return None, versions.base

    def watch(
        self, on_result: Callable[[ExchangeReport | MemoriterError], None], stop: threading.Event
    ) -> None:
        """Keep both sides in step until ``stop`` is set. Report every change and every failure."""
        changed = threading.Event()
        sides = (self._root, self._memory.root)
        watcher = Watcher(sides, lambda _: changed.set())
        unfollow = shared.follow(self._memory.root, changed.set)
        watcher.start()
        try:
            while not stop.is_set():
                changed.clear()
                try:
                    for report in (self.push(), self.pull()):
                        if report.changed:
                            on_result(report)
                except MemoriterError as error:
                    on_result(error)
                # A change may be missed, as when a network file system reports none.
                _wait_for_either(changed, stop, POLL_S)
        finally:
            unfollow()
            watcher.stop()

    # ---- one note --------------------------------------------------------------------------------------------

    def _pull(self, path: str, note: _Versions) -> _Outcome:
        source, target = (self._memory, note.memory), (self._folder, note.folder)
        return self._copy(path, note.base, source, target, ("to push", "removed here", "pulled"))

    def _push(self, path: str, note: _Versions) -> _Outcome:
        source, target = (self._folder, note.folder), (self._memory, note.memory)
        return self._copy(path, note.base, source, target, ("to pull", "removed there", "pushed"))

    def _copy(
        self,
        path: str,
        base: str | None,
        source: tuple[NoteSide, str | None],
        target: tuple[NoteSide, str | None],
        actions: tuple[ExchangeAction, ExchangeAction, ExchangeAction],
    ) -> _Outcome:
        (here, new), (there, old), (waits, removed, copied) = source, target, actions
        if new == base or (new is None and old is not None and old != base):
            # Only the target has changed it, or the target's new words outlive a removal.
            return ExchangedNote(path, waits), base if new is not None else None
        if old in (base, None):
            if new is None:
                assert old is not None
                there.remove(path, old)
                return ExchangedNote(path, removed), None
            there.put(path, here.text(path), old)
            return ExchangedNote(path, copied), new
        copy = self._keep(there, path, here.text(path))
        # From now on, the target's version replaces the source's version, which the copy keeps.
        return ExchangedNote(path, "conflict", copy), new

    def _keep(self, side: NoteSide, path: str, text: str) -> str:
        """Keep a version of a note under another name, which is the same if the command is repeated."""
        stem = path.removesuffix(".md")
        inside = stem if "/" in stem or self._notes == "." else f"{self._notes}/{stem}"
        copy = f"{inside}.conflict-{edits.digest(text)[:8]}.md"
        try:
            side.put(copy, text, None)
        except EditConflict:
            if edits.digest(side.text(copy)) != edits.digest(text):
                raise
        return copy

    # ---- manifest --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with file_lock(self._root / f"{MANIFEST.removesuffix('.json')}.lock", 60.0):
                yield
        except OSError as error:
            raise WriteError(
                f"{self._root / MANIFEST} cannot be read or written: {reason_of(error)}. Notes that were copied "
                "are complete. Run the command again."
            ) from error
        except LockTimeout as error:
            raise WriteError(
                f"Another process exchanges notes with {self._root}. Try again later."
            ) from error

    def _read_manifest(self) -> dict[str, str]:
        try:
            stored = json.loads((self._root / MANIFEST).read_bytes())
            owner, files = stored["owner"], stored["files"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return {}  # missing or damaged: notes that differ become conflicts, and none is lost
        if owner != self._owner:
            raise WriteError(
                f"{self._root} holds notes of another memory. Choose another folder, or delete {MANIFEST} in it to "
                "join both; notes that differ are then kept twice."
            )
        return {str(path): str(digest) for path, digest in files.items()}

    def _write_manifest(self, bases: dict[str, str]) -> None:
        data = json.dumps(
            {"owner": self._owner, "files": bases}, ensure_ascii=False, indent=1, sort_keys=True
        )
        file = self._root / MANIFEST
        if not file.exists() or file.read_text("utf-8", "replace") != data:
            durable.write(file, data.encode("utf-8", "surrogateescape"))


def _wait_for_either(one: threading.Event, other: threading.Event, timeout_s: float) -> None:
    ends = time.monotonic() + timeout_s
    while not other.is_set() and time.monotonic() < ends and not one.wait(0.2):
        pass


def check_apart(workspace: Path, folder: Path) -> None:
    """Raise if the folder is the workspace, or one contains the other."""
    one, other = (Path(os.path.realpath(path)) for path in (workspace, folder))
    if one.is_relative_to(other) or other.is_relative_to(one):
        raise WriteError(
            f"{folder} belongs to the workspace {workspace}, so its notes are part of the memory already. "
            "Choose a folder outside of it."
        )


def owner_of(store: str, agent: str) -> str:
    """Return the name of a memory in the manifest of a folder, without its address."""
    return f"{agent}@{hashlib.sha256(store.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def exchange(memory: Memory, folder: Path | str) -> FolderExchange:
    """Return what keeps a folder of Markdown files in step with the notes of the workspace."""
    settings, parts = memory.settings, parts_of(memory)
    folder = Path(folder).expanduser().absolute()
    check_apart(settings.workspace, folder)
    durable.make_folder(folder)
    name = settings.files.folder
    notes = Workspace(settings.workspace, folder=name, name=settings.workspace_name)
    return FolderExchange(
        NoteSide(notes, memory.mark_changed, lambda: parts.knows_notes),
        NoteSide(Workspace(folder, folder=name), lambda: None, lambda: False),
        folder,
        name,
        owner_of(settings.store.name or settings.workspace_name, settings.agent),
    )
