"""`Entries`: everything an agent has learned, behind one object (`memory.entries`).

The methods here are the public API for entries. Each one delegates to a module of this package: `merge` decides how a
new statement relates to known ones, `staging` holds statements for approval, `erase` removes every copy.
"""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Unpack

from memoriter.entries import capture, editing, exchange
from memoriter.entries.adding import EntryAdder
from memoriter.entries.capture import CaptureLimits, TurnLike
from memoriter.entries.drafts import TYPES, Draft, DraftFields, type_of
from memoriter.entries.editing import EntryChanges, EntryEditor
from memoriter.entries.erase import Eraser, OtherCopies
from memoriter.entries.forgetting import EntryForgetter
from memoriter.entries.importing import EntryImporter
from memoriter.entries.lifecycle import CleanupOptions, Lifecycle
from memoriter.entries.listing import EntryDetail, EntryFilters, EntryListing, RecallFilters, build_filter
from memoriter.entries.search import MIN_SIMILARITY, EntrySearch, FoundEntries, Mode
from memoriter.entries.staging import Approval
from memoriter.errors import EmbeddingError, StoreError
from memoriter.index.follow import Follower
from memoriter.records import (
    Bucket,
    CleanedUp,
    Entry,
    EntryEvent,
    EntryPage,
    EntrySort,
    EntryState,
    Facets,
    Hit,
    Imported,
    Recall,
    RecallPage,
    Receipt,
    Remembered,
    Selection,
    Trust,
    referenced_id,
)
from memoriter.search.rank import Weights
from memoriter.sentences import sentence
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import Edit, EntryStore

if TYPE_CHECKING:
    from memoriter.embedding import Batched, Embedder
    from memoriter.search.rerank import Reranker
    from memoriter.store import Index

#: The name of the derived index and of its folder. Everything in it can be rebuilt from memory.db.
INDEX_NAME = "entries"
#: The states of entries that an export contains by default.
_EXPORTED: Sequence[EntryState] = ("active", "staged", "superseded", "expired")


@dataclass(frozen=True, slots=True)
class EntryOptions:
    """Options for search, approval, cleanup and capture of entries. The defaults are those of the settings."""

    threshold: float = MIN_SIMILARITY
    weights: Weights = field(default_factory=Weights)
    reranker: Reranker | None = None
    approval: Approval = "none"
    cleanup: CleanupOptions = field(default_factory=CleanupOptions)
    capture: CaptureLimits = field(default_factory=CaptureLimits)
    #: Compute vectors in the background that no caller waits for.
    background: bool = False
    #: The folder of the workspace, which new entries record.
    workspace: str | None = None
    #: Use only entries that were learned in this workspace, or in none.
    workspace_only: bool = False


