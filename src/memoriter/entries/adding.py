"""Adding statements: a draft is judged against what is known, and written as an entry or as a change of one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from memoriter.entries import merge
from memoriter.entries.drafts import Draft
from memoriter.entries.judging import Judge
from memoriter.entries.staging import Approval, StagingArea, refusal
from memoriter.records import Remembered
from memoriter.sentences import join, sentence
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import Edit, EntryStore
from memoriter.store.erasure import vector_hash

if TYPE_CHECKING:
    from memoriter.index.follow import Follower


class EntryAdder:
    """Adds statements to one store, or stages them if they need approval.

    ``where`` limits the known entries that a draft is compared with. New entries record ``workspace``.
    """

    def __init__(
        self,
        store: EntryStore,
        follower: Follower,
        approval: Approval,
        where: EntryFilter,
        clock: Callable[[], float],
        *,
        workspace: str | None = None,
    ) -> None:
        self._judge = Judge(store, follower, where)
        self.staging = StagingArea(store, follower, approval, self._judge, clock)
        self._store = store
        self._follower = follower
        self._clock = clock
        self._workspace = workspace
        self._judging = threading.Lock()

    def add(self, draft: Draft, *, actor: str, replaces: str | None = None) -> Remembered:
        """Add a draft and return the outcome."""
        clean = replace(draft.clean(), workspace=draft.workspace or self._workspace)
        outcome = self._add_clean(clean, actor, replaces)
        if not draft.loses_text(clean):
            return outcome
        return replace(outcome, note=join(outcome.note, sentence("entry.redacted")))

    def _add_clean(self, draft: Draft, actor: str, replaces: str | None) -> Remembered:
        start_seq = self._store.seq()
        if self.staging.requires_approval(draft):
            return self.staging.stage(draft, start_seq, actor=actor, replaces=replaces)
        with self._judging:
            near = self._judge.look_up(draft)
            with self._store.transaction():  # other processes wait: nothing inside uses the index or a model
                remembered = self._judge_and_write(draft, start_seq, actor, replaces, near)
            new = {} if near.vector is None else {vector_hash(draft.text): near.vector}
            self._follower.try_follow(new, embed=False)  # a search computes the vectors of others
            return remembered

    def _judge_and_write(
        self, draft: Draft, start_seq: int, actor: str, replaces: str | None, near: merge.Nearby
    ) -> Remembered:
        if why := refusal(self._store, draft, start_seq):
            return Remembered(None, "refused", note=why)
        self._store.clear_tombstone(draft.text)
        verdict = self._judge.judge(draft, replaces, near)
        at = self._clock()
        edits = merge.edits(verdict, draft, at)
        edits = [*edits, *self._replace_rejected(draft, edits[0].entry_id, at)]
        entries = self._store.apply(edits, at=at, by=actor)
        return merge.outcome(verdict, entries[0])

    def _replace_rejected(self, draft: Draft, by_id: str, at: float) -> list[Edit]:
        """Supersede rejected entries that say the same. A cleanup would otherwise erase the new one with them."""
        rejected = [
            one for one in self._store.same_text(draft.text) if one.state == "rejected" and one.id != by_id
        ]
        return [
            Edit("supersede", replace(one, state="superseded", superseded_by=by_id, updated_at=at), one)
            for one in rejected
        ]
