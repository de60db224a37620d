"""Erasing entries: every copy is removed, and a receipt says which copies those were.

An interrupted erasure is completed when the entries are opened again. The receipt also names the copies that cannot be
removed, such as backups, exports and prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from memoriter import logs
from memoriter.errors import LockTimeout, MemoriterError, StoreError, StoreUnavailable
from memoriter.files.locks import LOCK_WAIT_S
from memoriter.index.follow import Follower
from memoriter.records import EntryHit, NoteLine, Receipt
from memoriter.sentences import sentence
from memoriter.store.ledger import Quotes, RecallFilter
from memoriter.text import query_terms
from memoriter.text.words import normal_form

if TYPE_CHECKING:
    from memoriter.store.entry_store import EntryStore

log = logs.get("entries")

#: A query means one hit for certain if its similarity reaches this and it leads the next hit by `SURE_LEAD`.
SURE_SIMILARITY = 0.9
SURE_LEAD = 0.1
#: Maximum number of candidates that are offered when no hit is certain.
MAX_CANDIDATES = 5

NOT_COVERED = tuple(sentence(f"forget.{copy}") for copy in ("backups", "prompts"))


class OtherCopies(Protocol):
    """Copies of entries outside the entries, such as in notes."""

    def erase(self, texts: Sequence[str], *, dry_run: bool) -> tuple[tuple[NoteLine, ...], tuple[str, ...]]:
        """Erase the lines that say exactly this. Return them, and descriptions of what remains."""

    def mentions(self, texts: Sequence[str]) -> tuple[tuple[str, ...], bool]:
        """Return citations of the places that say it, and whether these are all."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to erase, as of the change with this number."""

    seq: int
    family: tuple[str, ...]
    texts: Sequence[str]
    words: Sequence[str]
    quotes: Quotes


