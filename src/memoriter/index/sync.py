"""Sync: bring the index up to date with the files.

A sync lists notes and transcripts by stat. It reads and hashes only files that may have changed, and only the growth
of a transcript. It writes groups of whole documents: first the vectors, which are stored batch by batch, then the
rows. After an interruption the next sync continues from there. A rebuild keeps the old rows and replaces them in one
transaction, so that a search never sees a half-built index.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from memoriter import logs
from memoriter.errors import LockTimeout, SourceError, StoreBroken, StoreError, StoreLocked
from memoriter.files.locks import file_lock
from memoriter.notes.chunking import CHUNKER_VERSION, chunk_markdown, chunk_passages
from memoriter.records import Chunk, Document, FoundFile, Problem, Progress, ProgressCallback, SyncReport
from memoriter.store import FileRow, Index
from memoriter.text import TOKENIZER_VERSION

if TYPE_CHECKING:
    from memoriter.embedding.cache import Cached
    from memoriter.files.scan import Scan
    from memoriter.notes.workspace import Workspace
    from memoriter.sessions.transcripts import Transcripts

log = logs.get("index")

#: Chunks of a group that is embedded and written together: enough for full batches, few enough for memory.
GROUP_CHUNKS = 256

#: A file that changed this recently may change again without a new timestamp, so it is compared again.
UNSETTLED_NS = 2_000_000_000

#: A light sync, for which a search waits, embeds at most this many seconds. Other chunks are found by keyword.
MAX_LIGHT_SYNC_S = 2.0

#: Chunks of one job of a batch API.
JOB_CHUNKS = 10_000

Read = tuple[Document, list[Chunk]]


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules that turn files into rows. After a change of the signature every row is rebuilt."""

    tokens: int = 512
    overlap: int = 64
    target: int = 16
    #: The oldest unused vectors are deleted above this size, about 150,000 chunks of 768 dimensions.
    cache_limit_bytes: int = 512 << 20

    @property
    def signature(self) -> str:
        return f"chunker {CHUNKER_VERSION} ({self.tokens}/{self.overlap}/{self.target}), tokenizer {TOKENIZER_VERSION}"


class Backlog(NamedTuple):
    """The files that differ from the index by their stat."""

    files: int
    #: The maximum number of bytes to read.
    bytes: int
    #: Files that were indexed right after they changed. A sync only hashes them again.
    unsettled: int = 0