class Entries:
    """The entries of one agent. Safe to use from several threads and processes."""

    def __init__(
        self,
        store: EntryStore,
        index: Index,
        embedder: Embedder | None = None,
        batched: Batched | None = None,
        options: EntryOptions | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._index = index
        self._options = options or EntryOptions()
        self._clock = clock
        background = self._options.background
        self._follower = Follower(store, index, batched, name=INDEX_NAME, background=background)
        self._search = EntrySearch(
            store,
            self._follower,
            embedder,
            self._options.weights,
            reranker=self._options.reranker,
            clock=clock,
        )
        self._eraser = Eraser(store, self._follower, clock)
        self._lifecycle = Lifecycle(store, self._eraser, self._options.cleanup, clock)
        self._editor = EntryEditor(store, clock)
        self._adder = EntryAdder(
            store,
            self._follower,
            self._options.approval,
            self._limited({}),
            clock,
            workspace=self._options.workspace,
        )
        self._staging = self._adder.staging
        self._importer = EntryImporter(
            store, self._follower, self.add_draft, clock, needs_approval=self._options.approval != "none"
        )
        self._forgetter = EntryForgetter(
            store, self.search, self._staging, self._eraser, self._options.cleanup.retention_days
        )
        self._listing = EntryListing(store, self._search, self._options.threshold, clock)
        self._eraser.resume()

    # ---- adding ----------------------------------------------------------------------------------------------

    def add(self, text: str, type: str | None = None, **fields: Unpack[DraftFields]) -> Remembered:  # noqa: A002
        """Add one statement and return the outcome.

        A statement that is already known is counted, one that refines a known entry is merged with it, and one that
        contradicts a known entry supersedes it. With approval turned on, the statement may be staged instead.
        ``type`` is one of the entry types or categories; without it, the rules of `capture` choose one.
        ``importance`` is 1 to 5 and ``confidence`` 0 to 1; other numbers are an error. What the owner adds never
        expires, unless ``expires_at`` says when, in seconds since the epoch. The change is on disk when this method
        returns.
        """
        chosen = type_of(type) if type else capture.classify(text)
        return self.add_draft(Draft(text, chosen, **fields), actor=fields.get("trust", "owner"))

    def add_draft(self, draft: Draft, *, actor: str = "owner", replaces: str | None = None) -> Remembered:
        """Add a draft and return the outcome. `add` is the short form.

        ``replaces`` is the id of an entry that the draft supersedes, if the caller knows one. It has no effect on an
        entry that is more trusted than the draft. ``actor`` is recorded in the history.
        """
        self._lifecycle.cleanup_if_due()
        return self._adder.add(draft, actor=actor, replaces=replaces)

    def mark_relayed(self, ids: Iterable[str]) -> None:
        """Lower the trust of an agent's entries to `relayed`: the agent had read text from outside."""
        with self._store.transaction():
            edits = [
                Edit("update", replace(entry, trust="relayed"), entry, sentence("history.relayed"))
                for entry in self._store.load(ids).values()
                if entry.trust == "agent"
            ]
            self._store.apply(edits, at=self._clock(), by="capture")

    def capture(self, turns: Iterable[TurnLike], *, session: str | None = None) -> builtins.list[Remembered]:
        """Capture statements from the owner's turns by rules, without a model."""
        drafts = capture.capture(turns, session=session, limits=self._options.capture, now=self._clock())
        return [self.add_draft(draft, actor="capture") for draft in drafts]

    # ---- reading ---------------------------------------------------------------------------------------------

    def get(self, entry_id: str) -> Entry:
        """Return the entry with this id. A unique prefix of the id is enough."""
        return self._store.get(self._store.complete_id(entry_id))

    def get_many(self, ids: Iterable[str]) -> dict[str, Entry]:
        """Return the entries with these ids that exist, by id."""
        return self._store.load(ids)

    def detail(self, entry_id: str) -> EntryDetail:
        """Return an entry with its history, its related and superseded entries, and its recalls."""
        return self._listing.detail(entry_id)

    def list(
        self,
        type: str | None = None,  # noqa: A002
        *,
        sort: Literal["updated", "importance"] = "updated",
        limit: int | None = None,
        **filters: Unpack[EntryFilters],
    ) -> builtins.list[Entry]:
        """Return the entries that match every filter, newest first, or the most important first.

        Without ``states`` only entries in force are returned: active ones that have not expired. An empty ``states``
        means any state. ``sort`` is "updated" or "importance".
        """
        return self._listing.list(type, sort=sort, limit=limit, **self._in_workspace(filters))

    def page(
        self,
        *,
        query: str = "",
        sort: EntrySort | None = None,
        limit: int = 100,
        after: tuple[float, str] | None = None,
        offset: int = 0,
        around: str | None = None,
        ascending: bool = False,
        **filters: Unpack[EntryFilters],
    ) -> EntryPage:
        """Return one page of the entries that match every filter, largest sort value first.

        With a query the default order is by score. ``after`` is the ``after`` of the previous page. ``offset`` skips
        entries instead. ``around`` is the id of an entry that the page should contain.
        """
        return self._listing.page(
            query=query,
            sort=sort,
            limit=limit,
            after=after,
            offset=offset,
            around=around,
            ascending=ascending,
            **self._in_workspace(filters),
        )

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        threshold: float | None = None,
        mode: Mode = "hybrid",
        rerank: bool = True,
        beside: Sequence[Hit] = (),
        **filters: Unpack[EntryFilters],
    ) -> FoundEntries:
        """Return the entries in force that answer a query, best first.

        ``threshold`` is the minimum similarity (default: `retrieval.similarity_threshold`). ``mode`` is "hybrid",
        "semantic" or "keyword". A hybrid search without ``rerank`` leaves the reranker out. ``beside`` are hits of
        notes for the same query: the scores of the entries then can be compared with theirs.
        """
        floor = self._options.threshold if threshold is None else threshold
        where = self._limited(filters)
        return self._search.search(
            query, limit=limit, threshold=floor, mode=mode, rerank=rerank, where=where, beside=beside
        )

    def _in_workspace(self, filters: EntryFilters) -> EntryFilters:
        """Return the filters, limited to this workspace if the settings say so and the caller names no other."""
        if not self._options.workspace_only or filters.get("workspace") is not None:
            return filters
        return {**filters, "workspace": self._options.workspace}

    def _limited(self, filters: EntryFilters) -> EntryFilter:
        return build_filter(self._in_workspace(filters))

    def mark_used(self, ids: Iterable[str]) -> None:
        """Count that these entries were used. This is not a change of the entries and adds no event."""
        self._store.touch(ids, self._clock())

    def as_of_now(self, entry: Entry) -> Entry:
        """Return the entry with the state "expired" if its time is over but no cleanup has marked it yet."""
        return self._listing.as_of_now(entry)

    def complete_ids(self, prefix: str, *, limit: int) -> builtins.list[str]:
        """Return ids of entries in force that start with a prefix, newest first."""
        return self._store.ids((referenced_id(prefix) or prefix).lower(), limit, self._clock())

    def replaced_by(self, entry_id: str) -> builtins.list[Entry]:
        """Return the entries that this entry superseded, newest first."""
        return self._store.replaced_by(self._store.complete_id(entry_id))

    # ---- changing --------------------------------------------------------------------------------------------

    def update(
        self,
        entry_id: str,
        *,
        if_seq: int | None = None,
        actor: str = "owner",
        **changes: Unpack[EntryChanges],
    ) -> Entry:
        """Change fields of an entry and return it. The previous version stays in the history.

        When the type or the importance changes, the expiry time is set again unless ``expires_at`` is given
        (None: never). With ``if_seq`` the change is made only if the entry still has this sequence number; otherwise
        `EditConflict` is raised.
        """
        return self._editor.edit(entry_id, changes, if_seq=if_seq, actor=actor)

    def merge(
        self,
        ids: Sequence[str],
        text: str | None = None,
        *,
        if_seqs: Sequence[int] = (),
        actor: str = "owner",
    ) -> Entry:
        """Replace several entries by one that says ``text``, or what the longest of them says."""
        return self._editor.merge(ids, text, if_seqs=if_seqs, actor=actor)

    def supersede(
        self, entry_id: str, text: str, *, if_seq: int | None = None, actor: str = "owner"
    ) -> Remembered:
        """Replace an entry by a new statement of the owner. The old entry stays in the history."""
        return self._editor.supersede(entry_id, text, if_seq=if_seq, actor=actor)

    def undone(self) -> builtins.list[Entry]:
        """Return the entries that an undo removed, newest first. Their words stay in the history until forgotten."""
        return self._store.undone()

    def history(self, entry_id: str) -> builtins.list[EntryEvent]:
        """Return every change of an entry, oldest first."""
        return self._store.history(self._store.complete_id(entry_id))

    def undo(
        self, entry_id: str | None = None, *, if_seq: int | None = None, actor: str = "owner"
    ) -> tuple[builtins.list[EntryEvent], tuple[Entry, ...]]:
        """Undo the newest change, of one entry or of all; return the undone events and the entries as they are now.

        The next call undoes the change before, and `redo` makes the change again. With ``if_seq`` something is undone
        only if the newest event has this sequence number.
        """
        full_id = self._store.complete_id(entry_id) if entry_id else None
        return editing.undo(self._store, entry_id=full_id, at=self._clock(), actor=actor, if_seq=if_seq)

    def redo(
        self, entry_id: str | None = None, *, actor: str = "owner"
    ) -> tuple[builtins.list[EntryEvent], tuple[Entry, ...]]:
        """Make the change again that was undone last, of one entry or of all.

        Return the events of the undo and the entries as they are now. A change after the undo leaves nothing to redo.
        """
        full_id = self._store.complete_id(entry_id) if entry_id else None
        return editing.redo(self._store, entry_id=full_id, at=self._clock(), actor=actor)

    # ---- approval --------------------------------------------------------------------------------------------

    def approve(self, ids: str | Sequence[str], *, actor: str = "owner") -> builtins.list[Remembered]:
        """Put staged entries in force and return the outcome for each. Each is judged against what is known now."""
        return self._staging.approve([ids] if isinstance(ids, str) else ids, actor=actor)

    def reject(self, ids: str | Sequence[str], *, actor: str = "owner") -> tuple[Entry, ...]:
        """Reject staged entries, all of them or none. They are erased after the retention time."""
        return self._staging.reject([ids] if isinstance(ids, str) else ids, actor=actor)

    # ---- forgetting ------------------------------------------------------------------------------------------

    def forget(
        self,
        what: str | Selection,
        *,
        dry_run: bool = False,
        actor: str = "owner",
        copies: OtherCopies | None = None,
    ) -> Receipt:
        """Hide entries at once and return a receipt. `undo` restores them until a cleanup erases them.

        The cleanup does so after the retention time. ``what`` is an id or a `Selection`. A query hides only a single
        certain match; otherwise nothing is hidden and the receipt lists candidates. If ``actor`` is "agent", entries
        of the owner are staged instead: no search finds them, and they wait for the owner to reject or approve them.
        ``copies`` are searched for places that still say it.
        """
        return self._forgetter.forget(what, actor=actor, dry_run=dry_run, copies=copies)

    def erase(
        self,
        what: str | Selection,
        *,
        dry_run: bool = False,
        actor: str = "owner",
        copies: OtherCopies | None = None,
    ) -> Receipt:
        """Erase every copy of entries at once and return a receipt. This cannot be undone.

        ``what`` is as for `forget`; a query also finds hidden entries. If ``actor`` is "agent", entries of the owner
        are staged instead. ``copies`` are erased too, where they can be.
        """
        return self._forgetter.erase(what, actor=actor, dry_run=dry_run, copies=copies)

    def cleanup(self) -> CleanedUp:
        """Mark expired entries, and erase entries that expired or were rejected long ago."""
        return self._lifecycle.cleanup()

    def cleanup_if_due(self) -> CleanedUp | None:
        """Clean up if automatic cleanup is on and the interval has passed."""
        return self._lifecycle.cleanup_if_due()

    def clock_problem(self) -> str | None:
        """Return a sentence about a jump of the clock that was noticed recently; None without one."""
        return self._lifecycle.clock_problem()

    # ---- export and import -----------------------------------------------------------------------------------

    def export(
        self,
        type: str | None = None,  # noqa: A002
        *,
        ids: Collection[str] | None = None,
        **filters: Unpack[EntryFilters],
    ) -> Iterator[str]:
        """Return the entries that match every filter with their history, one JSON object per line.

        Without ``states`` entries in any state are returned, except rejected ones: those are hidden until the cleanup
        erases them.
        """
        types = (type,) if type else filters.get("types", ())
        where = self._limited({"states": _EXPORTED, **filters, "types": types})
        return exchange.export_lines(self._store, where, None if ids is None else set(ids))

    def import_(
        self, text: str, *, trust: Trust = "owner", actor: str = "owner", dry_run: bool = False
    ) -> Imported:
        """Import an export of memoriter, mem0 or ChatGPT, or plain JSON: all of it or nothing.

        Entries that exist already stay as they are, and forgotten texts are refused. No entry is
        imported with more than ``trust``, and only full trust keeps the histories, because an undo could lead back to
        them. If ``actor`` is "agent", the file consists of statements of that agent: they are judged like any other,
        and what the file says about their origin, age and history is ignored.
        """
        return self._importer.import_(text, trust=trust, actor=actor, dry_run=dry_run)

    def undo_import(self, entries: Mapping[str, int], *, actor: str = "owner") -> tuple[str, ...]:
        """Remove imported entries that have not changed since, and return their ids.

        ``entries`` are the ids and numbers of `Imported.entries`. An entry with another number stays.
        """
        return editing.undo_import(self._store, entries, at=self._clock(), actor=actor)

    # ---- counts and overviews --------------------------------------------------------------------------------

    def stats(self) -> dict[str, object]:
        """Return counts, averages and times of the entries in force."""
        facets = self.facets()
        by_type = {type_: facets.types[type_] for type_ in TYPES if type_ in facets.types}
        return {"total": sum(by_type.values()), "by_type": by_type, **self._store.averages(self._clock())}

    def facets(self) -> Facets:
        """Return how many entries there are of each state, type, trust and tag."""
        return self._store.facets(self._clock())

    def count_pending(self) -> dict[str, int]:
        """Return how many entries wait for a vector ("vectors") and for the owner's approval ("staged")."""
        missing, _ = self._follower.count_missing()
        return {"vectors": missing, "staged": self.facets().states.get("staged", 0)}

    def missing_vectors(self) -> str | None:
        """Return a sentence that says how many entries have no vector yet, also right after an import; else None."""
        missing, total = self._follower.count_missing()
        return sentence("entries.missing", missing=missing, total=total) if missing else None

    def timeline(
        self, *, since: float | None = None, until: float | None = None, buckets: int = 60
    ) -> builtins.list[Bucket]:
        """Return counts of changes and recalls in time spans of equal length, from the first event until now."""
        return self._store.timeline(since, until, buckets, self._clock())

    # ---- recalls ---------------------------------------------------------------------------------------------

    def recalls(
        self,
        *,
        limit: int = 100,
        after: tuple[float, str] | None = None,
        **filters: Unpack[RecallFilters],
    ) -> RecallPage:
        """Return one page of the recall ledger, newest first."""
        return self._listing.recalls(limit, after, **filters)

    def get_recall(self, recall_id: str | None = None) -> Recall:
        """Return one recall: what entered a prompt, what did not, and why. A unique prefix of the id is enough.

        Without an id it is the newest recall; with the id of an entry, the newest that added the entry to a prompt.
        """
        return self._listing.recall(recall_id)

    def add_recall(self, recall: Recall, used: Sequence[str]) -> None:
        """Write a recall to the ledger and count the entries that were used."""
        self._lifecycle.add_recall(recall, used)

    # ---- store and index -------------------------------------------------------------------------------------

    def update_index(self) -> None:
        """Bring the derived index up to date with the entries. Searching does this automatically."""
        self._follower.follow()

    def digest(self, text: str) -> str:
        """Return a keyed digest that identifies a text without revealing it."""
        return self._store.digest(text)

    def external_changes(self) -> int:
        """Return a number that changes whenever another process changes the entries."""
        return self._store.external_changes()

    def check(self, *, deep: bool = False) -> builtins.list[str]:
        """Return what is wrong with the database, one sentence each; empty when nothing is."""
        return self._store.check(deep=deep)

    def repair_index(self, *, rebuild: bool = False) -> str | None:
        """Check the derived index and build it again if it is damaged. Return what was wrong, if anything.

        ``rebuild`` builds it again in any case.
        """
        return self._follower.repair(rebuild=rebuild)

    def close(self) -> None:
        """Close the database and the index."""
        self._follower.close()
        self._index.close()
        self._store.close()

    def probe_vector(self) -> str | None:
        """Run one vector search. Return None if that works, otherwise an error message."""
        embedder = self._search.embedder
        if embedder is None:
            return None
        try:
            vector = embedder.embed_query("memoriter")
            self._follower.healing(lambda: self._index.nearest(vector, embedder.identity, limit=1))
        except (EmbeddingError, StoreError) as error:
            return str(error)
        return self._index.vector_problem