class Eraser:
    """Erases entries of one store."""

    def __init__(
        self,
        store: EntryStore,
        follower: Follower,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._follower = follower
        self._clock = clock

    def erase(
        self,
        ids: Sequence[str],
        *,
        actor: str,
        tombstones: bool = True,
        dry_run: bool = False,
        copies: OtherCopies | None = None,
        query: str | None = None,
        recalls: RecallFilter | None = None,
    ) -> Receipt:
        """Erase entries and the versions merged with them. Entries that they had superseded are in force again.

        ``tombstones`` prevents the same text from being captured again. ``copies`` are erased too where they can be,
        and the receipt names places that still say the texts or the query. ``recalls`` are recalls whose queries are
        erased too, whatever they say.
        """
        if recalls is not None and not dry_run:
            self._store.erase_recalls(recalls)
        plan = self._plan(ids)
        if not plan.family:
            return Receipt((), dry_run=dry_run)
        lines, mentions, remaining = _erase_copies(copies, plan.texts, query, dry_run=dry_run)
        if dry_run:
            kept = (*self._not_covered(), *remaining)
            return Receipt(plan.family, self._covered(), kept, (), dry_run, lines, mentions)
        with self._store.transaction():
            if self._store.erased_since(plan.seq, plan.family):
                plan = self._plan(ids)
            quotes = self._store.quotes(plan.family, plan.words, plan.quotes)
            self._store.erase(plan.family, quotes, at=self._clock(), by=actor, tombstones=tombstones)
        pending = self._complete_now()
        kept = (*self._not_covered(), *remaining, *pending)
        return Receipt(plan.family, self._covered(), kept, note_lines=lines, mentions=mentions)

    def _plan(self, ids: Sequence[str]) -> _Plan:
        """Find what to erase. This reads all entries and all recalls, so it is done before the transaction."""
        seq, family = self._store.seq(), tuple(self._store.family(ids))
        texts = self._store.texts(family)
        words = self._distinctive_words(texts, family)
        return _Plan(seq, family, texts, words, self._store.quotes(family, words))

    def _distinctive_words(self, texts: Sequence[str], family: Sequence[str]) -> list[str]:
        """Return the words of forgotten texts that no other entry contains, and the texts themselves."""
        others = "\n".join(self._store.texts_without(family)).casefold()
        words = {word for text in texts for word in query_terms(text)}
        return [*texts, *(word for word in words if len(word) > 1 and word.casefold() not in others)]

    def _covered(self) -> tuple[str, ...]:
        copies = (f"forget.{copy}" for copy in ("entry", "history", "keywords", "vectors"))
        return tuple(map(sentence, (*copies, self._store.database.traces.removed, "forget.ledger")))

    def _not_covered(self) -> tuple[str, ...]:
        kept = (*NOT_COVERED, *(sentence(code) for code in self._store.database.traces.kept))
        remote = self._follower.index.remote if self._follower.embedder else None
        return (*kept, sentence("forget.remote", store=remote)) if remote else kept

    def resume(self) -> None:
        """Complete an erasure that was interrupted. If the index cannot be written now, the next start does it.

        An erasure that another process is completing is left to it.
        """
        if self.is_pending():
            self._complete_now(wait_s=0.0)

    def _complete_now(self, wait_s: float = LOCK_WAIT_S) -> tuple[str, ...]:
        """Complete the erasure, or return why it is completed later."""
        try:
            return self.complete(wait_s)
        except (LockTimeout, StoreError, OSError) as error:
            if not isinstance(error, LockTimeout):
                log.warning("the index still contains forgotten entries: %s", error)
            return (sentence("forget.index_pending", why=str(error).rstrip(".")),)

    def complete(self, wait_s: float = LOCK_WAIT_S) -> tuple[str, ...]:
        """Remove erased texts from the derived index and from the databases' logs. One process does so at a time.

        Return what could not be removed yet: logs that another process reads, or vectors on a machine that does not
        answer. The latter are deleted when the entries are opened again.
        """
        hashes = self._store.unfinished()
        self._follower.follow()
        batched = self._follower.embedder
        pending: tuple[str, ...] = ()
        try:
            identity = batched.identity if batched else None
            with self._follower.index.lock("erasure", wait_s):
                clean = self._follower.healing(lambda: self._follower.index.erase(hashes, identity))
        except StoreUnavailable as error:
            log.warning("the vectors of forgotten entries are not deleted yet: %s", error)
            store, why = self._follower.index.remote or self._follower.index.engine, str(error).rstrip(".")
            clean, pending = True, (sentence("forget.remote_pending", store=store, why=why),)
        else:
            self._store.finish(hashes)
        left = self._follower.index.left_elsewhere
        pending = (*pending, *(sentence("forget.remote_unused", store=store) for store in left))
        if self._store.database.purge() and clean:
            return pending
        return (*pending, sentence(self._store.database.traces.busy))

    def is_pending(self) -> bool:
        """Return whether an erasure was interrupted."""
        return bool(self._store.unfinished())


def _erase_copies(
    copies: OtherCopies | None, texts: Sequence[str], query: str | None, *, dry_run: bool
) -> tuple[tuple[NoteLine, ...], tuple[str, ...], tuple[str, ...]]:
    """Erase copies in other places. Return their lines, the places that still say it, and what else remains.

    If that fails, the entry itself is erased anyway and the receipt says so.
    """
    anywhere = sentence("forget.notes")
    if copies is None:
        return (), (), (anywhere,)
    try:
        lines, left = copies.erase(texts, dry_run=dry_run)
        places, complete = copies.mentions([*texts, query] if query else texts)
    except (MemoriterError, OSError) as error:
        log.warning("not all copies elsewhere could be removed: %s", error)
        return (), (), (anywhere, str(error))
    return lines, places, left if complete else (anywhere, *left)


def sure_hit(query: str, hits: Sequence[EntryHit]) -> EntryHit | None:
    """Return the one hit that a query certainly means; None if it could be another."""
    same = [hit for hit in hits if normal_form(hit.entry.text) == normal_form(query)]
    if len(same) == 1:
        return same[0]
    ranked = sorted(hits, key=lambda hit: -hit.similarity)
    if ranked and ranked[0].similarity >= SURE_SIMILARITY:
        next_best = ranked[1].similarity if len(ranked) > 1 else 0.0
        return ranked[0] if ranked[0].similarity - next_best >= SURE_LEAD else None
    return None
