"""Entries that wait for the owner's approval.

A staged entry is stored like any other, with events and undo, but only active entries are found or recalled. Approving
an entry judges it against what is known then, as if it had just been said. A rejected text is not staged again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from memoriter.entries import merge
from memoriter.entries.drafts import Draft
from memoriter.errors import NotFound, WriteError
from memoriter.records import Entry, Remembered, is_trusted_like
from memoriter.sentences import sentence
from memoriter.store.entry_store import Edit, EntryStore
from memoriter.store.erasure import vector_hash

if TYPE_CHECKING:
    from memoriter.entries.judging import Judge
    from memoriter.index.follow import Follower

Approval = Literal["none", "agent", "all"]
"""The statements that need approval: none, those of agents, or also those that were captured automatically."""

STAGED_NOTE = sentence("entry.staged")


class StagingArea:
    """Stages, approves and rejects entries of one store."""

    def __init__(
        self,
        store: EntryStore,
        follower: Follower,
        approval: Approval,
        judge: Judge,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._follower = follower
        self._approval = approval
        self._judge = judge
        self._clock = clock

    def requires_approval(self, draft: Draft) -> bool:
        """Return whether a draft needs the owner's approval. A draft that the owner adds on purpose never does."""
        if self._approval == "all":
            return draft.trust != "owner" or not draft.on_purpose
        return self._approval == "agent" and draft.trust != "owner"

    def stage(self, draft: Draft, start_seq: int, *, actor: str, replaces: str | None = None) -> Remembered:
        """Store a draft as a staged entry. It is on disk when this returns."""
        with self._store.transaction():
            if why := refusal(self._store, draft, start_seq):
                return Remembered(None, "refused", note=why)
            known = {one.state: one for one in self._store.same_text(draft.text)}
            if "active" in known and is_trusted_like(known["active"].trust, draft.trust):
                return Remembered(known["active"], "repeated", note=sentence("history.repeated"))
            if "rejected" in known:
                return Remembered(None, "refused", note=sentence("entry.rejected"))
            at, old = self._clock(), known.get("staged")
            if old is not None:
                edit = _stage_again(old, draft, at)
            else:
                related = (replaces,) if replaces else ()
                edit = Edit("stage", replace(draft.entry(at), state="staged", related=related))
            (made,) = self._store.apply([edit], at=at, by=actor)
        return Remembered(made, "staged", note=STAGED_NOTE)

    def approve(self, ids: Sequence[str], *, actor: str = "owner") -> list[Remembered]:
        """Put staged entries in force and return the outcome for each."""
        return [self._approve(entry, actor) for entry in self._load_staged(ids)]

    def reject(self, ids: Sequence[str], *, actor: str = "owner") -> tuple[Entry, ...]:
        """Reject staged entries, all of them or none. They are kept for a while so that this can be undone."""
        with self._store.transaction():
            at = self._clock()
            edits = [
                Edit("reject", replace(one, state="rejected", updated_at=at), one)
                for one in self._load_staged(ids)
            ]
            return self._store.apply(edits, at=at, by=actor)

    def hide(self, ids: Sequence[str], *, actor: str, dry_run: bool = False) -> tuple[str, ...]:
        """Reject entries in any state, with the versions merged with them. Return their ids.

        `undo` restores them until a cleanup erases them after the retention time. Their texts are not captured again.
        """
        with self._store.transaction():
            known, at = self._store.load(self._store.family(ids)), self._clock()
            edits = [
                Edit("reject", replace(one, state="rejected", updated_at=at), one)
                for one in known.values()
                if one.state != "rejected"
            ]
            for one in self._store.apply(edits, at=at, by=actor) if edits and not dry_run else ():
                self._store.add_tombstone(one.text, at=at, seq=one.seq)
        self._follower.try_follow()
        return tuple(edit.entry_id for edit in edits) or tuple(known)

    def propose_forgetting(self, ids: Sequence[str], *, actor: str, dry_run: bool = False) -> tuple[str, ...]:
        """Stage the entries of the owner that an agent wants to forget. Return the ids that only the owner may erase.

        An entry that shares its history with one of the owner counts as the owner's.
        """
        if actor != "agent":
            return ()
        with self._store.transaction():
            families = {id_: self._store.family([id_]) for id_ in ids}
            known = self._store.load({id_ for family in families.values() for id_ in family})
            owned = {id_ for id_, entry in known.items() if entry.trust == "owner"}
            owners = tuple(id_ for id_, family in families.items() if not owned.isdisjoint(family))
            at, note = self._clock(), sentence("history.proposed")
            edits = [
                Edit("stage", replace(known[id_], state="staged", updated_at=at), known[id_], note)
                for id_ in owners
                if known[id_].state == "active" and not dry_run
            ]
            if edits:
                self._store.apply(edits, at=at, by=actor)
        self._follower.try_follow()
        return owners

    def _load_staged(self, ids: Sequence[str]) -> list[Entry]:
        """Return the entries with these ids, or prefixes of ids. All of them must be staged."""
        whole = list(dict.fromkeys(self._store.complete_id(one) for one in ids))
        found = self._store.load(whole)
        for entry_id in whole:
            if entry_id not in found:
                raise NotFound(sentence("entry.not_found", id=entry_id))
            if found[entry_id].state != "staged":
                state = found[entry_id].state
                raise WriteError(sentence("entry.not_staged", id=entry_id, state=state))
        return [found[entry_id] for entry_id in whole]

    def _approve(self, found: Entry, actor: str) -> Remembered:
        near = self._judge.look_up(draft_of(found))
        with self._store.transaction():
            (staged,) = self._load_staged([found.id])
            draft = draft_of(staged)
            verdict = self._judge.judge(draft, staged.related[0] if staged.related else None, near)
            self._store.clear_tombstone(draft.text)
            at = self._clock()
            entries = self._store.apply(merge.approval(verdict, staged, draft, at), at=at, by=actor)
        self._follower.try_follow({} if near.vector is None else {vector_hash(found.text): near.vector})
        return merge.outcome(verdict, entries[0])


def refusal(store: EntryStore, draft: Draft, start_seq: int) -> str | None:
    """Return why a forgotten text is refused; None if it may be stored.

    What is said on purpose after it was forgotten may be stored again, but an agent cannot bring back what the owner
    forgot. What an agent forgot is not forgotten for the owner.
    """
    tombstone = store.tombstone(draft.text)
    if tombstone is None or (draft.trust == "owner" and tombstone.by_agent):
        return None
    if draft.trust != "owner" and not tombstone.by_agent:
        return sentence("entry.forgotten_by_owner")
    if draft.on_purpose and tombstone.seq <= start_seq:
        return None
    return sentence("entry.forgotten")


def _stage_again(old: Entry, draft: Draft, at: float) -> Edit:
    """Count a repetition of a staged text. A more trusted speaker replaces the words and their trust together."""
    more_trusted = not is_trusted_like(old.trust, draft.trust)
    after = (
        replace(draft.entry(at), id=old.id, state="staged", created_at=old.created_at)
        if more_trusted
        else old
    )
    after = replace(after, repetitions=old.repetitions + 1, updated_at=at)
    return Edit("repeat", after, old, said=draft.text if draft.text != after.text else None)


def draft_of(entry: Entry) -> Draft:
    """Return the draft that an entry was staged from."""
    return Draft(
        entry.text,
        entry.type,
        category=entry.category,
        importance=entry.importance,
        confidence=entry.confidence,
        trust=entry.trust,
        session=entry.session,
        workspace=entry.workspace,
        source=entry.source,
        tags=entry.tags,
        valid_from=entry.valid_from,
    )
