"""Changes that the owner makes by hand: edit, merge, supersede, undo, redo.

Nothing is overwritten: every change is an event, and `undo` reverts it. Undos are events too: the next one steps back
further, and `redo` reverts them. A caller that read an entry before changing it
can pass the entry's sequence number. A change made by another caller in between is then a conflict instead of a loss.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from memoriter.entries import merge
from memoriter.entries.drafts import MAX_TAGS, Draft, clean_entry, expiry
from memoriter.errors import EditConflict, NotFound, WriteError
from memoriter.records import Entry, EntryEvent, Remembered, least_trusted
from memoriter.sentences import sentence
from memoriter.store.entry_store import Edit, EntryStore, Step
from memoriter.text.words import normal_form


def undo(
    store: EntryStore, *, entry_id: str | None, at: float, actor: str, if_seq: int | None = None
) -> tuple[list[EntryEvent], tuple[Entry, ...]]:
    """Undo the newest change that is in effect, of one entry or of all.

    Return the undone events and the entries as they are now.
    """
    with store.transaction():
        newest = next(store.newest_steps(entry_id), None)
        if if_seq is not None and (newest is None or newest.seq != if_seq):
            raise EditConflict(sentence("entry.conflict"))
        change = _change_to_undo(store.newest_steps(entry_id))
        if change is None and entry_id and newest and newest.erased:
            raise EditConflict(sentence("entry.undo_forget"))
        if change is None:
            raise NotFound(sentence("entry.undo_nothing"))
        events = store.change(change)
        for event in events:
            if _change_to_undo(store.newest_steps(event.entry_id)) != change:
                raise EditConflict(sentence("entry.undo_newer", id=event.entry_id))
            if event.kind == "reject" and event.before:
                store.clear_tombstone(event.before.text)
        return events, _revert(store, events, "undo", at=at, actor=actor)


def redo(
    store: EntryStore, *, entry_id: str | None, at: float, actor: str
) -> tuple[list[EntryEvent], tuple[Entry, ...]]:
    """Make the change again that was undone last; return the events of the undo and the entries as they are now."""
    with store.transaction():
        change = _change_to_redo(store.newest_steps(entry_id))
        events = [] if change is None else store.change(change)
        # An entry that was changed or erased since must stay as it is.
        if not events or any(_change_to_redo(store.newest_steps(one.entry_id)) != change for one in events):
            raise NotFound(sentence("entry.redo_nothing"))
        entries = _revert(store, events, "redo", at=at, actor=actor)
        for entry in entries:
            if entry.state == "rejected":
                store.add_tombstone(entry.text, at=at, seq=entry.seq)
        return events, entries


def _change_to_undo(steps: Iterable[Step]) -> int | None:
    """Return the newest change that is in effect: every undo cancels the change before it that was in effect then.

    Changes of erased entries are skipped.
    """
    cancelled: dict[str, float] = defaultdict(int)
    for step in steps:
        if step.erased:
            continue
        if step.kind == "undo":
            # An entry that was removed is back at its beginning, also if an import had brought many changes of it.
            cancelled[step.entry_id] += math.inf if step.removed else 1
        elif cancelled[step.entry_id]:
            cancelled[step.entry_id] -= 1
        else:
            return step.change
    return None


def _change_to_redo(steps: Iterable[Step]) -> int | None:
    """Return the newest undo that was not redone. A change after it leaves nothing to redo."""
    redone: dict[str, int] = defaultdict(int)
    for step in steps:
        if step.kind == "redo":
            redone[step.entry_id] += 1
        elif step.kind != "undo":
            return None
        elif redone[step.entry_id]:
            redone[step.entry_id] -= 1
        else:
            return step.change
    return None


def _revert(
    store: EntryStore, events: Sequence[EntryEvent], kind: str, *, at: float, actor: str
) -> tuple[Entry, ...]:
    """Put the entries of a change back to what they were before it."""
    now = store.load(event.entry_id for event in events)
    edits = [_inverse(event, now.get(event.entry_id), kind) for event in reversed(events)]
    return store.apply(edits, at=at, by=actor)


def _inverse(event: EntryEvent, now: Entry | None, kind: str) -> Edit:
    before = event.before
    if before and now:  # usage counts are not part of the change
        before = replace(before, access_count=now.access_count, last_accessed_at=now.last_accessed_at)
    return Edit(kind, before, now, note=sentence("history.undo", kind=event.kind, seq=event.seq))


def undo_import(store: EntryStore, entries: Mapping[str, int], *, at: float, actor: str) -> tuple[str, ...]:
    """Remove the entries whose newest change still has the given number; return their ids."""
    with store.transaction():
        same = [now for now in store.load(entries).values() if now.seq == entries[now.id]]
        note = sentence("history.undo", kind="import", seq=max((now.seq for now in same), default=0))
        store.apply([Edit("undo", None, now, note=note) for now in same], at=at, by=actor)
    return tuple(now.id for now in same)


#: Maximum number of entries in one merge.
MAX_MERGED = 50


class EntryChanges(TypedDict, total=False):
    """The fields of an entry that can be changed."""

    text: str
    type: str
    category: str | None
    importance: float
    confidence: float
    tags: tuple[str, ...]
    #: Seconds since the epoch. None means never.
    expires_at: float | None


FIELDS = frozenset(EntryChanges.__annotations__)


class EntryEditor:
    """Edits, merges and supersedes entries of one store."""

    def __init__(self, store: EntryStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def edit(
        self, entry_id: str, changes: Mapping[str, object], *, if_seq: int | None = None, actor: str = "owner"
    ) -> Entry:
        """Change an entry. A new type or importance sets the expiry time again, unless that is changed too.

        An entry of the owner that never expires stays so until ``expires_at`` is changed.
        """
        if unknown := set(changes) - FIELDS:
            raise WriteError(
                f"{', '.join(sorted(unknown))} cannot be changed; {', '.join(sorted(FIELDS))} can"
            )
        with self._store.transaction():
            entry, at = self._get_unchanged(entry_id, if_seq), self._clock()
            changed = clean_entry(replace(entry, **changes, updated_at=at))  # type: ignore[arg-type]
            lasting = (changed.type, changed.importance) == (entry.type, entry.importance)
            by_hand = entry.trust == "owner" and entry.expires_at is None
            if "expires_at" not in changes and not lasting and not by_hand:
                changed = replace(changed, expires_at=expiry(changed.type, changed.importance, at))
            if normal_form(changed.text) != normal_form(entry.text):
                self._refuse_double(changed.text, {entry.id})
                self._store.clear_tombstone(changed.text)
            (made,) = self._store.apply([Edit("update", changed, entry)], at=at, by=actor)
        return made

    def merge(
        self,
        ids: Sequence[str],
        text: str | None = None,
        *,
        if_seqs: Sequence[int] = (),
        actor: str = "owner",
    ) -> Entry:
        """Replace several entries by one that says ``text``, or what the longest of them says."""
        with self._store.transaction():
            old = self._parts(ids, if_seqs)
            at = self._clock()
            new = _union(old, text or max((one.text for one in old), key=len), at)
            self._refuse_double(new.text, {one.id for one in old})
            self._store.clear_tombstone(new.text)
            ended = [_supersede_edit(one, new.id, at, sentence("history.merged")) for one in old]
            made = self._store.apply(
                [Edit("merge", new, note=sentence("history.merged")), *ended], at=at, by=actor
            )
        return made[0]

    def supersede(
        self, entry_id: str, text: str, *, if_seq: int | None = None, actor: str = "owner"
    ) -> Remembered:
        """Replace an entry by a new statement of the owner with the same type."""
        with self._store.transaction():
            old, at, why = self._get_unchanged(entry_id, if_seq), self._clock(), sentence("history.replaced")
            _in_force(old)
            draft = Draft(text, old.type, old.category, old.importance, tags=old.tags, source="owner").clean()
            if normal_form(draft.text) == normal_form(old.text):
                raise WriteError(sentence("entry.same"))
            self._refuse_double(draft.text, {old.id})
            self._store.clear_tombstone(draft.text)
            verdict = merge.Verdict("supersede", (old,), why)
            made = self._store.apply(merge.edits(verdict, draft, at), at=at, by=actor)
        return merge.outcome(verdict, made[0])

    def _parts(self, ids: Sequence[str], if_seqs: Sequence[int]) -> list[Entry]:
        """Return the entries to merge."""
        if if_seqs and len(if_seqs) != len(ids):
            raise WriteError("there must be as many sequence numbers as ids")
        seqs: Sequence[int | None] = if_seqs or [None] * len(ids)
        found = {
            one.id: one for one in (self._get_unchanged(id_, seq) for id_, seq in zip(ids, seqs, strict=True))
        }
        for one in found.values():
            _in_force(one)
        if not 2 <= len(found) <= MAX_MERGED:
            raise WriteError(sentence("entry.merge_count", limit=MAX_MERGED))
        return list(found.values())

    def _get_unchanged(self, entry_id: str, if_seq: int | None) -> Entry:
        """Return the entry, or raise if it was changed since it had this sequence number."""
        entry = self._store.get(self._store.complete_id(entry_id))
        if if_seq is not None and entry.seq != if_seq:
            raise EditConflict(sentence("entry.changed", id=entry.id))
        return entry

    def _refuse_double(self, text: str, besides: set[str]) -> None:
        same = [one for one in self._store.same_text(text) if one.state == "active" and one.id not in besides]
        if same:
            raise EditConflict(sentence("entry.duplicate", id=same[0].id))


def _in_force(entry: Entry) -> None:
    if entry.state != "active":
        raise WriteError(sentence("entry.not_active", id=entry.id, state=entry.state))


def _union(old: Sequence[Entry], text: str, at: float) -> Entry:
    """Return one entry that combines several. It is trusted as little as the least trusted of them."""
    first = old[0]
    importance = max(one.importance for one in old)
    draft = Draft(
        text,
        first.type,
        first.category,
        importance,
        max(one.confidence for one in old),
        least_trusted(*(one.trust for one in old)),
        first.session,
        first.source,
        tuple(dict.fromkeys(tag for one in old for tag in one.tags))[:MAX_TAGS],
        min(one.valid_from for one in old),
    ).clean()
    used = [one.last_accessed_at for one in old if one.last_accessed_at is not None]
    return replace(
        draft.entry(at),
        workspace=first.workspace if len({one.workspace for one in old}) == 1 else None,
        related=tuple(
            dict.fromkeys([*(one.id for one in old), *(id_ for one in old for id_ in one.related)])
        ),
        repetitions=sum(one.repetitions for one in old),
        access_count=sum(one.access_count for one in old),
        last_accessed_at=max(used, default=None),
    )


def _supersede_edit(old: Entry, by_id: str, at: float, why: str) -> Edit:
    return Edit("supersede", replace(old, state="superseded", superseded_by=by_id, updated_at=at), old, why)
