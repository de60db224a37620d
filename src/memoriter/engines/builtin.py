"""The builtin engine answers from the index of this package.

It decides when a search first indexes changed files, and what happens when the index is damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.engines import Engine
from memoriter.errors import EmbeddingError, IndexBroken, SourceError, StoreError, StoreLocked, message_of
from memoriter.index.vectors import BackgroundWork
from memoriter.records import (
    Answer,
    CitationMode,
    Excerpt,
    Hit,
    ProgressCallback,
    Query,
    Status,
    SyncBudget,
    SyncReport,
)
from memoriter.search import Found, Searcher
from memoriter.search.shape import shows_citations
from memoriter.sentences import join, sentence
from memoriter.sessions.scope import ScopeCheck

if TYPE_CHECKING:
    from memoriter.embedding import Choice, Embedder
    from memoriter.embedding.protocol import Matrix
    from memoriter.index.sync import Indexer
    from memoriter.notes.workspace import Workspace
    from memoriter.store import Index

    Remake = Callable[[str], Choice | None]


log = logs.get("engines")

OTHER_WORKSPACE = "The index belongs to another workspace. Run `memoriter index` to index this one."


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options of the engine for searches and syncs."""

    citations: CitationMode = "auto"
    sync_before: bool = True
    #: Index what a search leaves out, and compute missing and outdated vectors, in the background.
    background: bool = True
    #: The time that a search takes to index changes.
    budget: SyncBudget = field(default_factory=SyncBudget)


@dataclass(frozen=True, slots=True)
class ActiveEmbedder:
    """The embedder whose vectors answer a search, and what the answer says about it."""

    embedder: Embedder | None
    provider: str
    model: str
    note: str | None = None
    #: Whether this is another embedder than the settings name.
    fallback: bool = False


class EmbedderSelector:
    """Selects the embedder that answers a search while the vectors of another one are computed.

    The index records whose vectors its rows have. After a change of settings the former embedder keeps answering until
    the vectors of the new one are complete.
    """

    def __init__(self, index: Index, choice: Choice, remake: Remake | None = None) -> None:
        self._index = index
        self._choice = choice
        self._remake = remake or (lambda _: None)
        #: The former embedder, with the model of the rows for which it was opened.
        self._former: tuple[str, Choice | None] = ("", None)

    def active(self) -> ActiveEmbedder:
        """Return the embedder whose vectors the rows have now."""
        choice = self._choice
        if choice.embedder is None:
            return ActiveEmbedder(
                None, choice.provider, choice.model, choice.reason if choice.missing else None
            )
        model = self._index.meta("model")
        if not model or model == str(choice.embedder.identity):
            note = f"The embedder is {choice.reason}." if choice.instead else None
            is_fallback = choice.instead is not None
            return ActiveEmbedder(choice.embedder, choice.provider, choice.model, note, is_fallback)
        fallback = choice.fallback
        if fallback and fallback.embedder and str(fallback.embedder.identity) == model:
            note = self._index.meta("instead")
            return ActiveEmbedder(fallback.embedder, fallback.provider, fallback.model, note, fallback=True)
        return self._active_former(model, str(choice.embedder.identity))

    @property
    def outdated(self) -> bool:
        """Whether rows have vectors of another embedder than the settings name, or none."""
        embedder = self._choice.embedder
        return embedder is not None and self._index.count_without(str(embedder.identity)) > 0

    def close(self) -> None:
        """Close the former embedder, if one was opened."""
        former = self._former[1]
        if former and former.embedder:
            former.embedder.close()

    def _active_former(self, model: str, configured: str) -> ActiveEmbedder:
        if self._former[0] != model:
            choice = self._remake(self._index.meta("recipe") or "")
            is_usable = choice and choice.embedder and str(choice.embedder.identity) == model
            self._former = (model, choice if is_usable else None)
        former = self._former[1]
        if former and former.embedder:
            note = f"The embedder has changed: the vectors of {model} answer until those of {configured} are complete."
            return ActiveEmbedder(former.embedder, former.provider, former.model, note)
        note = (
            f"Keyword search only: the index has vectors of {model}, whose embedder is no longer available. "
            f"Run `memoriter index` to compute those of {configured}."
        )
        return ActiveEmbedder(None, self._choice.provider, self._choice.model, note)


