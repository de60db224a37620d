"""Changes that the owner makes by hand: edit, merge, supersede, undo, redo.

Nothing is overwritten: every change is an event, and `undo` reverts it. Undos are events too: the next one steps back
further, and `redo` reverts them. A caller that read an entry before changing it
can pass the entry's sequence number. A change made by another caller in between is then a conflict instead of a loss.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict, Unpack

from memoriter.entries import merge
from memoriter.entries.context import EntryContext
from memoriter.entries.drafts import MAX_TAGS, Draft, clean_entry, expiry
from memoriter.errors import EditConflict, NotFound, WriteError
from memoriter.records import Entry, EntryEvent, Remembered, least_trusted
from memoriter.sentences import sentence
from memoriter.store.entry_store import Edit, EntryStore, Step
from memoriter.text.words import normal_form


def undo(
    context: EntryContext, entry_id: str | None = None, *, if_seq: int | None = None, actor: str = "owner"
) -> tuple[list[EntryEvent], tuple[Entry, ...]]:
    """Undo the newest change, of one entry or of all; return the undone events and the entries as they are now.

    The next call undoes the change before, and `redo` makes the change again. Changes of erased entries are skipped.
    With ``if_seq`` something is undone only if the newest event has this sequence number.
    """
    store, entry_id, at = context.store, context.full_id(entry_id), context.clock()
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
    context: EntryContext, entry_id: str | None = None, *, actor: str = "owner"
) -> tuple[list[EntryEvent], tuple[Entry, ...]]:
    """Make the change again that was undone last, of one entry or of all.

    Return the events of the undo and the entries as they are now. A change after the undo leaves nothing to redo.
    """
    store, entry_id, at = context.store, context.full_id(entry_id), context.clock()
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


def undo_import(
    context: EntryContext, entries: Mapping[str, int], *, actor: str = "owner"
) -> tuple[str, ...]:
    """Remove imported entries that have not changed since, and return their ids.

    ``entries`` are the ids and numbers of `Imported.entries`. An entry with another number stays.
    """
    store, at = context.store, context.clock()
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


def update(
    context: EntryContext,
    entry_id: str,
    *,
    if_seq: int | None = None,
    actor: str = "owner",
    **changes: Unpack[EntryChanges],
) -> Entry:
    """Change fields of an entry and return it. The previous version stays in the history.

    When the type or the importance changes, the expiry time is set again unless ``expires_at`` is given (None: never).
    An entry of the owner that never expires stays so. With ``if_seq`` the change is made only if the entry still has
    this sequence number; otherwise `EditConflict` is raised.
    """
    if unknown := set(changes) - FIELDS:
        raise WriteError(f"{', '.join(sorted(unknown))} cannot be changed; {', '.join(sorted(FIELDS))} can")
    with context.store.transaction():
        entry, at = _get_unchanged(context, entry_id, if_seq), context.clock()
        changed = clean_entry(replace(entry, **changes, updated_at=at))  # type: ignore[arg-type]
        lasting = (changed.type, changed.importance) == (entry.type, entry.importance)
        by_hand = entry.trust == "owner" and entry.expires_at is None
        if "expires_at" not in changes and not lasting and not by_hand:
            changed = replace(changed, expires_at=expiry(changed.type, changed.importance, at))
        if normal_form(changed.text) != normal_form(entry.text):
            _refuse_double(context, changed.text, {entry.id})
            context.store.clear_tombstone(changed.text)
        (made,) = context.store.apply([Edit("update", changed, entry)], at=at, by=actor)
    return made


def merge_entries(
    context: EntryContext,
    ids: Sequence[str],
    text: str | None = None,
    *,
    if_seqs: Sequence[int] = (),
    actor: str = "owner",
) -> Entry:
    """Replace several entries by one that says ``text``, or what the longest of them says."""
    with context.store.transaction():
        old = _parts(context, ids, if_seqs)
        at = context.clock()
        new = _union(old, text or max((one.text for one in old), key=len), at)
        _refuse_double(context, new.text, {one.id for one in old})
        context.store.clear_tombstone(new.text)
        why, by_id = sentence("history.merged"), new.id
        ended = [
            Edit("supersede", replace(one, state="superseded", superseded_by=by_id, updated_at=at), one, why)
            for one in old
        ]
        made = context.store.apply([Edit("merge", new, note=why), *ended], at=at, by=actor)
    return made[0]


def supersede(
    context: EntryContext, entry_id: str, text: str, *, if_seq: int | None = None, actor: str = "owner"
) -> Remembered:
    """Replace an entry by a new statement of the owner. The old entry stays in the history."""
    with context.store.transaction():
        old, at = _get_unchanged(context, entry_id, if_seq), context.clock()
        _in_force(old)
        draft = Draft(text, old.type, old.category, old.importance, tags=old.tags, source="owner").clean()
        if normal_form(draft.text) == normal_form(old.text):
            raise WriteError(sentence("entry.same"))
        _refuse_double(context, draft.text, {old.id})
        context.store.clear_tombstone(draft.text)
        verdict = merge.Verdict("supersede", (old,), sentence("history.replaced"))
        made = context.store.apply(merge.edits(verdict, draft, at), at=at, by=actor)
    return merge.outcome(verdict, made[0])


def _parts(context: EntryContext, ids: Sequence[str], if_seqs: Sequence[int]) -> list[Entry]:
    """Return the entries to merge."""
    if if_seqs and len(if_seqs) != len(ids):
        raise WriteError("there must be as many sequence numbers as ids")
    seqs: Sequence[int | None] = if_seqs or [None] * len(ids)
    found = {
        one.id: one for one in (_get_unchanged(context, id_, seq) for id_, seq in zip(ids, seqs, strict=True))
    }
    for one in found.values():
        _in_force(one)
    if not 2 <= len(found) <= MAX_MERGED:
        raise WriteError(sentence("entry.merge_count", limit=MAX_MERGED))
    return list(found.values())


def _get_unchanged(context: EntryContext, entry_id: str, if_seq: int | None) -> Entry:
    """Return the entry, or raise if it was changed since it had this sequence number."""
    entry = context.store.get(context.store.complete_id(entry_id))
    if if_seq is not None and entry.seq != if_seq:
        raise EditConflict(sentence("entry.changed", id=entry.id))
    return entry


def _refuse_double(context: EntryContext, text: str, besides: set[str]) -> None:
    same = [one for one in context.store.same_text(text) if one.state == "active" and one.id not in besides]
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


def mark_relayed(context: EntryContext, ids: Iterable[str]) -> None:
    """Lower the trust of an agent's entries to `relayed`: the agent had read text from outside."""
    with context.store.transaction():
        edits = [
            Edit("update", replace(entry, trust="relayed"), entry, sentence("history.relayed"))
            for entry in context.store.load(ids).values()
            if entry.trust == "agent"
        ]
        context.store.apply(edits, at=context.clock(), by="capture")
