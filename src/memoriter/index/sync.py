"""Sync: bring the index up to date with the files.

A sync lists notes and transcripts by stat. It reads and hashes only files that may have changed, and only the growth
of a transcript. It writes groups of whole documents with their keywords first, and computes missing vectors afterwards
(`vectors`). After an interruption the next sync continues from there. A rebuild replaces all rows in one transaction,
so that a search never sees a half-built index.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from memoriter.errors import IndexBroken, LockTimeout, SourceError, StoreError, StoreLocked
from memoriter.files import shared
from memoriter.files.shared import UNSETTLED_NS, Snapshot
from memoriter.index.vectors import ChunkVectors, Filled
from memoriter.notes.chunking import Rules, chunk_markdown, chunk_passages
from memoriter.records import (
    CaughtUp,
    Chunk,
    Document,
    FoundFile,
    Problem,
    Progress,
    ProgressCallback,
    SyncBudget,
    SyncReport,
)
from memoriter.sentences import join
from memoriter.store import FileRow, Index

if TYPE_CHECKING:
    from memoriter.embedding.cache import Cached
    from memoriter.files.scan import Scan
    from memoriter.notes.workspace import Workspace
    from memoriter.sessions.transcripts import Transcripts

#: Chunks of a group that is written together: few enough for memory.
GROUP_CHUNKS = 256

#: A search does not wait until more than this is read: a transcript that has grown, or all files after an update.
MAX_LIGHT_GROWTH = 8 * 1024 * 1024

#: More changed files than this are indexed newest first, if the time is limited.
MANY_FILES = 200

Read = tuple[Document, list[Chunk]]


@dataclass(slots=True)
class _Tally:
    """The counts and problems of one sync so far."""

    progress: ProgressCallback
    #: Called between files. May raise to end the sync.
    stop: Callable[[], None]
    #: When a sync with a budget stops reading files.
    ends: float | None = None
    #: Paths.
    changed: set[str] = field(default_factory=set)
    unchanged: int = 0
    removed: int = 0
    #: Changed files that were not read, because the time was up.
    waiting: int = 0
    cached: int = 0
    rebuilt: bool = False
    unreadable: dict[str, Problem] = field(default_factory=dict)
    remarks: dict[str, Problem] = field(default_factory=dict)
    #: What is remarkable about each file that was read; None if nothing is.
    notes: dict[str, str | None] = field(default_factory=dict)
    #: Report remarks about unchanged files too.
    verify: bool = False

    @property
    def is_late(self) -> bool:
        return self.ends is not None and time.monotonic() > self.ends


class Indexer:
    """Syncs one index with one workspace and its transcripts."""

    def __init__(
        self,
        workspace: Workspace,
        index: Index,
        embedder: Cached | None,
        *,
        fallback: Cached | None = None,
        sessions: Transcripts | None = None,
        rules: Rules | None = None,
    ) -> None:
        self.workspace = workspace
        self.sessions = sessions
        self.index = index
        self.vectors = ChunkVectors(index, embedder, fallback)
        self.rules = rules or Rules()
        #: The stats of all files at the last sync that left none out.
        self.snapshot = Snapshot.none(workspace.root)
        #: Identifies the workspace of the rows.
        self._root = workspace.name

    def sync(
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        vectors_s: float | None = None,
        wait_s: float = 600.0,
        progress: ProgressCallback | None = None,
        stop: Callable[[], None] | None = None,
    ) -> SyncReport:
        """Bring the index up to date. ``verify`` checks it for damage first.

        ``batch`` uses the batch API of the provider, if it has one. With ``vectors_s``, vectors are computed for about
        so many seconds, and with the embedder whose vectors the rows have. ``stop`` is called between files and batches
        and may raise to end the sync. The next one continues.

        Raises `StoreLocked` when another process is still syncing after ``wait_s``.
        """
        started = time.perf_counter()

        def run() -> SyncReport:
            tally = _Tally(progress or (lambda _: None), stop or (lambda: None))
            self._sync_rows(tally, wait_s, force=force, verify=verify)
            if vectors_s is None:
                filled = self.vectors.fill(
                    by_job=batch, wait_s=wait_s, progress=tally.progress, stop=tally.stop
                )
            else:
                filled = self.vectors.fill_some(vectors_s, estimate=True)
            self._refresh(tally, filled, always=verify)
            if verify and self.index.keeps_deleted:
                self.index.scrub()
            return self._report(tally, filled)

        return replace(self.index.healing(run), seconds=time.perf_counter() - started)

    def catch_up(self, budget: SyncBudget) -> CaughtUp:
        """Index as many changes as fit into a time budget, for a search: the newest files first.

        Keywords come before vectors. The vectors are those of the embedder whose vectors the rows have; a change of
        embedders is left to a sync.
        """

        def run() -> CaughtUp:
            tally = _Tally(lambda _: None, lambda: None, ends=time.monotonic() + budget.rows_s)
            if not self.snapshot.is_current(self.index.meta("last_sync")):
                self._sync_rows(tally, budget.wait_s)
            filled = self.vectors.fill_some(budget.others_s, paths=tally.changed, paths_s=budget.vectors_s)
            self._refresh(tally, filled)
            return CaughtUp(tally.waiting, tally.waiting + tally.unchanged + len(tally.changed))

        return self.index.healing(run)

    def count_stale(self) -> int:
        """Count the files that differ from the index by their stat, without those just indexed or unreadable."""
        known, unreadable = self.index.files(), self.unreadable()
        files = [found for found in self._scan().files if found.path in known or found.path not in unreadable]
        rows = [(found, known.get(found.path)) for found in files]
        changed = sum(not _same_stat(*pair) and not _is_unsettled(*pair) for pair in rows)
        return changed + len(known.keys() - {found.path for found in files})

    def unreadable(self) -> dict[str, str]:
        """Return the reason for each file that the last sync could not read, by path."""
        return self._stored("unreadable")

    @property
    def knows_notes(self) -> bool:
        """Whether the index has notes of this workspace."""
        return self.index.meta("workspace") == self._root and any(
            row.source == "memory" for row in self.index.files().values()
        )

    # ---- one run ----------------------------------------------------------------------------------------------

    def _scan(self) -> Scan:
        """List the files. Raises `SourceError` if the workspace is missing, for example on an unmounted volume."""
        shared.refresh(self.workspace.root)
        if not self.workspace.root.is_dir():
            mount = " Mount its volume, or" if self.knows_notes else " Either"
            raise SourceError(
                f"The workspace {self.workspace.root} is not a folder.{mount} create it with `memoriter init`,"
                " or choose another one with --workspace."
            )
        notes = self.workspace.scan()
        if self.sessions is None:
            return notes
        sessions = self.sessions.scan()
        files, problems = notes.files + sessions.files, notes.problems + sessions.problems
        return replace(notes, files=files, problems=problems, folders={**notes.folders, **sessions.folders})

    def _was_interrupted(self) -> bool:
        return self.index.meta("syncing") == "yes"

    def _sync_rows(self, tally: _Tally, wait_s: float, *, force: bool = False, verify: bool = False) -> None:
        """Make files, chunks and keywords match the files on disk."""
        if tally.ends is not None and self._skip_if_up_to_date(tally):
            return
        with ExitStack() as stack:
            try:
                stack.enter_context(self.index.lock("sync", wait_s))
            except LockTimeout:
                raise StoreLocked(
                    f"Another process is indexing this workspace (index {self.index.place})."
                    " Try again when it has finished."
                ) from None
            if (verify or self._was_interrupted()) and (damage := self.index.check(deep=False)):
                raise IndexBroken("; ".join(damage))
            tally.verify = verify
            self._run(tally, force=force)

    def _run(self, tally: _Tally, *, force: bool) -> None:
        taken_at, scan = time.time(), self._scan()
        tally.remarks = {problem.path: problem for problem in scan.problems}
        known = self.index.files()
        if tally.ends is not None and self._is_rebuild_too_long(scan, known):
            tally.waiting = len(scan.files)
        else:
            self.index.set_meta(syncing="yes")
            if force or (known and self._is_outdated):
                self._rebuild(scan.files, known, tally)
            else:
                self._update(scan.files, known, tally)
            self._finish_rows(tally)
            self._store_remarks(tally, {found.path for found in scan.files})
        mark = self.index.meta("last_sync") or ""
        root = self.workspace.root
        self.snapshot = Snapshot.none(root) if tally.waiting else Snapshot.of(root, scan, taken_at, mark)

    def _skip_if_up_to_date(self, tally: _Tally) -> bool:
        """Return whether there is nothing to write, so that a search needs neither a lock nor a writable disk."""
        taken_at, mark = time.time(), self.index.meta("last_sync")
        if mark is None or self._is_outdated or self._was_interrupted():
            return False
        scan, known = self._scan(), self.index.files()
        if len(known) != len(scan.files) or not all(
            self._is_same(found, known.get(found.path), tally) for found in scan.files
        ):
            return False
        tally.unchanged = len(scan.files)
        self.snapshot = Snapshot.of(self.workspace.root, scan, taken_at, mark)
        return True

    def _is_same(self, found: FoundFile, row: FileRow | None, tally: _Tally) -> bool:
        """Return whether a file is as it was indexed. One that had just changed at that time is read again."""
        if _same_stat(found, row):
            return True
        if row is None or not _is_unsettled(found, row) or found.source != "memory":
            return False
        document = next(iter(self._read(found, row, tally)), None)
        if document is None or document.sha256 != row.sha256:
            return False
        if document.mtime_ns != row.mtime_ns:
            with suppress(StoreError):  # only the stat: on a disk that cannot be written it is compared again
                self.index.touch(document)
        return True

    def _is_rebuild_too_long(self, scan: Scan, known: Mapping[str, FileRow]) -> bool:
        """Return whether a search should answer from outdated rows instead of waiting until all are replaced."""
        if not known or not self.index.belongs_to(self._root) or not self._is_outdated:
            return False
        return sum(found.size for found in scan.files) > MAX_LIGHT_GROWTH

    @property
    def _is_outdated(self) -> bool:
        """Whether the rows are invalid: they belong to another workspace, or were made by other rules."""
        is_ours = self.index.belongs_to(self._root)
        return not is_ours or self.index.meta("signature") != self.rules.signature

    def _update(self, files: Sequence[FoundFile], known: Mapping[str, FileRow], tally: _Tally) -> None:
        due = [found for found in files if not _same_stat(found, known.get(found.path))]
        tally.unchanged = len(files) - len(due)
        if tally.ends is not None:
            huge = [found for found in due if _growth(found, known.get(found.path)) > MAX_LIGHT_GROWTH]
            tally.waiting = len(huge)
            due = [found for found in due if found not in huge]
            if len(due) > MANY_FILES:  # the time may not suffice for all
                due.sort(key=lambda found: -found.mtime_ns)
        embedder = self.vectors.current
        for group in self._groups(due, tally, known=known):
            self._write(group, tally, embedder)
        deleted = known.keys() - {found.path for found in files}
        gone = deleted | (known.keys() & tally.unreadable.keys())
        tally.removed = self.index.remove(gone) if gone else 0

    def _rebuild(self, files: Sequence[FoundFile], known: Mapping[str, FileRow], tally: _Tally) -> None:
        """Replace all rows in one transaction, with the vectors that the cache has. Readers see the old ones so far."""
        tally.rebuilt, tally.ends = True, None
        embedder = self.vectors.preferred
        with self.index.transaction():
            self.index.clear()
            for group in self._groups(files, tally):
                self._write(group, tally, embedder)
            if embedder is not None:
                self.index.set_meta(model=str(embedder.identity), recipe=embedder.recipe)
        tally.removed = len(known.keys() - {found.path for found in files})

    def _groups(
        self, files: Sequence[FoundFile], tally: _Tally, *, known: Mapping[str, FileRow] | None = None
    ) -> Iterator[list[Read]]:
        """Read and chunk the files until the time is up. Yield groups of whole documents."""
        group, size = list[Read](), 0
        for number, found in enumerate(files, 1):
            tally.stop()
            row = (known or {}).get(found.path)
            for document in self._read(found, row, tally):
                if not self._is_known(document, row, tally):
                    chunks = self._chunk(document)
                    group.append((document, chunks))
                    size += max(1, len(chunks))
                if size >= GROUP_CHUNKS:
                    yield group
                    group, size = [], 0
            tally.progress(Progress("write", number, len(files), found.path))
            if tally.is_late:
                tally.waiting += len(files) - number
                break
        if group:
            yield group

    def _read(self, found: FoundFile, row: FileRow | None, tally: _Tally) -> Iterator[Document]:
        """Yield the document of a file, or slices of the growth of a transcript."""
        try:
            if found.source == "sessions" and self.sessions:
                documents = self.sessions.read(found, row.state if row else "")
            else:
                documents = iter((self.workspace.read(found),))
            for document in documents:
                tally.notes[found.path] = document.note
                if document.note:
                    tally.remarks[found.path] = Problem(found.path, document.note)
                unsettled = abs(time.time() * 1e9 - document.mtime_ns) < UNSETTLED_NS
                yield replace(document, mtime_ns=0) if unsettled else document
        except SourceError as error:
            tally.unreadable[found.path] = Problem(found.path, str(error))

    def _chunk(self, document: Document) -> list[Chunk]:
        if document.source == "sessions":
            return chunk_passages(document, tokens=self.rules.tokens)
        return chunk_markdown(
            document, tokens=self.rules.tokens, overlap=self.rules.overlap, target=self.rules.target
        )

    def _is_known(self, document: Document, row: FileRow | None, tally: _Tally) -> bool:
        """Return whether only the stat of a file has changed, and store the new stat."""
        if row is None or row.sha256 != document.sha256:
            return False
        if (row.mtime_ns, row.size) != (document.mtime_ns, document.size):
            self.index.touch(document)
        tally.unchanged += 1
        return True

    def _write(self, group: Sequence[Read], tally: _Tally, embedder: Cached | None) -> None:
        identity = embedder.identity if embedder else None
        with self.index.transaction():
            for document, chunks in group:
                tally.cached += self.index.replace(document, chunks, identity=identity)
        tally.changed |= {document.path for document, _ in group}

    def _finish_rows(self, tally: _Tally) -> None:
        marks = {"workspace": self._root, "signature": self.rules.signature, "syncing": "no"}
        if tally.changed or tally.removed or tally.rebuilt:
            self.index.prune(self.rules.cache_limit_bytes)
        if not tally.waiting:
            marks["last_sync"] = repr(time.time())
        self.index.set_meta(**marks)

    def _store_remarks(self, tally: _Tally, paths: set[str]) -> None:
        """Store remarks about files, because an unchanged file is not read again."""
        failed = {path: problem.reason for path, problem in tally.unreadable.items()}
        notes = self._store("remarks", tally.notes, paths)
        self._store("unreadable", dict.fromkeys(tally.notes) | failed, paths)
        if tally.verify:
            tally.remarks |= {path: Problem(path, note) for path, note in notes.items()}

    def _store(self, key: str, new: Mapping[str, str | None], paths: set[str]) -> dict[str, str]:
        """Replace what is stored about files by what is new, and return it. None removes."""
        old = self._stored(key)
        texts = {path: text for path, text in {**old, **new}.items() if text and path in paths}
        if texts != old:
            self.index.set_meta(**{key: json.dumps(texts, ensure_ascii=False)})
        return texts

    def _stored(self, key: str) -> dict[str, str]:
        with suppress(ValueError):  # damaged: the next sync stores what it finds
            stored: dict[str, str] = json.loads(self.index.meta(key) or "{}")
            return stored
        return {}

    def _refresh(self, tally: _Tally, filled: Filled, *, always: bool = False) -> None:
        """Let the vector engine tidy its files if rows have changed, or ``always``: it also replaces damaged files."""
        embedder = self.vectors.current
        changed = tally.changed or tally.removed or tally.rebuilt or filled.embedded or filled.cached
        if embedder and (changed or always):
            self.index.refresh(embedder.identity)

    def _report(self, tally: _Tally, filled: Filled) -> SyncReport:
        embedder = self.vectors.current or self.vectors.preferred
        counts = self.index.counts(str(embedder.identity) if embedder else "")
        pending = counts.chunks - counts.embedded if embedder else 0
        problem = self.index.vector_problem if embedder else None
        problems = sorted({**tally.remarks, **tally.unreadable}.values(), key=lambda problem: problem.path)
        return SyncReport(
            files=counts.files,
            chunks=counts.chunks,
            changed=len(tally.changed),
            unchanged=tally.unchanged,
            removed=tally.removed,
            failed=len(tally.unreadable),
            waiting=tally.waiting,
            embedded=filled.embedded,
            cached=tally.cached + filled.cached,
            pending=pending,
            remaining_s=filled.remaining_s,
            rebuilt=tally.rebuilt or filled.switched,
            problems=tuple(problems),
            degraded=join(filled.instead, filled.missing(pending, counts.chunks), problem),
            healed=self.index.healed,
        )


def _growth(found: FoundFile, row: FileRow | None) -> int:
    grew = row is not None and found.source == "sessions" and found.size >= row.size
    return found.size - row.size if row and grew else found.size


def _same_stat(found: FoundFile, row: FileRow | None) -> bool:
    return row is not None and (row.mtime_ns, row.size) == (found.mtime_ns, found.size)


def _is_unsettled(found: FoundFile, row: FileRow | None) -> bool:
    return row is not None and row.mtime_ns == 0 and row.size == found.size
