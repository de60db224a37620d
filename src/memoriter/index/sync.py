"""Make the index say what the files say.

A sync lists notes and transcripts by stat, reads and hashes only what may have changed (of a transcript that grew,
only the growth), and writes it in groups of whole documents: vectors first (each batch is kept as it comes), then
rows. Whatever interrupts it, the next sync goes on from there. A rebuild does the same beside the old rows and swaps
them in one transaction, so searches never see a half-built index.

Not its duty: where files come from (`sources`), where they are cut (`chunking`), what is stored how (`store`).
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

log = logs.get("indexing")

#: Chunks gathered before a group is embedded and written: enough for full batches, little enough to hold in memory.
GROUP_CHUNKS = 256

#: A file changed this recently may change again within its timestamp's grain, so its stat is not yet believed.
UNSETTLED_NS = 2_000_000_000

#: A light sync, for which a search waits, embeds no longer than this many seconds; the rest is found by keyword.
LIGHT_S = 2.0

#: Chunks gathered for one job of a batch API.
JOB_CHUNKS = 10_000

Read = tuple[Document, list[Chunk]]


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides how files become rows; another signature means that every row must be made again."""

    tokens: int = 512
    overlap: int = 64
    target: int = 16
    #: Bytes at which the oldest cached vectors are dropped: some 150,000 chunks of 768 dimensions.
    cache_limit_bytes: int = 512 << 20

    @property
    def signature(self) -> str:
        return f"chunker {CHUNKER_VERSION} ({self.tokens}/{self.overlap}/{self.target}), tokenizer {TOKENIZER_VERSION}"


class Backlog(NamedTuple):
    """What differs from the index by its stat: what a sync would have to look at."""

    files: int
    bytes: int  #: to be read, at most
    unsettled: int = 0  #: of the files, those that were indexed right after they changed: hashing them is all


@dataclass(slots=True)
class _Tally:
    """What one sync has seen so far."""

    changed: set[str] = field(default_factory=set)  #: paths
    unchanged: int = 0
    removed: int = 0
    embedded: int = 0
    cached: int = 0
    rebuilt: bool = False
    degraded: str | None = None
    unreadable: dict[str, Problem] = field(default_factory=dict)
    remarks: dict[str, Problem] = field(default_factory=dict)


