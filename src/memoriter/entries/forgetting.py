"""Forgetting entries: which ones a request names, and whether they are hidden, erased or proposed to the owner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memoriter.entries.erase import MAX_CANDIDATES, Eraser, OtherCopies, sure_hit
from memoriter.entries.search import MIN_SIMILARITY, FoundEntries
from memoriter.entries.staging import StagingArea
from memoriter.errors import WriteError
from memoriter.records import Entry, EntryHit, EntryState, Explanation, Receipt, Selection
from memoriter.sentences import sentence
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import EntryStore
from memoriter.store.ledger import RecallFilter
from memoriter.text import query_terms
from memoriter.text.words import normal_form

#: The states of entries that no search finds, and that an erasure by a query finds by their words.
UNSEARCHED: tuple[EntryState, ...] = ("rejected", "staged", "superseded", "expired")
#: A hidden entry is a candidate if it contains this share of the words of a query.
MIN_WORDS = 0.5


class EntryForgetter:
    """Hides and erases entries of one store."""

    def __init__(
        self,
        store: EntryStore,
        search: Callable[..., FoundEntries],
        staging: StagingArea,
        eraser: Eraser,
        retention_days: float,
    ) -> None:
        self._store = store
        self._search = search
        self._staging = staging
        self._eraser = eraser
        self._retention_days = retention_days

    def forget(
        self, what: str | Selection, *, actor: str, dry_run: bool, copies: OtherCopies | None
    ) -> Receipt:
        """Hide entries. No note is changed."""
        selection = selected(what)
        ids, candidates = self._ids(selection, actor, hidden=False)
        proposed = self._staging.propose_forgetting(ids, actor=actor, dry_run=dry_run)
        mine = [id_ for id_ in ids if id_ not in proposed]
        hidden = self._staging.hide(mine, actor=actor, dry_run=dry_run)
        texts = [entry.text for entry in self._store.load([*hidden, *proposed]).values()]
        mentions = copies.mentions(_with_query(texts, selection))[0] if copies else ()
        kept = (sentence("forget.kept", days=f"{self._retention_days:g}"),) if hidden else ()
        receipt = Receipt(
            hidden,
            (sentence("forget.hidden"),) if hidden else (),
            kept,
            () if ids else candidates,
            dry_run,
            mentions=mentions,
        )
        return _with_proposed(receipt, proposed)

    def erase(
        self, what: str | Selection, *, actor: str, dry_run: bool, copies: OtherCopies | None
    ) -> Receipt:
        """Erase every copy of entries."""
        selection = selected(what)
        ids, candidates = self._ids(selection, actor, hidden=True)
        if selection.query is not None and not ids:
            mentions = copies.mentions([selection.query])[0] if copies else ()
            return Receipt((), candidates=candidates, dry_run=dry_run, mentions=mentions)
        proposed = self._staging.propose_forgetting(ids, actor=actor, dry_run=dry_run)
        receipt = self._eraser.erase(
            [id_ for id_ in ids if id_ not in proposed],
            actor=actor,
            dry_run=dry_run,
            copies=copies,
            query=selection.query,
            recalls=_recalls(selection) if actor == "owner" else None,
        )
        return _with_proposed(receipt, proposed)

    def _ids(self, what: Selection, actor: str, *, hidden: bool) -> tuple[list[str], tuple[EntryHit, ...]]:
        """Return the ids of the selected entries, and what a query could mean. ``hidden`` finds hidden ones too."""
        if what.id is not None:
            return [self._store.complete_id(what.id)], ()
        # Only the owner sees what was undone.
        undone = self._store.undone() if actor == "owner" and hidden else []
        if what.query is not None:
            return self._meant(what.query, undone, hidden=hidden)
        where = EntryFilter(
            session=what.session, source=what.source, since=what.since, until=what.until, states=()
        )
        known = [entry.id for entry in self._store.find(where) if hidden or entry.state != "rejected"]
        return [*known, *(entry.id for entry in undone if where.admits(entry))], ()

    def _meant(
        self, query: str, undone: Sequence[Entry], *, hidden: bool
    ) -> tuple[list[str], tuple[EntryHit, ...]]:
        """Return the ids of the entries that a query certainly means, and what it could mean."""
        found = self._search(query, threshold=MIN_SIMILARITY, limit=MAX_CANDIDATES).hits
        unsearched = self._store.find(EntryFilter(states=UNSEARCHED)) if hidden else []
        by_words = _hits_by_words(query, unsearched)
        same = [one.id for one in (*undone, *unsearched) if normal_form(one.text) == normal_form(query)]
        hit = sure_hit(query, found)
        if hit or same:
            return [*([hit.entry.id] if hit else []), *same], ()
        if not found and len(by_words) == 1 and by_words[0].similarity == 1.0:
            return [by_words[0].entry.id], ()
        return [], (*found, *by_words)[:MAX_CANDIDATES]


def selected(what: str | Selection) -> Selection:
    """Return a selection that names entries in exactly one way. A string is an id."""
    what = Selection(id=what) if isinstance(what, str) else what
    by_time = None if what.since is None and what.until is None else (what.since, what.until)
    if sum(way is not None for way in (what.id, what.query, what.session, what.source, by_time)) != 1:
        raise WriteError(sentence("forget.how"))
    return what


def _hits_by_words(query: str, entries: Sequence[Entry]) -> list[EntryHit]:
    """Return the entries that contain most words of a query, best first. The index does not contain them."""
    words = set(query_terms(query))
    shares = [(len(words.intersection(query_terms(one.text))) / max(1, len(words)), one) for one in entries]
    best = sorted((one for one in shares if one[0] >= MIN_WORDS), key=lambda one: -one[0])
    return [EntryHit(entry, share, share, Explanation("words", ())) for share, entry in best]


def _with_query(texts: list[str], what: Selection) -> list[str]:
    return texts if what.query is None else [*texts, what.query]


def _recalls(what: Selection) -> RecallFilter | None:
    """Return the recalls whose queries are erased too, whatever they say."""
    if what.session is None and what.since is None and what.until is None:
        return None
    return RecallFilter(session=what.session, since=what.since, until=what.until)


def _with_proposed(receipt: Receipt, proposed: Sequence[str]) -> Receipt:
    if not proposed:
        return receipt
    waiting = sentence("forget.proposed", ids=", ".join(proposed))
    return replace(receipt, not_covered=(*receipt.not_covered, waiting))