@dataclass(slots=True)
class _Tally:
    """The counts and problems of one sync so far."""

    #: Paths.
    changed: set[str] = field(default_factory=set)
    unchanged: int = 0
    removed: int = 0
    embedded: int = 0
    cached: int = 0
    rebuilt: bool = False
    degraded: str | None = None
    unreadable: dict[str, Problem] = field(default_factory=dict)
    remarks: dict[str, Problem] = field(default_factory=dict)


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
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.workspace = workspace
        self.sessions = sessions
        self.index = index
        self.preferred = embedder
        self.fallback = fallback
        #: The one in use. It changes only within a sync, and only one sync runs at a time.
        self.embedder = embedder
        self.rules = rules or Rules()
        #: Identifies the workspace of the rows.
        self._root = str(workspace.root.resolve())
        self._clock = clock
        self._stop: Callable[[], None] = lambda: None
        #: When a light sync stops starting batches.
        self._ends: float | None = None
        #: The error of the embedder in the previous run.
        self._failure: str | None = None

    def sync(
        self,
        *,
        force: bool = False,
        verify: bool = False,
        light: bool = False,
        batch: bool = False,
        wait_s: float = 600.0,
        progress: ProgressCallback | None = None,
        stop: Callable[[], None] | None = None,
    ) -> SyncReport:
        """Bring the index up to date. ``verify`` checks it for damage first.

        ``light`` uses the embedder whose vectors are in the index, and leaves a change of embedders to a later sync.
        ``batch`` uses the batch API of the provider, if it has one. ``stop`` is called between batches and may raise
        to end the sync. The next one continues.

        Raises `StoreLocked` when another process is still syncing after ``wait_s``.
        """
        on_progress = progress or (lambda _: None)
        with self._locked(wait_s):
            started = time.perf_counter()
            self._stop = stop or (lambda: None)
            self._ends = time.monotonic() + MAX_LIGHT_SYNC_S if light else None
            self.embedder = self.active_embedder() if light else self.preferred
            try:
                report = self._run(force, verify or self._was_interrupted(), on_progress, batch)
            except StoreBroken as broken:
                log.warning("the index is damaged and is rebuilt: %s", broken)
                self.index.heal(str(broken))
                report = self._run(force=False, verify=False, progress=on_progress)
            if report.degraded and not light:
                report = self._with_fallback(report, on_progress)
            return replace(report, seconds=time.perf_counter() - started, healed=self.index.healed)

    def active_embedder(self) -> Cached | None:
        """Return the embedder whose vectors the rows have, or None if it is neither the preferred nor the fallback."""
        model = self.index.meta("model")
        if not model:
            return self.preferred
        embedders = (self.preferred, self.fallback)
        return next((item for item in embedders if item and str(item.identity) == model), None)

    def _with_fallback(self, failed: SyncReport, progress: ProgressCallback) -> SyncReport:
        """Compute vectors with the fallback after the preferred embedder has failed."""
        if self.fallback is None or self.embedder is self.fallback:
            return failed
        why, self.embedder = self._failure, self.fallback
        report = self._run(force=False, verify=False, progress=progress)
        if report.degraded:
            return replace(report, degraded=f"{failed.degraded}. The fallback fails too: {report.degraded}")
        sentence = f"The vectors of the fallback ({self._model}) are used: {why}"
        self.index.set_meta(instead=sentence)
        return replace(report, embedded=report.embedded + failed.embedded, degraded=sentence)

    @property
    def _model(self) -> str:
        return str(self.embedder.identity) if self.embedder else ""

    def count_stale(self) -> int:
        """Count the files that differ from the index by their stat. A file that was just indexed does not count."""
        backlog = self.backlog()
        return backlog.files - backlog.unsettled

    def backlog(self) -> Backlog:
        """Return the files that differ from the index by their stat."""
        known = self.index.files()
        files = self._scan().files
        deleted = len(known.keys() - {found.path for found in files})
        changed = [found for found in files if not _same_stat(found, known.get(found.path))]
        return Backlog(
            files=deleted + len(changed),
            bytes=sum(_growth(found, known.get(found.path)) for found in changed),
            unsettled=sum(_is_unsettled(found, known.get(found.path)) for found in changed),
        )

    @property
    def is_foreign(self) -> bool:
        """Whether the rows belong to another workspace, so that they must not answer."""
        return self.index.meta("workspace") not in (None, self._root)

    @property
    def knows_notes(self) -> bool:
        """Whether the index has notes of this workspace."""
        return self.index.meta("workspace") == self._root and any(
            row.source == "memory" for row in self.index.files().values()
        )

    # ---- one run ----------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self, wait_s: float) -> Iterator[None]:
        lock = self.index.path.with_name("sync.lock")
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(lock, wait_s))
            except LockTimeout:
                raise StoreLocked(
                    f"Another process is indexing this workspace (lock {lock}). Try again when it has finished."
                ) from None
            except OSError as error:
                raise StoreError(f"Cannot lock {lock}: {error.strerror or error}.") from error
            yield

    def _scan(self) -> Scan:
        """List the files. Raises `SourceError` if the workspace is missing, for example on an unmounted volume."""
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
        return replace(notes, files=files, problems=problems)

    def _was_interrupted(self) -> bool:
        return self.index.meta("syncing") == "yes"

    def _run(self, force: bool, verify: bool, progress: ProgressCallback, batch: bool = False) -> SyncReport:
        if verify and (damage := self.index.check(deep=False)):
            raise StoreBroken("; ".join(damage))
        scan = self._scan()
        tally = _Tally(remarks={problem.path: problem for problem in scan.problems})
        known = self.index.files()
        self.index.set_meta(syncing="yes")
        if batch:
            self._by_job(scan.files, known, tally, progress)
        if force or self._must_rebuild(known):
            self._rebuild(scan.files, known, tally, progress)
        else:
            self._update(scan.files, known, tally, progress)
        return self._finish(tally)

    def _must_rebuild(self, known: Mapping[str, FileRow]) -> bool:
        """Return whether old rows cannot be mixed with new ones: other chunking, tokens or embedder."""
        if not known:
            return False
        other_model = self.embedder is not None and self.index.meta("model") not in (None, "", self._model)
        return other_model or self._is_outdated

    @property
    def _is_outdated(self) -> bool:
        """Whether the rows are invalid, whatever vectors they have."""
        return self.is_foreign or self.index.meta("signature") != self.rules.signature

    def _update(
        self,
        files: Sequence[FoundFile],
        known: Mapping[str, FileRow],
        tally: _Tally,
        progress: ProgressCallback,
    ) -> None:
        stale = self.index.stale(self._model) if self.embedder and not tally.degraded else set()
        due = [f for f in files if f.path in stale or not _same_stat(f, known.get(f.path))]
        tally.unchanged = len(files) - len(due)
        for group in self._groups(due, tally, progress, known=known, stale=stale):
            self._embed(group, tally)
            self._write(group, tally)
        deleted = known.keys() - {found.path for found in files}
        tally.removed = self.index.remove(deleted | (known.keys() & tally.unreadable.keys()))

    def _rebuild(
        self,
        files: Sequence[FoundFile],
        known: Mapping[str, FileRow],
        tally: _Tally,
        progress: ProgressCallback,
    ) -> None:
        """Embed everything, then replace all rows in one transaction. Readers see the old ones until the commit."""
        if self.embedder:
            for group in self._groups(files, _Tally(), progress, stage="embed"):
                self._embed(group, tally)
                if tally.degraded and not self._is_outdated:
                    # Only the embedder has changed, and it fails: old rows are better than rows without vectors.
                    if self.fallback is None or self.embedder is self.fallback:
                        self._update(files, known, tally, progress)
                    return
        tally.rebuilt = True
        with self.index.transaction():
            self.index.clear()
            for group in self._groups(files, tally, progress):
                self._write(group, tally)
        tally.removed = len(known.keys() - {found.path for found in files})

    def _groups(
        self,
        files: Iterable[FoundFile],
        tally: _Tally,
        progress: ProgressCallback,
        *,
        stage: str = "write",
        known: Mapping[str, FileRow] | None = None,
        stale: set[str] | None = None,
    ) -> Iterator[list[Read]]:
        """Read and chunk the files. Yield groups of whole documents."""
        files = list(files)
        group: list[Read] = []
        size = 0
        for number, found in enumerate(files, 1):
            row = (known or {}).get(found.path)
            if row and found.path in (stale or ()):
                indexed = self._load_indexed_transcript(row)
                group += indexed
                size += sum(len(chunks) for _, chunks in indexed)
                row = row if row.state else None
            for document in self._read(found, row, tally):
                if not self._is_known(document, row, tally):
                    chunks = self._chunk(document)
                    group.append((document, chunks))
                    size += max(1, len(chunks))
                if size >= GROUP_CHUNKS:
                    yield group
                    group, size = [], 0
            progress(Progress(stage, number, len(files), found.path))
        if group:
            yield group

    def _load_indexed_transcript(self, row: FileRow) -> list[Read]:
        """Return a transcript as it is in the index if only vectors are missing, since reading it again is slow."""
        if not row.state:
            return []
        stat = (row.sha256, row.mtime_ns, row.size)
        return [(Document(row.path, row.source, "", *stat, state=row.state), self.index.chunks_of(row.path))]

    def _read(self, found: FoundFile, row: FileRow | None, tally: _Tally) -> Iterator[Document]:
        """Yield the document of a file, or slices of the growth of a transcript."""
        try:
            for document in self._documents(found, row):
                if document.note:
                    tally.remarks[found.path] = Problem(found.path, document.note)
                unsettled = abs(self._clock() * 1e9 - document.mtime_ns) < UNSETTLED_NS
                yield replace(document, mtime_ns=0) if unsettled else document
        except SourceError as error:
            tally.unreadable[found.path] = Problem(found.path, str(error))

    def _documents(self, found: FoundFile, row: FileRow | None) -> Iterable[Document]:
        if found.source == "sessions" and self.sessions:
            return self.sessions.read(found, row.state if row else "")
        return [self.workspace.read(found)]

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

    def _embed(self, group: Sequence[Read], tally: _Tally) -> None:
        """Add the vectors of the group to the cache. After the first failure only keywords are indexed."""
        if self.embedder is None or tally.degraded:
            return
        if self._ends is not None and time.monotonic() > self._ends:
            tally.degraded = "embedding takes longer than a search waits"
            return
        retry = self._ends is None
        result = self.embedder.ensure(_texts(group), lambda _: self._stop(), retry=retry)
        tally.embedded += result.embedded
        tally.cached += result.cached
        tally.degraded = result.error

    def _by_job(
        self,
        files: Sequence[FoundFile],
        known: Mapping[str, FileRow],
        tally: _Tally,
        progress: ProgressCallback,
    ) -> None:
        """Fill the cache through the batch API of the provider in large jobs, before the sync itself."""
        if self.embedder is None or self.embedder.jobs is None:
            return
        everything = self._must_rebuild(known)
        stale = self.index.stale(self._model)
        due = [f for f in files if everything or f.path in stale or not _same_stat(f, known.get(f.path))]
        wanted: dict[str, str] = {}
        read = {} if everything else known
        for group in self._groups(due, _Tally(), lambda _: self._stop(), known=read, stale=stale):
            wanted |= _texts(group)
            if len(wanted) >= JOB_CHUNKS:
                self._embed_by_job(wanted, tally, progress)
                wanted = {}
        self._embed_by_job(wanted, tally, progress)

    def _embed_by_job(self, wanted: dict[str, str], tally: _Tally, progress: ProgressCallback) -> None:
        if self.embedder is None or tally.degraded:
            return
        result = self.embedder.ensure(wanted, progress, by_job=True)
        tally.embedded += result.embedded
        tally.cached -= result.embedded  # the sync that follows counts them as cached
        tally.degraded = result.error

    def _write(self, group: Sequence[Read], tally: _Tally) -> None:
        identity = self.embedder.identity if self.embedder else None
        with self.index.transaction():
            for document, chunks in group:
                self.index.replace(document, chunks, identity=identity)
        tally.changed |= {document.path for document, _ in group}

    def _finish(self, tally: _Tally) -> SyncReport:
        self._failure = tally.degraded
        self.index.prune(self.rules.cache_limit_bytes)
        marks = {"workspace": self._root, "signature": self.rules.signature}
        marks |= {"last_sync": repr(self._clock()), "syncing": "no"}
        if self.embedder:
            if not tally.degraded or tally.rebuilt:
                marks |= {"model": self._model, "recipe": self.embedder.recipe}
                marks |= {"instead": ""} if self.embedder is self.preferred else {}
            self.index.refresh(self.embedder.identity)
        self.index.set_meta(**marks)
        counts = self.index.counts(self._model)
        pending = counts.chunks - counts.embedded if self.embedder else 0
        if self.embedder:
            self.index.set_meta(pending=str(pending))
        degraded = f"{pending} chunks have no vector yet: {tally.degraded}" if tally.degraded else None
        if self.embedder and (problem := self.index.vector_problem):
            degraded = f"{degraded} {problem}" if degraded else problem
        problems = sorted({**tally.remarks, **tally.unreadable}.values(), key=lambda problem: problem.path)
        return SyncReport(
            files=counts.files,
            chunks=counts.chunks,
            changed=len(tally.changed),
            unchanged=tally.unchanged,
            removed=tally.removed,
            failed=len(tally.unreadable),
            embedded=tally.embedded,
            cached=tally.cached,
            pending=pending,
            rebuilt=tally.rebuilt,
            problems=tuple(problems),
            degraded=degraded,
        )


def _texts(group: Sequence[Read]) -> dict[str, str]:
    """Return the texts of a group by hash."""
    return {chunk.hash: chunk.embedding_text for _, chunks in group for chunk in chunks}


def _growth(found: FoundFile, row: FileRow | None) -> int:
    grew = row is not None and found.source == "sessions" and found.size >= row.size
    return found.size - row.size if row and grew else found.size


def _same_stat(found: FoundFile, row: FileRow | None) -> bool:
    return row is not None and (row.mtime_ns, row.size) == (found.mtime_ns, found.size)


def _is_unsettled(found: FoundFile, row: FileRow | None) -> bool:
    return row is not None and row.mtime_ns == 0 and row.size == found.size
