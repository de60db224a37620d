"""The operations `changes.list` and `letter.get`."""

from __future__ import annotations

from pydantic import Field

from memoriter.extensions.letter.writing import MAX_CHANGES, as_markdown, list_changes, write_letter
from memoriter.tools.entries import EntryJson, Time
from memoriter.tools.tool import Arguments, Call, Count, Prose, Shape, omitted_if_none, operation


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


class ChangesResult(Shape):
    """Changes, newest first."""

    changes: list[ChangeJson] = Field(default=[])
    next: int | None = None


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
    learned: list[EntryJson] = Field(default=[])
    changed: list[ChangedJson] = Field(default=[])
    retired: list[EntryJson] = Field(default=[])
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
    found = list_changes(
        call.memory,
        since=asked.since,
        until=asked.until,
        by=asked.by,
        kind=asked.kind,
        before=asked.before,
        limit=asked.limit,
    )
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
    return ChangesResult(changes=shown, next=found[-1].number if len(found) == asked.limit else None)


@operation("letter.get")
def letter(call: Call[LetterArguments]) -> LetterResult:
    """Return the letter of the last days: what was learned, changed, retired and never used, and what to forget."""
    written = write_letter(call.memory, days=call.arguments.days)
    return LetterResult(
        since=written.since,
        until=written.until,
        learned=[EntryJson.model_validate(entry) for entry in written.learned],
        changed=[
            ChangedJson(before=before, entry=EntryJson.model_validate(entry))
            for before, entry in written.changed
        ],
        retired=[EntryJson.model_validate(entry) for entry in written.retired],
        recalls=written.recalls,
        waiting=written.waiting,
        never_used=[EntryJson.model_validate(entry) for entry in written.never_used],
        never_used_total=written.never_used_total,
        forget=[ForgetJson(id=one.ids[0], text=one.texts[0], why=one.why) for one in written.forget],
        markdown=as_markdown(written),
    )
