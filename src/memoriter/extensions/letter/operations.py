"""The operations `changes.list`, `letter.get`, and those of deleted notes."""

from __future__ import annotations

from pydantic import Field

from memoriter.config.fields import described
from memoriter.extensions.letter import deleted, writing
from memoriter.extensions.letter.writing import MAX_CHANGES, MAX_LISTED
from memoriter.records import EntryEvent
from memoriter.tools.entries import EntryJson, Time
from memoriter.tools.notes import NoteTextJson
from memoriter.tools.tool import LATEST, Arguments, Call, Count, Prose, Shape, omitted_if_none, operation


class ChangesArguments(Arguments):
    since: Time | None = described(None, "At or after this time, in seconds since the epoch.")
    until: Time | None = described(None, "Before this time, in seconds since the epoch.")
    by: str | None = described(None, "Only by this writer, such as `owner`.", max_length=100)
    kind: str | None = described(None, "Only of this kind, such as `update`.", max_length=20)
    before: int | None = described(None, "`next` of the page before.")
    limit: int = described(100, "Maximum number of changes.", ge=1, le=MAX_CHANGES)


class EventJson(Shape):
    """What happened to one entry."""

    entry_id: str
    at: float
    kind: str
    by: str
    note: Prose = ""
    before: str | None = omitted_if_none("What it said before.")
    after: str | None = omitted_if_none("What it said afterwards.")

    @classmethod
    def of(cls, event: EntryEvent) -> EventJson:
        """Return a change of an entry with the words before and after."""
        before, after = (entry.text if entry else None for entry in (event.before, event.after))
        known = {name: getattr(event, name) for name in ("entry_id", "at", "by", "note")}
        return cls(**known, kind=event.deed, before=before, after=after)


class ChangeJson(Shape):
    """One change."""

    number: int
    at: float
    seq: int = Field(description="The number of its newest event, for `entries.undo`.")
    newest: bool = Field(description="Whether `entries.undo` of its first entry reverts it.")
    events: list[EventJson]


class DeletedJson(Shape):
    """A note or session that the owner deleted and can restore."""

    id: str
    path: str
    at: float


class ChangesResult(Shape):
    """Changes, newest first."""

    changes: list[ChangeJson] = Field(default=[])
    next: int | None = None
    deleted: list[DeletedJson] = described(
        [], "Notes and sessions deleted in this time, on the first page for the owner."
    )


class DeleteArguments(Arguments):
    path: str = Field(max_length=4_096, description="The path of the note or session.")
    version: str | None = described(None, "The version that was read. A session has none.", max_length=64)
    dry_run: bool = described(False, "Only show what would be removed.")


class DeletedResult(Shape):
    """A note or session that was deleted, and what is kept of the session."""

    id: str = described("", "For `notes.restore`. Empty for a dry run.")
    path: str = ""
    at: float = 0
    lines: Count = 0
    session: str | None = None
    learned: Count = described(0, "Number of entries that were learned in the session. They stay.")
    recalls: Count = described(0, "Number of recalls for the session in the ledger. They stay.")


class RestoreArguments(Arguments):
    id: str = Field(
        max_length=20, description="The id of what was deleted: from `notes.remove` or `changes.list`."
    )


class LetterArguments(Arguments):
    days: int = described(7, "Number of days until now.", ge=1, le=366)


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
    learned: list[EntryJson] = described([], f"At most {MAX_LISTED}, as in all these lists.")
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
    markdown: str = described("", "The letter as Markdown.")


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
            events=[EventJson.of(event) for event in change.events],
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
    """Remove a note, or a session that memoriter keeps. Its text is kept for `cleanup.retention_days`, so that
    `notes.restore` can restore it. Entries learned in a session stay.
    """
    return DeletedResult.model_validate(deleted.remove_note(call.memory, **call.arguments.model_dump()))


@operation("notes.restore", read_only=False, owner_only=True)
def restore(call: Call[RestoreArguments]) -> NoteTextJson:
    """Restore what `notes.remove` removed. Nothing is changed if there is something else in its place."""
    return NoteTextJson.model_validate(deleted.restore_note(call.memory, call.arguments.id))


@operation("letter.get")
def letter(call: Call[LetterArguments]) -> LetterResult:
    """Return the letter of the last days: what was learned, changed, retired and never used, and what to forget."""
    written = writing.write_letter(call.memory, days=call.arguments.days)
    lists = {name: getattr(written, name) for name in ("learned", "changed", "retired")}
    forget = [{"id": one.ids[0], "text": one.texts[0], "why": one.why} for one in written.forget]
    return LetterResult.model_validate(
        {name: getattr(written, name) for name in written.__slots__}
        | {name: found[:MAX_LISTED] for name, found in lists.items()}
        | {f"{name}_total": len(found) for name, found in lists.items()}
        | {"changed": [{"before": before, "entry": entry} for before, entry in written.changed[:MAX_LISTED]]}
        | {"forget": forget, "markdown": writing.as_markdown(written)}
    )
