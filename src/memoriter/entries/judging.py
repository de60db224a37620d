"""Judging a draft against what is known, in two steps, so that no writer waits for the index.

`Judge.look_up` asks the derived index, before the transaction. An embedder may be slow, and another process may be
writing the index. `Judge.judge` decides inside the transaction, from the entries as they are stored then: those that
the index proposed, and those that have changed since the index was written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.entries import merge
from memoriter.entries.drafts import Draft
from memoriter.entries.merge import Nearby, Verdict
from memoriter.errors import StoreError
from memoriter.records import TRUST_LEVELS, Entry, is_trusted_like
from memoriter.sentences import sentence
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import EntryStore

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix
    from memoriter.index.follow import Follower

log = logs.get("entries")


class Judge:
    """Judges drafts against the entries of one store that ``where`` admits."""

    def __init__(self, store: EntryStore, follower: Follower, where: EntryFilter) -> None:
        self._store = store
        self._follower = follower
        self._where = where

    def look_up(self, draft: Draft) -> Nearby:
        """Return what the index knows near a draft. If it cannot be used, the newest entries are compared instead."""
        seq = self._store.seq()
        if self._same(draft):
            return Nearby({}, seq)  # no model is needed
        vector = self._follower.vector(draft.text)
        self._follower.try_follow(embed=False)
        try:
            return self._follower.healing(lambda: self._near(draft, vector))
        except StoreError as error:
            log.warning("a statement is compared with the newest entries only: %s", error)
            return Nearby({}, 0, vector)

    def _near(self, draft: Draft, vector: Matrix | None) -> Nearby:
        seq = self._follower.indexed_seq()  # before the lookup, which may see later changes
        return Nearby(merge.cosines_near(self._follower, draft, vector), seq, vector)

    def judge(self, draft: Draft, replaces: str | None, near: Nearby) -> Verdict:
        """Decide what to do with a draft. ``replaces`` is the id of an entry that it should supersede."""
        if same := self._same(draft):
            known = min(same, key=lambda entry: TRUST_LEVELS.index(entry.trust))
            return merge.repetition(draft, known, sentence("history.repeated"))
        known_near, uncompared = merge.neighbours(self._store, near)
        verdict = merge.judge(draft, [one for one in known_near if self._where.admits_workspace(one.entry)])
        if replaces and verdict.action == "add":
            verdict = self._replace_verdict(draft, replaces)
        return replace(verdict, uncompared=uncompared)

    def _same(self, draft: Draft) -> list[Entry]:
        """Return the entries in force that say exactly this."""
        return [entry for entry in self._store.same_text(draft.text) if self._where.admits(entry)]

    def _replace_verdict(self, draft: Draft, entry_id: str) -> Verdict:
        old = self._store.load([entry_id]).get(entry_id)
        if old is None or old.state != "active" or not is_trusted_like(draft.trust, old.trust):
            return Verdict("add")
        return Verdict("supersede", (old,), sentence("history.no_longer"))
