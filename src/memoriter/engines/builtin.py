"""The builtin engine: our own index answers.

It decides when a search first takes in what changed on disk, and what to do when the index turns out damaged. How
files become rows is `indexing`'s duty, how rows become hits is `retrieval`'s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.errors import (
    Cancelled,
    EmbeddingError,
    MemoriterError,
    SourceError,
    StoreBroken,
    StoreError,
    StoreLocked,
)
from memoriter.records import (
    Answer,
    CitationMode,
    Excerpt,
    Hit,
    ProgressCallback,
    Query,
    Status,
    SyncReport,
)
from memoriter.search import Found
from memoriter.search.citations import shows_citations
from memoriter.sessions.scope import Guard
from memoriter.store import Index

if TYPE_CHECKING:
    from memoriter.embedding import Choice, Embedder
    from memoriter.index.sync import Backlog, Indexer
    from memoriter.notes.workspace import Workspace
    from memoriter.search import Searcher
    from memoriter.store import Index

    Remake = Callable[[str], Choice | None]


REST_S = 60.0  #: between two attempts, so that a provider that is down is not asked with every search
CLOSE_S = 10.0  #: a batch that is under way is waited for so long


class Renewal:
    """A sync that runs beside the searches."""

    def __init__(
        self,
        sync: Callable[[Callable[[], None]], object],
        *,
        rest_s: float = REST_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sync = sync
        self._rest_s = rest_s
        self._clock = clock
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended: float | None = None

    @property
    def running(self) -> bool:
        """Whether vectors are being made now."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def begin(self) -> None:
        """Start, unless it runs already or has just ended."""
        with self._lock:
            rests = self._ended is not None and self._clock() - self._ended < self._rest_s
            if self.running or rests or self._closing.is_set():
                return
            self._thread = threading.Thread(target=self._run, name="memoriter-renewal", daemon=True)
            self._thread.start()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until it has ended."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)

    def close(self) -> None:
        """Stop after the batch that is under way."""
        self._closing.set()
        self.wait(CLOSE_S)

    def _run(self) -> None:
        try:
            self._sync(self._check)
        except Cancelled:
            pass
        except MemoriterError as error:
            log.info("vectors are not made now: %s", error)
        except Exception:
            if not self._closing.is_set():  # closed under its feet: the next process goes on
                log.exception("making vectors in the background failed")
        finally:
            self._ended = self._clock()

    def _check(self) -> None:
        if self._closing.is_set():
            raise Cancelled("The memory is being closed.")


@dataclass(frozen=True, slots=True)
class Served:
    """The embedder that a search may use now, and what is to be said about it."""

    embedder: Embedder | None
    provider: str
    model: str
    note: str | None = None
    fallback: bool = False  #: not the one that the settings name


class Serving:
    """Follows the index: its rows say whose vectors they have."""

    def __init__(self, index: Index, choice: Choice, remake: Remake | None = None) -> None:
        self._index = index
        self._choice = choice
        self._remake = remake or (lambda _: None)
        self._former: tuple[str, Choice | None] = (
            "",
            None,
        )  #: the last that was made again, by its rows' model

    def now(self) -> Served:
        """Whose vectors answer at this moment."""
        choice = self._choice
        if choice.embedder is None:
            return Served(None, choice.provider, choice.model, choice.reason if choice.missing else None)
        model = self._index.meta("model")
        if not model or model == str(choice.embedder.identity):
            note = f"Not {choice.instead} but {choice.reason}." if choice.instead else None
            return Served(choice.embedder, choice.provider, choice.model, note, choice.instead is not None)
        fallback = choice.fallback
        if fallback and fallback.embedder and str(fallback.embedder.identity) == model:
            told = self._index.meta("instead")
            return Served(fallback.embedder, fallback.provider, fallback.model, told, fallback=True)
        return self._from_former(model, str(choice.embedder.identity))

    @property
    def outdated(self) -> bool:
        """Whether rows have other vectors than those of the settings, or lack some."""
        embedder = self._choice.embedder
        if embedder is None:
            return False
        model = self._index.meta("model")
        other = bool(model) and model != str(embedder.identity)
        return other or (self._index.meta("pending") or "0") != "0"

    def close(self) -> None:
        """Close the embedder that was made again."""
        former = self._former[1]
        if former and former.embedder:
            former.embedder.close()

    def _from_former(self, model: str, wanted: str) -> Served:
        if self._former[0] != model:
            made = self._remake(self._index.meta("recipe") or "")
            usable = made and made.embedder and str(made.embedder.identity) == model
            self._former = (model, made if usable else None)
        former = self._former[1]
        if former and former.embedder:
            note = (
                f"The embedder has changed: the vectors of {model} answer until those of {wanted} are made."
            )
            return Served(former.embedder, former.provider, former.model, note)
        note = (
            f"Keyword search only: the index has vectors of {model}, which cannot be used any more, until those of "
            f"{wanted} are made (`memoriter index`)."
        )
        return Served(None, self._choice.provider, self._choice.model, note)


