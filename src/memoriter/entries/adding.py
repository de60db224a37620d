"""Adding statements: a draft is judged against what is known, and written as an entry or as a change of one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from memoriter.entries import merge
from memoriter.entries.drafts import Draft
from memoriter.entries.staging import Approval, StagingArea
from memoriter.records import TRUST_LEVELS, Remembered, is_trusted_like
from memoriter.sentences import join, sentence
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import Edit, EntryStore
from memoriter.store.erasure import vector_hash

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix
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
        self.staging = StagingArea(store, follower, approval, self._judge, clock)
        self._store = store
        self._follower = follower
        self._where = where
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

    def _replace_rejected(self, draft: Draft, by_id: str, at: float) -> list[Edit]:
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
        same = [entry for entry in self._store.same_text(draft.text) if self._where.admits(entry)]
        if same:  # no model is needed
            known = min(same, key=lambda entry: TRUST_LEVELS.index(entry.trust))
            return merge.repetition(draft, known, sentence("history.repeated")), None
        self._follower.follow(embed=False)
        vector = self._follower.vector(draft.text) if vector is None else vector
        near = self._follower.healing(lambda: merge.neighbours(self._store, self._follower, draft, vector))
        verdict = merge.judge(draft, [one for one in near if self._where.admits_workspace(one.entry)])
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
