"""`Entries`: everything an agent has learned, behind one object (`memory.entries`).

The methods here are the public API for entries. Each one delegates to a module of this package: `merge` decides how a
new statement relates to known ones, `staging` holds statements for approval, `erase` removes every copy.
"""

from __future__ import annotations

import builtins
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from memoriter.entries import capture, editing, exchange, merge
from memoriter.entries.capture import CaptureLimits, TurnLike
from memoriter.entries.drafts import TYPES, Draft, expiry, type_of
from memoriter.entries.editing import EntryChanges, EntryEditor
from memoriter.entries.erase import MAX_CANDIDATES, Eraser, RemoveCopies, sure_hit
from memoriter.entries.lifecycle import CleanupOptions, Lifecycle
from memoriter.entries.listing import EntryDetail, EntryFilters, EntryListing, RecallFilters, build_filter
from memoriter.entries.map import MAX_POINTS, MapBuilder
from memoriter.entries.search import MIN_SIMILARITY, EntrySearch, FoundEntries, Mode
from memoriter.entries.staging import Approval, StagingArea
from memoriter.errors import EmbeddingError, StoreError, WriteError
from memoriter.index.follow import Follower
from memoriter.records import (
    IMPORTED,
    TRUST_LEVELS,
    Bucket,
    CleanedUp,
    Entry,
    EntryEvent,
    EntryMap,
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
    Trust,
    is_trusted_like,
    least_trusted,
    referenced_id,
)
from memoriter.search.rank import Weights
from memoriter.sentences import join, sentence
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import Edit, EntryStore
from memoriter.store.erasure import vector_hash
from memoriter.store.ledger import RecallFilter
from memoriter.text.words import normal_form

if TYPE_CHECKING:
    from memoriter.embedding import Batched, Embedder
    from memoriter.embedding.protocol import Matrix
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


