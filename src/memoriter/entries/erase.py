"""Forgetting that leaves nothing: every copy of an entry goes, and a receipt says which copies those were.

An erasure that is cut short is completed at the next opening. Copies that are not ours to touch (backups, exports,
what a model was told) are named in the receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.errors import MemoriterError
from memoriter.index.follow import Follower
from memoriter.records import EntryHit, Receipt
from memoriter.store import erasure
from memoriter.store.digests import normal_form
from memoriter.store.entry_rows import EntryFilter

if TYPE_CHECKING:
    from memoriter.store.entry_store import EntryStore

log = logs.get("entries")

SURE = 0.9  #: similarity from which one hit, far ahead of the next, is meant
AHEAD = 0.1
MAYBE = 0.3
OFFERED = 5

COVERED = (
    "the entry and the versions merged with it",
    "its history",
    "keywords",
    "vectors, the embedding cache, older versions of them, and the map",
    "the logs of both databases",
    "queries and reasons in the recall ledger",
)
NOT_COVERED = (
    "backups and exports made before",
    "prompts that it has entered already, and the transcripts of those sessions",
    "notes that people or agents wrote in files",
)
Elsewhere = Callable[[Sequence[str]], tuple[tuple[str, ...], tuple[str, ...]]]
"""Removes copies of texts that are not kept here: what went, and what stays, in words."""


class Eraser:
    """Forgets entries of one keeper."""

    def __init__(
        self,
        entries: EntryStore,
        following: Follower,
        clock: Callable[[], float],
        derived: Callable[[], None] = lambda: None,
    ) -> None:
        self.entries = entries
        self.following = following
        self._clock = clock
        self._derived = derived  #: takes away what else was made of the entries

    def erase(
        self,
        ids: Sequence[str],
        *,
        by: str,
        bury: bool = True,
        dry_run: bool = False,
        elsewhere: Elsewhere | None = None,
    ) -> Receipt:
        """Erase entries; ``elsewhere`` is given their texts and removes copies that are not kept here."""
        with self.entries.database.read() as connection:
            family = tuple(erasure.family(connection, ids))
            texts = sorted({text for id_ in family for text in erasure.texts(connection, id_)})
        if dry_run or not family:
            return Receipt(family, COVERED if family else (), NOT_COVERED if family else (), dry_run=dry_run)
        more, left = _removed(elsewhere, texts) if elsewhere else ((), ())
        with self.entries.database.write() as connection:
            digest = self.entries.digest if bury else None
            kind = "forget" if bury else "purge"
            for entry_id in family:
                erasure.erase(connection, entry_id, at=self._clock(), by=by, kind=kind, digest=digest)
        clean = self.complete()
        busy = (
            ()
            if clean
            else ("the databases' logs, which another process is reading now: they go when it ends",)
        )
        return Receipt(family, (*COVERED, *more), (*NOT_COVERED, *left, *busy))

    def complete(self) -> bool:
        """Take out of the derived index, and out of the logs, what is gone from the truth."""
        with self.entries.database.read() as connection:
            hashes = erasure.unfinished(connection)
        self._derived()
        self.following.follow()
        batched = self.following.embedder
        clean = self.following.index.erase(hashes, batched.identity if batched else None)
        with self.entries.database.write() as connection:
            erasure.finish(connection, hashes)
        return self.entries.database.truncate_log() and clean

    def pending(self) -> bool:
        """Whether an erasure was cut short."""
        with self.entries.database.read() as connection:
            return erasure.count(connection) > 0


def _removed(elsewhere: Elsewhere, texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What went elsewhere, and what stayed there: a copy out of reach keeps nobody from erasing the entry itself."""
    try:
        return elsewhere(texts)
    except (MemoriterError, OSError) as error:
        log.warning("not all copies elsewhere could be removed: %s", error)
        return (), (str(error),)


def surely(query: str, hits: Sequence[EntryHit]) -> EntryHit | None:
    """The one hit that a query surely means; None when it could be another."""
    same = [hit for hit in hits if normal_form(hit.entry.text) == normal_form(query)]
    if len(same) == 1:
        return same[0]
    ranked = sorted(hits, key=lambda hit: -hit.similarity)
    if ranked and ranked[0].similarity >= SURE:
        next_best = ranked[1].similarity if len(ranked) > 1 else 0.0
        return ranked[0] if ranked[0].similarity - next_best >= AHEAD else None
    return None


def everything(
    session: str | None, source: str | None, since: float | None, until: float | None
) -> EntryFilter:
    """All entries of a session, of a source or of a time, whatever their state."""
    return EntryFilter(session=session, source=source, since=since, until=until, states=())
