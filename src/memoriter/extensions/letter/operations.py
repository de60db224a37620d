"""The operations `changes.list`, `letter.get`, and those of deleted notes."""

from __future__ import annotations

from pydantic import Field

from memoriter.extensions.letter import deleted, writing
from memoriter.extensions.letter.writing import MAX_CHANGES, MAX_LISTED
from memoriter.tools.entries import EntryJson, Time
from memoriter.tools.notes import NoteTextJson
from memoriter.tools.tool import LATEST, Arguments, Call, Count, Prose, Shape, omitted_if_none, operation


class ChangesArguments(Arguments):
    """Arguments of `changes.list`."""

    since: Time | None = Field(default=None, description="At or after this time, in seconds since the epoch.")
    until: Time | None = Field(default=None, description="Before this time, in seconds since the epoch.")
    by: str | None = Field(default=None, max_length=100, description="Only by this writer, such as `owner`.")
    kind: str | None = Field(default=None, max_length=20, description="Only of this kind, such as `update`.")
    before: int | None = Field(default=None, description="`next` of the page before.")
    limit: int = Field(default=100, ge=1, le=MAX_CHANGES, description="Maximum number of changes.")


class EventJson(Shape):
    """What happened to one entry."""

    entry_id: str
    kind: str
    by: str
    note: Prose = ""
    before: str | None = omitted_if_none("What it said before.")
    after: str | None = omitted_if_none("What it said afterwards.")


class ChangeJson(Shape):
    """One change."""

    number: int
    at: float
    seq: int = Field(description="The number of its newest event, for `entries.undo`.")
    newest: bool = Field(description="Whether `entries.undo` of its first entry reverts it.")
    events: list[EventJson]


class DeletedJson(Shape):
    """A note that the owner deleted and can restore."""

    id: str
    path: str
    at: float


class ChangesResult(Shape):
    """Changes, newest first."""

    changes: list[ChangeJson] = Field(default=[])
    next: int | None = None
    deleted: list[DeletedJson] = Field(
        default=[], description="Notes deleted in this time, on the first page for the owner."
    )


class DeleteArguments(Arguments):
    """Arguments of `notes.remove`."""

    path: str = Field(max_length=4_096, description="The path of the note.")
    version: str = Field(max_length=64, description="The version that was read.")


class DeletedResult(Shape):
    """A note that was deleted."""

    id: str = Field(default="", description="For `notes.restore`.")
    path: str = ""
    at: float = 0


class RestoreArguments(Arguments):
    """Arguments of `notes.restore`."""

    id: str = Field(
        max_length=20, description="The id of a deleted note, from `notes.remove` or `changes.list`."
    )


class LetterArguments(Arguments):
    """Arguments of `letter.get`."""

    days: int = Field(default=7, ge=1, le=366, description="Number of days until now.")


class ChangedJson(Shape):
    """A statement that changed."""

    before: str
    entry: EntryJson


class ForgetJson(Shape):
    """An entry that the owner may want to forget."""

    id: str
    text: str
    why: Prose


class LetterResult(Shape):
    """What the memory did in the last days."""

    since: float = 0
    until: float = 0
    learned: list[EntryJson] = Field(default=[], description=f"At most {MAX_LISTED}, as in all these lists.")
    learned_total: Count = 0
    changed: list[ChangedJson] = Field(default=[])
    changed_total: Count = 0
    retired: list[EntryJson] = Field(default=[])
    retired_total: Count = 0
    recalls: Count = 0
    waiting: Count = 0
    never_used: list[EntryJson] = Field(default=[])
    never_used_total: Count = 0
    forget: list[ForgetJson] = Field(default=[])
    markdown: str = Field(default="", description="The letter as Markdown.")


@operation("changes.list")
def changes(call: Call[ChangesArguments]) -> ChangesResult:
    """List the changes of entries, newest first: who, what, before and after."""
    asked = call.arguments
    found = writing.list_changes(call.memory, **asked.model_dump())
    shown = [
        ChangeJson(
            number=change.number,
            at=change.at,
            seq=change.events[0].seq,
            newest=change.is_newest,
            events=[
                EventJson(
                    entry_id=event.entry_id,
                    kind=event.kind,
                    by=event.by,
                    note=event.note,
                    before=event.before.text if event.before else None,
                    after=event.after.text if event.after else None,
                )
                for event in change.events
            ],
        )
        for change in found
    ]
    is_first = asked.before is None and not (asked.kind or asked.by) and not call.masked
    gone = [
        DeletedJson.model_validate(note)
        for note in (deleted.list_deleted(call.memory) if is_first else ())
        if (asked.since or 0) <= note.at < (asked.until or LATEST)
    ]
    following = found[-1].number if len(found) == asked.limit else None
    return ChangesResult(changes=shown, next=following, deleted=gone)


@operation("notes.remove", read_only=False, destructive=True, owner_only=True)
def remove(call: Call[DeleteArguments]) -> DeletedResult:
    """Remove a note and keep its text for `cleanup.retention_days`, so that `notes.restore` can restore it."""
    asked = call.arguments
    return DeletedResult.model_validate(deleted.remove_note(call.memory, asked.path, version=asked.version))


@operation("notes.restore", read_only=False, owner_only=True)
def restore(call: Call[RestoreArguments]) -> NoteTextJson:
    """Restore a note that `notes.remove` removed. Nothing is changed if there is a note in its place."""
    return NoteTextJson.model_validate(deleted.restore_note(call.memory, call.arguments.id))


@operation("letter.get")
def letter(call: Call[LetterArguments]) -> LetterResult:
    """Return the letter of the last days: what was learned, changed, retired and never used, and what to forget."""
    written = writing.write_letter(call.memory, days=call.arguments.days)
    return LetterResult(
        since=written.since,
        until=written.until,
        learned=[EntryJson.model_validate(entry) for entry in written.learned[:MAX_LISTED]],
        learned_total=len(written.learned),
        changed=[
            ChangedJson(before=before, entry=EntryJson.model_validate(entry))
            for before, entry in written.changed[:MAX_LISTED]
        ],
        changed_total=len(written.changed),
        retired=[EntryJson.model_validate(entry) for entry in written.retired[:MAX_LISTED]],
        retired_total=len(written.retired),
        recalls=written.recalls,
        waiting=written.waiting,
        never_used=[EntryJson.model_validate(entry) for entry in written.never_used],
        never_used_total=written.never_used_total,
        forget=[ForgetJson(id=one.ids[0], text=one.texts[0], why=one.why) for one in written.forget],
        markdown=writing.as_markdown(written),
    )
