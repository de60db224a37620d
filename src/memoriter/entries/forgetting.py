"""Forgetting entries: which ones a request names, and whether they are erased, hidden or proposed to the owner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memoriter.entries.erase import MAX_CANDIDATES, Eraser, RemoveCopies, sure_hit
from memoriter.entries.search import MIN_SIMILARITY, FoundEntries
from memoriter.entries.staging import StagingArea
from memoriter.errors import WriteError
from memoriter.records import Entry, EntryHit, Receipt
from memoriter.sentences import sentence
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import EntryStore
from memoriter.store.ledger import RecallFilter
from memoriter.text.words import normal_form


class EntryForgetter:
    """Forgets entries of one store."""

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
        """Erase or hide the entries that are named in exactly one way, and return a receipt."""
        by_time = None if since is None and until is None else (since, until)
        if sum(way is not None for way in (entry_id, query, session, source, by_time)) != 1:
            raise WriteError(sentence("forget.how"))
        where = EntryFilter(session=session, source=source, since=since, until=until, states=())
        if query is not None:
            ids, candidates = self._meant(query, actor)
            if not ids:
                return Receipt((), candidates=candidates, dry_run=dry_run)
        elif entry_id is not None:
            ids = [self._store.complete_id(entry_id)]
        else:
            undone = [entry.id for entry in self._forgettable_undone(actor) if where.admits(entry)]
            ids = [*(entry.id for entry in self._store.find(where)), *undone]
        if not erase:
            return self._hide(ids, actor, None if dry_run else remove_copies, dry_run=dry_run)
        recalls = RecallFilter(session=session, since=since, until=until) if session or by_time else None
        return self._erase(ids, actor, remove_copies, recalls, dry_run=dry_run)

    def _meant(self, query: str, actor: str) -> tuple[list[str], tuple[EntryHit, ...]]:
        """Return the ids of the entries that a query certainly means, and what it could mean."""
        found = self._search(query, threshold=MIN_SIMILARITY, limit=MAX_CANDIDATES).hits
        hit = sure_hit(query, found)
        undone = self._forgettable_undone(actor)
        same = [one.id for one in undone if normal_form(one.text) == normal_form(query)]
        return [*([hit.entry.id] if hit else []), *same], found

    def _erase(
        self,
        ids: Sequence[str],
        actor: str,
        remove_copies: RemoveCopies | None,
        recalls: RecallFilter | None,
        *,
        dry_run: bool,
    ) -> Receipt:
        hidden = self._staging.propose_forgetting(ids, actor=actor, dry_run=dry_run)
        receipt = self._eraser.erase(
            [id_ for id_ in ids if id_ not in hidden],
            actor=actor,
            dry_run=dry_run,
            remove_copies=remove_copies,
            recalls=recalls if actor == "owner" else None,
        )
        if not hidden:
            return receipt
        waiting = sentence("forget.proposed", ids=", ".join(hidden))
        return replace(receipt, not_covered=(*receipt.not_covered, waiting))

    def _forgettable_undone(self, actor: str) -> list[Entry]:
        """Return the undone entries that the actor may forget: only the owner sees them."""
        return self._store.undone() if actor == "owner" else []

    def _hide(
        self, ids: Sequence[str], actor: str, remove_copies: RemoveCopies | None, *, dry_run: bool
    ) -> Receipt:
        texts = [entry.text for entry in self._store.load(ids).values()]
        removed, remaining = remove_copies(texts) if remove_copies and texts else ((), ())
        hidden = self._staging.hide(ids, actor=actor, dry_run=dry_run)
        days = f"{self._retention_days:g}"
        kept = (sentence("forget.kept", days=days), *remaining) if hidden else ()
        return Receipt(hidden, (sentence("forget.hidden"), *removed) if hidden else (), kept, dry_run=dry_run)
