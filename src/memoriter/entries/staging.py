"""What waits for the owner: statements that are kept but not believed until somebody approves them.

A staged entry is truth like any other, with events and undo, but only an active one is found or recalled. Approving
judges it beside what is known then, as if it had just been said. What is rejected is not staged again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from memoriter.entries import merge
from memoriter.entries.drafts import Draft
from memoriter.errors import EditConflict, NotFound, WriteError
from memoriter.records import Entry, Remembered
from memoriter.store.entry_store import Edit, EntryStore

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix
    from memoriter.entries.merge import Verdict
    from memoriter.index.follow import Follower

Approval = Literal["none", "agent", "all"]
"""Whose statements wait: nobody's, those of agents, or also what is noticed in passing."""

RETRIES = 5  #: of a judgement that others' changes have overtaken
WAITS = "it waits until the owner approves it"

Judge = Callable[[Draft, str | None], "tuple[Verdict, Matrix | None]"]


class Staging:
    """Stages, approves and rejects for one keeper."""

    def __init__(
        self,
        entries: EntryStore,
        following: Follower,
        approval: Approval,
        judge: Judge,
        clock: Callable[[], float],
    ) -> None:
        self.entries = entries
        self.following = following
        self.approval = approval
        self._judge = judge
        self._clock = clock

    def waits(self, draft: Draft) -> bool:
        """Whether this statement needs the owner's word. What the owner asks for on purpose never does."""
        if self.approval == "all":
            return draft.origin != "owner" or not draft.on_purpose
        return self.approval == "agent" and draft.origin in ("agent", "untrusted")

    def stage(self, draft: Draft, begun: int, *, by: str, replaces: str | None = None) -> Remembered:
        """Keep a statement aside; on the disk when this returns."""
        with self.entries.transaction():
            buried = self.entries.buried_at(draft.text)
            if buried is not None and not (draft.on_purpose and buried <= begun):
                note = "this was forgotten on request, and is not taken in again by itself"
                return Remembered(None, "refused", note=note)
            known = {one.state: one for one in self.entries.same_text(draft.text)}
            if "active" in known:
                return Remembered(known["active"], "repeated", note="said before")
            if "rejected" in known:
                return Remembered(None, "refused", note="the owner has rejected this")
            at, old = self._clock(), known.get("staged")
            if old is not None:
                edit = Edit("repeat", replace(old, repetitions=old.repetitions + 1, updated_at=at), old)
            else:
                related = (replaces,) if replaces else ()
                edit = Edit("stage", replace(draft.entry(at), state="staged", related=related))
            (made,) = self.entries.apply([edit], at=at, by=by)
        return Remembered(made, "staged", note=WAITS)

    def approve(self, ids: Sequence[str], *, by: str = "owner") -> list[Remembered]:
        """Let staged entries come into force, each judged beside what is known; what became of each."""
        return [self._approved(entry.id, by) for entry in self._staged(ids)]

    def reject(self, ids: Sequence[str], *, by: str = "owner") -> tuple[Entry, ...]:
        """Refuse staged entries, all of them or none; they are kept aside for a while, so that it can be undone."""
        with self.entries.transaction():
            at = self._clock()
            edits = [
                Edit("reject", replace(one, state="rejected", updated_at=at), one)
                for one in self._staged(ids)
            ]
            return self.entries.apply(edits, at=at, by=by)

    def _staged(self, ids: Sequence[str]) -> list[Entry]:
        """The entries of these ids, or of beginnings of ids; all must be waiting."""
        whole = list(dict.fromkeys(self.entries.complete_id(one) for one in ids))
        found = self.entries.load(whole)
        for entry_id in whole:
            if entry_id not in found:
                raise NotFound(f"there is no entry {entry_id!r}")
            if found[entry_id].state != "staged":
                state = found[entry_id].state
                raise WriteError(f"the entry {entry_id} does not wait for anybody: it is {state}")
        return [found[entry_id] for entry_id in whole]

    def _approved(self, entry_id: str, by: str) -> Remembered:
        for _ in range(RETRIES):
            with contextlib.suppress(EditConflict):
                return self._try(entry_id, by)
        return self._try(entry_id, by)

    def _try(self, entry_id: str, by: str) -> Remembered:
        """Judge, then write, unless somebody has changed meanwhile what the judgement rests on."""
        seen = self.entries.seq()
        (staged,) = self._staged([entry_id])
        draft = draft_of(staged)
        verdict, vector = self._judge(draft, staged.related[0] if staged.related else None)
        with self.entries.transaction():
            if self.entries.seq() != seen:
                raise EditConflict("the entries were changed meanwhile")
            self.entries.exhume(draft.text)
            at = self._clock()
            made = self.entries.apply(merge.approval(verdict, staged, draft, at), at=at, by=by)
        self.following.follow({} if vector is None else {made[0].id: vector})
        return merge.outcome(verdict, made[0])


def draft_of(entry: Entry) -> Draft:
    """What was said, as it was when it was staged."""
    return Draft(
        entry.text,
        entry.type,
        category=entry.category,
        importance=entry.importance,
        confidence=entry.confidence,
        origin=entry.origin,
        session=entry.session,
        source=entry.source,
        tags=entry.tags,
        valid_from=entry.valid_from,
    )