class Indexer:
    """Keeps one index in step with one workspace, and with the transcripts beside it."""

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
        self.embedder = (
            embedder  #: the one in use; changes only within a sync, of which there is one at a time
        )
        self.rules = rules or Rules()
        self._place = str(workspace.root.resolve())  #: whose rows these are
        self._clock = clock
        self._stop: Callable[[], None] = lambda: None
        self._ends: float | None = None  #: when a light sync begins no more batches
        self._failure: str | None = None  #: of the embedder, in the run before

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
        """Bring the index up to date; ``verify`` looks for silent damage first.

        ``light``: only what changed, with the embedder whose vectors are in use; a change of embedders is left to a
        sync that has time. ``batch``: through the provider's batch API, where it has one. ``stop`` is called between
        batches and may raise to end the work, which the next sync goes on with.

        Raises `StoreLocked` when another process is still syncing after ``wait_s``.
        """
        report = progress or (lambda _: None)
        with self._alone(wait_s):
            started = time.perf_counter()
            self._stop = stop or (lambda: None)
            self._ends = time.monotonic() + LIGHT_S if light else None
            self.embedder = self.serving() if light else self.preferred
            try:
                done = self._run(force, verify or self._was_interrupted(), report, batch)
            except StoreBroken as broken:
                log.warning("the index was damaged and is rebuilt: %s", broken)
                self.index.heal(str(broken))
                done = self._run(force=False, verify=False, progress=report)
            if done.degraded and not light:
                done = self._with_fallback(done, report)
            return replace(done, seconds=time.perf_counter() - started, healed=self.index.healed)

    def serving(self) -> Cached | None:
        """The embedder whose vectors the rows have; None when that is neither of ours."""
        model = self.index.meta("model")
        if not model:
            return self.preferred
        ours = (self.preferred, self.fallback)
        return next((one for one in ours if one and str(one.identity) == model), None)

    def _with_fallback(self, failed: SyncReport, progress: ProgressCallback) -> SyncReport:
        """The preferred embedder failed: the fallback makes vectors of its own, under its own name."""
        if self.fallback is None or self.embedder is self.fallback:
            return failed
        why, self.embedder = self._failure, self.fallback
        done = self._run(force=False, verify=False, progress=progress)
        if done.degraded:
            return replace(done, degraded=f"{failed.degraded}; the fallback fails too: {done.degraded}")
        told = f"The fallback's vectors ({self._model}) are used: {why}"
        self.index.set_meta(instead=told)
        return replace(done, embedded=done.embedded + failed.embedded, degraded=told)

    @property
    def _model(self) -> str:
        return str(self.embedder.identity) if self.embedder else ""

    def count_stale(self) -> int:
        """Count the files that differ from the index by their stat. A file that was just indexed does not count."""
        backlog = self.backlog()
        return backlog.files - backlog.unsettled

    def backlog(self) -> Backlog:
        """How much differs from the index by its stat."""
        known = self.index.files()
        files = self._scan().files
        gone = len(known.keys() - {found.path for found in files})
        changed = [found for found in files if not _same_stat(found, known.get(found.path))]
        return Backlog(
            files=gone + len(changed),
            bytes=sum(_growth(found, known.get(found.path)) for found in changed),
            unsettled=sum(_is_unsettled(found, known.get(found.path)) for found in changed),
        )

    @property
    def is_foreign(self) -> bool:
        """Whether the rows are of another workspace than ours: they must not answer for it."""
        return self.index.meta("workspace") not in (None, self._place)

    @property
    def knows_notes(self) -> bool:
        """Whether there are rows of this workspace's notes."""
        return self.index.meta("workspace") == self._place and any(
            row.source == "memory" for row in self.index.files().values()
        )

    # ---- one run ----------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self, wait_s: float) -> Iterator[None]:
        lock = self.index.path.with_name("sync.lock")
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(lock, wait_s))
            except LockTimeout:
                raise StoreLocked(
                    f"Another process is still indexing this workspace (lock {lock}); try again when it is done."
                ) from None
            except OSError as error:
                raise StoreError(f"The lock {lock} cannot be taken: {error.strerror or error}.") from error
            yield

    def _scan(self) -> Scan:
        """List the files; a workspace that is away, on an unmounted disk perhaps, is no workspace without files."""
        if not self.workspace.root.is_dir():
            mount = " mount the volume that it lies on," if self.knows_notes else ""
            raise SourceError(
                f"The workspace {self.workspace.root} is not a folder;{mount} make it with `memoriter init`,"
                " or name another one with --workspace."
            )
        notes = self.workspace.scan()
        if self.sessions is None:
            return notes
        talks = self.sessions.scan()
        return replace(notes, files=notes.files + talks.files, problems=notes.problems + talks.problems)

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
        """Old rows cannot stand beside new ones: they were cut, tokenised or embedded by other rules."""
        if not known:
            return False
        other_model = self.embedder is not None and self.index.meta("model") not in (None, "", self._model)
        return other_model or self._is_outdated

    @property
    def _is_outdated(self) -> bool:
        """Whether the rows are wrong as they are, whatever vectors they have."""
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
        gone = (known.keys() - {found.path for found in files}) | (known.keys() & tally.unreadable.keys())
        tally.removed = self.index.remove(gone)

    def _rebuild(
        self,
        files: Sequence[FoundFile],
        known: Mapping[str, FileRow],
        tally: _Tally,
        progress: ProgressCallback,
    ) -> None:
        """Embed everything first, then swap all rows in one transaction: readers keep the old ones until the commit."""
        if self.embedder:
            for group in self._groups(files, _Tally(), progress, stage="embed"):
                self._embed(group, tally)
                if tally.degraded and not self._is_outdated:
                    # Only the embedder is new and it fails: the old rows are better than rows without vectors.
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
        """Read and cut the files, a group of whole documents at a time."""
        files = list(files)
        group: list[Read] = []
        size = 0
        for number, found in enumerate(files, 1):
            row = (known or {}).get(found.path)
            if row and found.path in (stale or ()):
                held = self._held(row)
                group += held
                size += sum(len(chunks) for _, chunks in held)
                row = row if row.state else None
            for document in self._read(found, row, tally):
                if not self._is_known(document, row, tally):
                    chunks = self._cut(document)
                    group.append((document, chunks))
                    size += max(1, len(chunks))
                if size >= GROUP_CHUNKS:
                    yield group
                    group, size = [], 0
            progress(Progress(stage, number, len(files), found.path))
        if group:
            yield group

    def _held(self, row: FileRow) -> list[Read]:
        """A transcript as the index holds it, when only vectors are missing: it may be a gigabyte to read again."""
        if not row.state:
            return []
        stat = (row.sha256, row.mtime_ns, row.size)
        return [(Document(row.path, row.source, "", *stat, state=row.state), self.index.chunks_of(row.path))]

    def _read(self, found: FoundFile, row: FileRow | None, tally: _Tally) -> Iterator[Document]:
        """The file's document; of a transcript, what it says beyond the row, in slices."""
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

    def _cut(self, document: Document) -> list[Chunk]:
        if document.source == "sessions":
            return chunk_passages(document, tokens=self.rules.tokens)
        return chunk_markdown(
            document, tokens=self.rules.tokens, overlap=self.rules.overlap, target=self.rules.target
        )

    def _is_known(self, document: Document, row: FileRow | None, tally: _Tally) -> bool:
        """The stat changed but the bytes did not: remember the new stat, touch nothing else."""
        if row is None or row.sha256 != document.sha256:
            return False
        if (row.mtime_ns, row.size) != (document.mtime_ns, document.size):
            self.index.touch(document)
        tally.unchanged += 1
        return True

    def _embed(self, group: Sequence[Read], tally: _Tally) -> None:
        """Make sure that the group's vectors are in the cache; after a first failure keywords must do."""
        if self.embedder is None or tally.degraded:
            return
        if self._ends is not None and time.monotonic() > self._ends:
            tally.degraded = "there is more to embed than a search waits for"
            return
        retry = self._ends is None
        done = self.embedder.ensure(_texts(group), lambda _: self._stop(), retry=retry)
        tally.embedded += done.embedded
        tally.cached += done.cached
        tally.degraded = done.error

    def _by_job(
        self,
        files: Sequence[FoundFile],
        known: Mapping[str, FileRow],
        tally: _Tally,
        progress: ProgressCallback,
    ) -> None:
        """Fill the cache through the provider's batch API, a large job at a time; the sync then finds it full."""
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
        done = self.embedder.ensure(wanted, progress, by_job=True)
        tally.embedded += done.embedded
        tally.cached -= done.embedded  # the sync that follows will take them for cached
        tally.degraded = done.error

    def _write(self, group: Sequence[Read], tally: _Tally) -> None:
        identity = self.embedder.identity if self.embedder else None
        with self.index.transaction():
            for document, chunks in group:
                self.index.replace(document, chunks, identity=identity)
        tally.changed |= {document.path for document, _ in group}

    def _finish(self, tally: _Tally) -> SyncReport:
        self._failure = tally.degraded
        self.index.prune(self.rules.cache_limit_bytes)
        marks = {"workspace": self._place, "signature": self.rules.signature}
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
    """What is embedded of a group, by hash."""
    return {chunk.hash: chunk.embedding_text for _, chunks in group for chunk in chunks}


def _growth(found: FoundFile, row: FileRow | None) -> int:
    grew = row is not None and found.source == "sessions" and found.size >= row.size
    return found.size - row.size if row and grew else found.size


def _same_stat(found: FoundFile, row: FileRow | None) -> bool:
    return row is not None and (row.mtime_ns, row.size) == (found.mtime_ns, found.size)


def _is_unsettled(found: FoundFile, row: FileRow | None) -> bool:
    return row is not None and row.mtime_ns == 0 and row.size == found.size