class DraftFields(TypedDict, total=False):
    """Optional arguments of `Entries.add`."""

    category: str | None
    importance: float
    confidence: float
    trust: Trust
    session: str | None
    source: str | None
    tags: tuple[str, ...]
    expires_at: float | None


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
        self._judging = threading.Lock()
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
        self._maps = MapBuilder(store, self._follower, clock)
        self._eraser = Eraser(store, self._follower, clock, self._maps.delete)
        self._lifecycle = Lifecycle(store, self._eraser, self._options.cleanup, clock)
        self._editor = EntryEditor(store, clock)
        self._staging = StagingArea(store, self._follower, self._options.approval, self._judge, clock)
        self._listing = EntryListing(store, self._search, self._options.threshold, clock)
        self._eraser.resume()

    # ---- adding ----------------------------------------------------------------------------------------------

    def add(self, text: str, type: str | None = None, **fields: Unpack[DraftFields]) -> Remembered:  # noqa: A002
        """Add one statement and return the outcome.

        A statement that is already known is counted, one that refines a known entry is merged with it, and one that
        contradicts a known entry supersedes it. With approval turned on, the statement may be staged instead.
        ``type`` is one of the entry types or categories; without it, the rules of `capture` choose one.
        ``importance`` is 1 to 5 and ``confidence`` 0 to 1. What the owner adds never expires, unless ``expires_at``
        says when, in seconds since the epoch. The change is on disk when this method returns.
        """
        chosen = type_of(type) if type else capture.classify(text)
        return self.add_draft(Draft(text, chosen, **fields), actor=fields.get("trust", "owner"))

    def add_draft(self, draft: Draft, *, actor: str = "owner", replaces: str | None = None) -> Remembered:
        """Add a draft and return the outcome. `add` is the short form.

        ``replaces`` is the id of an entry that the draft supersedes, if the caller knows one. It has no effect on an
        entry that is more trusted than the draft. ``actor`` is recorded in the history.
        """
        clean = replace(draft.clean(), workspace=draft.workspace or self._options.workspace)
        outcome = self._add_clean(clean, actor, replaces)
        if not draft.loses_text(clean):
            return outcome
        return replace(outcome, note=join(outcome.note, sentence("entry.redacted")))

    def _add_clean(self, draft: Draft, actor: str, replaces: str | None) -> Remembered:
        self._lifecycle.cleanup_if_due()
        start_seq = self._store.seq()
        if self._staging.requires_approval(draft):
            return self._staging.stage(draft, start_seq, actor=actor, replaces=replaces)
        with self._judging:
            vector = self._vector_of_new(draft)  # before the transaction: an embedder may be slow
            # Others wait from here on. Judging without this, and again if another process was faster, costs more.
            with self._store.transaction():
                remembered, new = self._judge_and_write(draft, start_seq, actor, replaces, vector)
            self._follower.follow_later(new, embed=False)  # a search computes the vectors of others
            return remembered

    def _vector_of_new(self, draft: Draft) -> Matrix | None:
        """Return the vector of a draft; None if its text is known, since no model is needed then."""
        return None if self._store.same_text(draft.text) else self._follower.vector(draft.text)

    def _judge_and_write(
        self, draft: Draft, start_seq: int, actor: str, replaces: str | None, vector: Matrix | None
    ) -> tuple[Remembered, dict[str, Matrix]]:
        """Judge the draft and write the result. Return the outcome, and the vector by the hash of its text."""
        if refusal := self._refusal(draft, start_seq):
            return Remembered(None, "refused", note=refusal), {}
        verdict, vector = self._judge(draft, replaces, vector)
        at = self._clock()
        edits = merge.edits(verdict, draft, at)
        edits = [*edits, *self._replace_rejected(draft, edits[0].entry_id, at)]
        entries = self._store.apply(edits, at=at, by=actor)
        new = {} if vector is None else {vector_hash(draft.text): vector}
        return merge.outcome(verdict, entries[0]), new

    def _replace_rejected(self, draft: Draft, by_id: str, at: float) -> builtins.list[Edit]:
        """Supersede rejected entries that say the same. A cleanup would otherwise erase the new one with them."""
        rejected = [
            one for one in self._store.same_text(draft.text) if one.state == "rejected" and one.id != by_id
        ]
        return [
            Edit("supersede", replace(one, state="superseded", superseded_by=by_id, updated_at=at), one)
            for one in rejected
        ]

    def _judge(
        self, draft: Draft, replaces: str | None, vector: Matrix | None = None
    ) -> tuple[merge.Verdict, Matrix | None]:
        """Decide what to do with a draft; return the verdict and the draft's vector if it was computed."""
        where = self._limited({})
        same = [entry for entry in self._store.same_text(draft.text) if where.admits(entry)]
        if same:  # no model is needed
            known = min(same, key=lambda entry: TRUST_LEVELS.index(entry.trust))
            return merge.repetition(draft, known, sentence("history.repeated")), None
        self._follower.follow(embed=False)
        vector = self._follower.vector(draft.text) if vector is None else vector
        near = self._follower.healing(lambda: merge.neighbours(self._store, self._follower, draft, vector))
        verdict = merge.judge(draft, [one for one in near if where.admits_workspace(one.entry)])
        if replaces and verdict.action == "add":
            verdict = self._replace_verdict(draft, replaces)
        return verdict, vector

    def _replace_verdict(self, draft: Draft, entry_id: str) -> merge.Verdict:
        old = self._store.load([entry_id]).get(entry_id)
        if old is None or old.state != "active" or not is_trusted_like(draft.trust, old.trust):
            return merge.Verdict("add")
        return merge.Verdict("supersede", (old,), sentence("history.no_longer"))

    def _refusal(self, draft: Draft, start_seq: int) -> str | None:
        """Return why a forgotten text is refused. Storing it again on purpose, later, clears the tombstone."""
        forgotten_seq = self._store.tombstone_seq(draft.text, draft.trust)
        if forgotten_seq is None:
            return None
        if draft.on_purpose and forgotten_seq <= start_seq:
            self._store.clear_tombstone(draft.text)
            return None
        return sentence("entry.forgotten")

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

        With ``if_seq`` the change is undone only if it has this sequence number.
        """
        full_id = self._store.complete_id(entry_id) if entry_id else None
        return editing.undo(self._store, entry_id=full_id, at=self._clock(), actor=actor, if_seq=if_seq)

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
        entry_id: str | None = None,
        *,
        query: str | None = None,
        session: str | None = None,
        source: str | None = None,
        since: float | None = None,
        until: float | None = None,
        erase: bool = True,
        dry_run: bool = False,
        actor: str = "owner",
        remove_copies: RemoveCopies | None = None,
    ) -> Receipt:
        """Erase every copy of some entries and return a receipt.

        Without ``erase`` the entries are hidden. `undo` restores them until the retention time is over and a cleanup
        erases them.

        Name the entries in exactly one way: by id, query, session, source, or creation time (``since``, ``until``).
        A query erases only a single certain match; otherwise nothing is erased and the receipt lists candidates.
        If ``actor`` is "agent", entries of the owner are not erased. They are staged, so that no search finds them,
        until the owner rejects or approves them. ``remove_copies`` receives the erased texts
        and removes copies in other places, such as in notes.
        """
        by_time = None if since is None and until is None else (since, until)
        if sum(way is not None for way in (entry_id, query, session, source, by_time)) != 1:
            raise WriteError(sentence("forget.how"))
        if query is not None:
            found = self.search(query, threshold=MIN_SIMILARITY, limit=MAX_CANDIDATES).hits
            hit = sure_hit(query, found)
            undone = [
                one.id
                for one in self._forgettable_undone(actor)
                if normal_form(one.text) == normal_form(query)
            ]
            if hit is None and not undone:
                return Receipt((), candidates=found, dry_run=dry_run)
            ids = [*([hit.entry.id] if hit else []), *undone]
        elif entry_id is not None:
            ids = [self._store.complete_id(entry_id)]
        else:
            where = EntryFilter(session=session, source=source, since=since, until=until, states=())
            undone = [entry.id for entry in self._forgettable_undone(actor) if where.admits(entry)]
            ids = [*(entry.id for entry in self._store.find(where)), *undone]
        if not erase:
            return self._hide(ids, actor, None if dry_run else remove_copies, dry_run=dry_run)
        hidden = self._staging.propose_forgetting(ids, actor=actor, dry_run=dry_run)
        own = [id_ for id_ in ids if id_ not in hidden]
        recalls = RecallFilter(session=session, since=since, until=until) if session or by_time else None
        receipt = self._eraser.erase(
            own,
            actor=actor,
            dry_run=dry_run,
            remove_copies=remove_copies,
            recalls=recalls if actor == "owner" else None,
        )
        if not hidden:
            return receipt
        waiting = sentence("forget.proposed", ids=", ".join(hidden))
        return replace(receipt, not_covered=(*receipt.not_covered, waiting))

    def _forgettable_undone(self, actor: str) -> builtins.list[Entry]:
        """Return the undone entries that the actor may forget: only the owner sees them."""
        return self.undone() if actor == "owner" else []

    def _hide(
        self, ids: Sequence[str], actor: str, remove_copies: RemoveCopies | None, *, dry_run: bool
    ) -> Receipt:
        texts = [entry.text for entry in self._store.load(ids).values()]
        removed, remaining = remove_copies(texts) if remove_copies and texts else ((), ())
        hidden = self._staging.hide(ids, actor=actor, dry_run=dry_run)
        days = f"{self._options.cleanup.retention_days:g}"
        kept = (sentence("forget.kept", days=days), *remaining) if hidden else ()
        return Receipt(hidden, (sentence("forget.hidden"), *removed) if hidden else (), kept, dry_run=dry_run)

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
        lines = list(exchange.read(text, at=self._clock()))
        if actor == "agent":
            return self._import_statements(lines, trust, actor, dry_run=dry_run)
        lines = [self._limit_trust(line, trust) for line in lines]
        imported = exchange.import_lines(self._store, lines, at=self._clock(), actor=actor, dry_run=dry_run)
        if dry_run:
            return imported
        self._follower.follow_later({})  # keywords now, so that the next search need not wait for them
        return imported

    def undo_import(self, entries: Mapping[str, int], *, actor: str = "owner") -> tuple[str, ...]:
        """Remove imported entries that have not changed since, and return their ids.

        ``entries`` are the ids and numbers of `Imported.entries`. An entry with another number stays.
        """
        return editing.undo_import(self._store, entries, at=self._clock(), actor=actor)

    def _limit_trust(self, line: exchange.EntryLine, trust: Trust) -> exchange.EntryLine:
        """Return a line with at most this trust."""
        entry = replace(line.entry, trust=least_trusted(line.entry.trust, trust))
        if trust != "owner" and entry.expires_at is None:
            entry = replace(entry, expires_at=expiry(entry.type, entry.importance, self._clock()))
        if trust != "owner" and self._options.approval != "none" and entry.state == "active":
            entry = replace(entry, state="staged")
        return exchange.EntryLine(entry, line.history if trust == "owner" else ())

    def _import_statements(
        self, lines: Sequence[exchange.EntryLine], trust: Trust, actor: str, *, dry_run: bool
    ) -> Imported:
        """Import the entries of a file as statements of a caller that is not the owner."""
        drafts = [
            Draft(
                line.entry.text,
                line.entry.type,
                category=line.entry.category,
                importance=line.entry.importance,
                confidence=line.entry.confidence,
                trust=least_trusted(line.entry.trust, trust),
                source=IMPORTED,
                tags=line.entry.tags,
                on_purpose=False,
            ).clean()
            for line in lines
            if line.entry.state == "active"
        ]
        if dry_run:
            known = sum(any(one.state == "active" for one in self._store.same_text(d.text)) for d in drafts)
            return Imported(len(drafts) - known, known)
        actions = [self.add_draft(draft, actor=actor).action for draft in drafts]
        refused, already = actions.count("refused"), actions.count("repeated")
        return Imported(len(actions) - refused - already, already, refused)

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

    def map(self, limit: int = MAX_POINTS) -> EntryMap:
        """Return the entries in force as points in two dimensions; similar entries are near each other."""
        return self._maps.build(limit)

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