class BuiltinEngine(Engine):
    """Answers for one agent from `index.db`."""

    def __init__(
        self,
        workspace: Workspace,
        index: Index,
        choice: Choice,
        indexer: Indexer,
        searcher: Searcher,
        options: EngineOptions | None = None,
        *,
        scope: ScopeCheck | None = None,
        remake: Remake | None = None,
    ) -> None:
        self.workspace = workspace
        self.index: Index = index
        self.choice: Choice = choice
        self.indexer = indexer
        self.searcher = searcher
        self.options = options or EngineOptions()
        self.scope = scope or ScopeCheck()
        self.embedders = EmbedderSelector(index, choice, remake)
        self.background = BackgroundWork(self._sync_in_background)

    # ---- search -----------------------------------------------------------------------------------------------

    def search(self, query: Query) -> Answer:
        """Return the hits that answer the query. ``degraded`` says what the answer lacks."""
        cited = shows_citations(self.options.citations, query.session)
        if not self.scope.allows(query.session):
            return Answer((), provider=self.choice.provider, model=self.choice.model, citations=cited)
        active = ActiveEmbedder(None, self.choice.provider, self.choice.model)
        missing: str | None = None
        try:
            found, active, missing = self.index.healing(lambda: self._find(query))
            if self.options.background and (missing or self.embedders.outdated):
                self.background.start()
        except (StoreError, SourceError, OSError) as error:  # a failing memory must not fail the agent
            log.error("the search failed: %s", error)
            found, missing = Found(()), join(missing, message_of(error))
        return Answer(
            hits=found.hits if cited else tuple(replace(hit, citation=None) for hit in found.hits),
            provider=active.provider,
            model=active.model,
            fallback=active.fallback,
            citations=cited,
            degraded=join(active.note, found.degraded, missing),
            unknown=found.unknown,
        )

    def near(self, line: str, vector: Matrix, query: Query, limit: int) -> tuple[Hit, ...]:
        """Return the chunks nearest to a line of a hit. The search before has indexed what changed."""
        if not self.scope.allows(query.session) or not self.index.belongs_to(self.workspace.name):
            return ()
        return self.searcher.near(line, vector, query, limit)

    def _find(self, query: Query) -> tuple[Found, ActiveEmbedder, str | None]:
        """Index what changed, and search. Return a sentence that says what is still missing, too."""
        missing = self._catch_up()
        active = self.embedders.active()
        if active.embedder is not None:
            self.index.ready(active.embedder.identity)
        with self.index.snapshot():
            if not self.index.belongs_to(self.workspace.name):
                return Found(()), active, join(missing, OTHER_WORKSPACE)
            found = self.searcher.using(active.embedder).search(query)
            return found, active, join(missing, self._missing_vectors(active))

    def _catch_up(self) -> str | None:
        """Index what changed on disk, within the budget. Return a sentence that says what is still missing."""
        background = self.options.background
        if not self.options.sync_before:
            return self._never_indexed()
        is_fresh = self.indexer.snapshot.is_current(self.index.meta("last_sync"))
        if is_fresh and (background or not self.embedders.outdated):
            return None
        try:
            budget = self.options.budget
            result = self.indexer.catch_up(replace(budget, others_s=0.0) if background else budget)
        except IndexBroken:
            raise
        except (StoreLocked, SourceError) as error:
            return sentence("index.locked") if isinstance(error, StoreLocked) else str(error)
        except (StoreError, OSError) as error:  # such as a full disk: what was indexed before still answers
            log.warning("changed files are not indexed: %s", error)
            return sentence("index.unwritable", why=error)
        code = "index.background" if background else "index.continue"
        return sentence(code, waiting=result.waiting, total=result.files) if result.waiting else None

    def _missing_vectors(self, active: ActiveEmbedder) -> str | None:
        if active.embedder is None:
            return None  # the note of the embedder says why
        model, error = str(active.embedder.identity), self.indexer.vectors.error
        missing = self.index.count_without(model)
        if not missing:
            return None
        counts = {"missing": missing, "total": self.index.total()}
        if error:
            return sentence("vectors.failed", **counts, why=error)
        return sentence("vectors.background" if self.options.background else "vectors.continue", **counts)

    def _sync_in_background(self, stop: Callable[[], None]) -> bool:
        report = self.indexer.sync(wait_s=0, stop=stop)
        return not report.pending

    def start(self) -> None:
        """Index what changed, and compute missing vectors, in the background."""
        self.background.start()

    @property
    def busy(self) -> bool:  # type: ignore[override]
        return self.background.running

    # ---- files and index --------------------------------------------------------------------------------------

    def read_file(self, rel_path: str, from_line: int = 1, lines: int | None = None) -> Excerpt:
        """Read some lines of a note or transcript. Paths that lead outside are refused."""
        if self.indexer.sessions and rel_path.endswith(".jsonl"):
            return self.indexer.sessions.excerpt(rel_path, from_line, lines)
        return self.workspace.excerpt(rel_path, from_line, lines)

    def sync(
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        vectors_s: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> SyncReport:
        report = self.indexer.sync(
            force=force, verify=verify, batch=batch, vectors_s=vectors_s, progress=progress
        )
        if not self.choice.missing:
            return report
        counts = {"missing": report.chunks, "total": report.chunks}
        why = sentence("vectors.failed", **counts, why=self.choice.reason)
        return replace(report, pending=report.chunks, degraded=join(report.degraded, why))

    @property
    def knows_notes(self) -> bool:
        return self.index.healing(lambda: self.indexer.knows_notes)

    def count_stale(self) -> int:
        """Count the files that differ from the index by their stat."""
        return self.index.healing(self.indexer.count_stale)

    def purge(self) -> None:
        embedder = self.choice.embedder
        if not self.index.healing(lambda: self.index.keeps_deleted):
            return
        self.index.healing(lambda: self.index.prune(0))
        self.index.healing(lambda: self.index.erase([], embedder.identity if embedder else None))

    # ---- status -----------------------------------------------------------------------------------------------

    def status(self, *, deep: bool = False) -> Status:
        """Describe the index and the embedder. ``deep`` also tries a vector search and checks the store."""
        damage = self.index.check(deep=True) if deep else []
        if damage:  # the next search or sync builds it again
            self.index.heal("; ".join(damage))
        return self.index.healing(lambda: self._describe(deep=deep, damage=damage))

    def _describe(self, *, deep: bool, damage: Sequence[str]) -> Status:
        active = self.embedders.active()
        embedder = self.choice.embedder
        counts = self.index.counts(str(embedder.identity) if embedder else "")
        last_sync = self.index.meta("last_sync")
        details: dict[str, object] = {"embedder": self.choice.reason, "source_bytes": counts.bytes}
        if self.choice.fallback:
            details["fallback"] = self.choice.fallback.reason
        if skipped := self.workspace.incomplete() | self.indexer.unreadable():
            details["skipped"] = skipped
        if deep:
            details |= {
                "other_embedders": dict(self.choice.others),
                "embedding": self.probe_embedding() or "ok",
                "vectors": self.probe_vector() or "ok",
                "store": "; ".join(damage) or "ok",
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
            index_path=self.index.place,
            index_bytes=self.index.size(),
            last_sync=_time_of(last_sync),
            fallback=active.fallback,
            degraded=join(active.note, self._workspace_problem(), self._incomplete(active, last_sync)),
            details=details,
        )

    def _incomplete(self, active: ActiveEmbedder, last_sync: str | None) -> str | None:
        """Return a sentence that says what is not indexed."""
        return self._missing_vectors(active) if last_sync is not None else self._never_indexed()

    def _never_indexed(self) -> str | None:
        if self.index.meta("last_sync") is not None or not self.workspace.root.is_dir():
            return None
        waiting = self.count_stale()
        return sentence("index.never", waiting=waiting) if waiting else None

    def _workspace_problem(self) -> str | None:
        if not self.workspace.root.is_dir():
            return f"The workspace {self.workspace.root} is not a folder."
        return None if self.index.belongs_to(self.workspace.name) else OTHER_WORKSPACE

    def probe_embedding(self) -> str | None:
        if self.choice.embedder is None:
            return self.choice.reason
        try:
            self.choice.embedder.embed_query("memoriter")
        except EmbeddingError as error:
            return str(error)
        return None

    def probe_vector(self) -> str | None:
        if self.choice.embedder is None:
            return self.choice.reason
        identity = self.choice.embedder.identity
        try:
            vector = self.choice.embedder.embed_query("memoriter")
            self.index.healing(lambda: self.index.nearest(vector, identity, limit=1))
        except (EmbeddingError, StoreError) as error:
            return str(error)
        return self.index.vector_problem

    def close(self) -> None:
        """Close the index and the embedders."""
        self.background.close()
        self.index.close()
        self.embedders.close()
        for choice in (self.choice, self.choice.fallback):
            if choice and choice.embedder:
                choice.embedder.close()


def _time_of(last_sync: str | None) -> float | None:
    """Return the time of the last sync. A damaged value counts as none."""
    with suppress(TypeError, ValueError):
        return float(last_sync or "")
    return None