log = logs.get("engines")

#: A search takes in at most this many changed files by itself; more are left to a sync that somebody asked for.
SYNC_BEFORE_SEARCH_FILES = 200

#: And at most this much text: a transcript may have grown by a whole day's work.
SYNC_BEFORE_SEARCH_BYTES = 8 * 1024 * 1024


OTHER_WORKSPACE = "The index is of another workspace; run `memoriter index` to take in this one."


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine behaves around a search."""

    citations: CitationMode = "auto"
    sync_before: bool = True
    sync_interval_s: float = 2.0
    background: bool = True  #: vectors that are missing or outdated are made beside the searches
    wait_s: float = 2.0  #: a search waits so long for a sync that takes in what was just written


class BuiltinEngine:
    """Answers for one agent from `index.db`."""

    def __init__(
        self,
        workspace: Workspace,
        index: Index,
        choice: Choice,
        indexer: Indexer,
        searcher: Searcher,
        conduct: EngineOptions | None = None,
        *,
        guard: Guard | None = None,
        remake: Callable[[str], Choice | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.workspace = workspace
        self.index = index
        self.choice = choice
        self.indexer = indexer
        self.searcher = searcher
        self.conduct = conduct or EngineOptions()
        self.guard = guard or Guard()
        self.serving = Serving(index, choice, remake)
        self.renewal = Renewal(lambda stop: self.indexer.sync(wait_s=0, stop=stop))
        self._clock = clock
        self._announced = False  #: somebody wrote and said so
        self._synced = False  #: the index was built once
        self._looked: float | None = None  #: when the files were last compared with the index

    # ---- search -----------------------------------------------------------------------------------------------

    def search(self, query: Query) -> Answer:
        """The hits that answer the query; what is missing meanwhile is said in ``degraded``."""
        cited = shows_citations(self.conduct.citations, query.session_key)
        if not self.guard.admits(query.session_key):
            return Answer((), provider=self.choice.provider, model=self.choice.model, citations=cited)
        served = Served(None, self.choice.provider, self.choice.model)
        try:
            behind = self._catch_up()
            served = self.serving.now()
            if self.indexer.is_foreign:
                found, behind = Found(()), _sentences(behind, OTHER_WORKSPACE)
            else:
                found = self._find(query, served.embedder)
            self._renew()
        except (
            StoreError,
            SourceError,
            OSError,
        ) as error:  # memory never breaks the agent: it is part of the answer
            log.error("the search failed: %s", error)
            found, behind = Found(()), str(error)
        return Answer(
            hits=found.hits if cited else tuple(_uncited(hit) for hit in found.hits),
            provider=served.provider,
            model=served.model,
            fallback=served.fallback,
            citations=cited,
            degraded=_sentences(served.note, found.degraded, behind),
        )

    def _find(self, query: Query, embedder: Embedder | None) -> Found:
        searcher = self.searcher.using(embedder)
        try:
            return searcher.search(query)
        except StoreBroken as broken:
            log.warning("the index is damaged and is rebuilt from the files: %s", broken)
            self.index.heal(str(broken))
            self.indexer.sync(wait_s=self.conduct.wait_s)
            return self.searcher.search(query)

    def _renew(self) -> None:
        """See to it that missing and outdated vectors are made, without anybody waiting for it."""
        if self.conduct.background and self.serving.outdated:
            self.renewal.begin()

    def _catch_up(self) -> str | None:
        """Take in what changed on disk, if it is little; otherwise say how much is missing."""
        now = self._clock()
        announced, self._announced = self._announced, False
        fresh = self._looked is not None and now - self._looked < self.conduct.sync_interval_s
        # An announced write and a first sync are worth waiting for: without them there is nothing to find.
        patient = announced or not self._was_synced() or self.indexer.is_foreign
        if not self.conduct.sync_before or (fresh and not patient):
            return None
        self._looked = now
        try:
            return self._take_in(self.indexer.backlog(), self.conduct.wait_s if patient else 0.0)
        except StoreLocked:
            self._announced = announced
            return "Another process is indexing; this answer is from what it has written so far."
        except StoreBroken:
            return self.indexer.sync(wait_s=self.conduct.wait_s).degraded
        except SourceError as error:
            return str(error)

    def _was_synced(self) -> bool:
        self._synced = self._synced or self.index.meta("last_sync") is not None
        return self._synced

    def _take_in(self, backlog: Backlog, wait_s: float) -> str | None:
        if not backlog.files:
            return None
        many = backlog.files - backlog.unsettled > SYNC_BEFORE_SEARCH_FILES
        much = many or backlog.bytes > SYNC_BEFORE_SEARCH_BYTES
        if much and self.index.meta("last_sync") and not self.indexer.is_foreign:
            return (
                f"{backlog.files} files changed since the last sync; run `memoriter index` to take them in."
            )
        return self.indexer.sync(wait_s=wait_s, light=True).degraded

    def mark_changed(self) -> None:
        """Something was just written: the next search takes it in first."""
        self._announced = True

    # ---- the rest of the interface ----------------------------------------------------------------------------

    def start(self) -> None:
        """Nothing to do: a search takes in what changed, and a watcher may do so before."""

    def read_file(self, rel_path: str, from_line: int = 1, lines: int | None = None) -> Excerpt:
        """Some lines of one note or transcript; every path that leads outside is refused."""
        if self.indexer.sessions and rel_path.endswith(".jsonl"):
            return self.indexer.sessions.excerpt(rel_path, from_line, lines)
        return self.workspace.excerpt(rel_path, from_line, lines)

    def sync(
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        progress: ProgressCallback | None = None,
    ) -> SyncReport:
        """Bring the index up to date with the files; ``batch``: through the provider's batch API."""
        report = self.indexer.sync(force=force, verify=verify, batch=batch, progress=progress)
        self._looked = self._clock()
        return report

    @property
    def knows_notes(self) -> bool:
        """Whether the index holds notes of this workspace."""
        return self.indexer.knows_notes

    def count_stale(self) -> int:
        """Count the files that differ from the index by their stat."""
        return self.indexer.count_stale()

    def purge(self) -> None:
        """Overwrite what the index still stores of text that is no longer in the files."""
        embedder = self.choice.embedder
        self.index.prune(0)
        self.index.erase([], embedder.identity if embedder else None)

    def status(self, *, deep: bool = False) -> Status:
        """What the index holds; ``deep`` also tries the embedder, the vectors and the store."""
        served = self.serving.now()
        embedder = self.choice.embedder
        counts = self.index.counts(str(embedder.identity) if embedder else "")
        last_sync = self.index.meta("last_sync")
        details: dict[str, object] = {"embedder": self.choice.reason, "source_bytes": counts.bytes}
        if self.choice.fallback:
            details["fallback"] = self.choice.fallback.reason
        if deep:
            details |= {
                "other_embedders": dict(self.choice.others),
                "embedding": self.probe_embedding() or "ok",
                "vectors": self.probe_vector() or "ok",
                "store": "; ".join(self.index.check(deep=True)) or "ok",
                "behind": self.count_stale(),
            }
        return Status(
            backend="builtin",
            workspace=str(self.workspace.root),
            files=counts.files,
            chunks=counts.chunks,
            embedded=counts.embedded if embedder else 0,
            provider=self.choice.provider,
            model=self.choice.model,
            vector_engine=self.index.engine,
            index_path=str(self.index.path),
            index_bytes=self.index.size(),
            last_sync=float(last_sync) if last_sync else None,
            fallback=served.fallback,
            degraded=_sentences(served.note, self._misplaced()),
            details=details,
        )

    def _misplaced(self) -> str | None:
        """What is wrong with the place itself."""
        if not self.workspace.root.is_dir():
            return f"The workspace {self.workspace.root} is not a folder."
        return OTHER_WORKSPACE if self.indexer.is_foreign else None

    def probe_embedding(self) -> str | None:
        """Try to embed one text."""
        if self.choice.embedder is None:
            return self.choice.reason
        try:
            self.choice.embedder.embed_query("memoriter")
        except EmbeddingError as error:
            return str(error)
        return None

    def probe_vector(self) -> str | None:
        """Try one vector search."""
        if self.choice.embedder is None:
            return self.choice.reason
        try:
            query = self.choice.embedder.embed_query("memoriter")
            self.index.nearest(query, self.choice.embedder.identity, limit=1)
        except (EmbeddingError, StoreError) as error:
            return str(error)
        return None

    def close(self) -> None:
        """Close the index and the embedders."""
        self.renewal.close()
        self.index.close()
        self.serving.close()
        for choice in (self.choice, self.choice.fallback):
            if choice and choice.embedder:
                choice.embedder.close()


def _uncited(hit: Hit) -> Hit:
    return replace(hit, citation=None)


def _sentences(*parts: str | None) -> str | None:
    return " ".join(part for part in parts if part) or None
