"""Taking a change back. What was forgotten cannot come back: its history holds no text."""

from __future__ import annotations

from dataclasses import replace

from recollect.errors import EditConflict, NotFound
from recollect.records import Entry, Event
from recollect.store.entries import Edit, Entries


def undo(
    entries: Entries, *, entry_id: str | None, at: float, by: str, if_seq: int | None = None
) -> tuple[list[Event], tuple[Entry, ...]]:
    """Take back the newest change, of one entry or of all: the events undone, and the entries as they are now."""
    with entries.transaction():
        events = entries.last_change(entry_id)
        if not events:
            raise NotFound(
                "nothing has been changed yet" if entry_id is None else f"there is no entry {entry_id!r}"
            )
        newest = max(event.seq for event in events if entry_id in (None, event.entry_id))
        if if_seq is not None and newest != if_seq:
            raise EditConflict("something was changed meanwhile: look at it again")
        if any(event.kind == "forget" for event in events):
            raise EditConflict("the newest change was to forget, and what is forgotten cannot come back")
        now = entries.load(event.entry_id for event in events)
        edits = [_inverse(event, now.get(event.entry_id)) for event in reversed(events)]
        return events, entries.apply(edits, at=at, by=by)


def _inverse(event: Event, now: Entry | None) -> Edit:
    if (now.seq if now else None) != (event.after.seq if event.after else None):
        raise EditConflict(f"the entry {event.entry_id} has changed again since; undo that first, by its id")
    before = event.before
    if before and now:  # how often it was used is no part of the change
        before = replace(before, access_count=now.access_count, last_accessed_at=now.last_accessed_at)
    return Edit("undo", before, now, note=f"takes back {event.kind} {event.seq}")
