"""Operations by which the owner changes entries: add, edit, merge, supersede, undo, forget, approve, reject.

Each change is an event in the history of the entry. A caller can pass the `seq` of the entry it has seen as `ifSeq`:
if the entry has changed since, the operation fails and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import Field

from memoriter.config.fields import described
from memoriter.errors import BadArgument
from memoriter.memory import Memory, parts_of
from memoriter.records import Entry, EntryEvent, EntryType, Remembered, Selection
from memoriter.tools.entries import EntryJson, EventJson, IdArguments, Time
from memoriter.tools.entry_tools import ReceiptJson, RememberAction, RememberedJson
from memoriter.tools.tool import Arguments, Call, Prose, Shape, Tool, operation

Text = Annotated[
    str, Field(max_length=10_000, description="One statement that can be understood on its own.")
]
IfSeq = Annotated[
    int, Field(ge=0, le=2**53 - 1, description="Change the entry only if this is still its `seq`.")
]
Importance = Annotated[float, Field(ge=1, le=5, description="From 1 to 5; 5 never expires.")]
Tags = Annotated[list[str], Field(max_length=64, description="Words to find it by.")]
Type = Annotated[EntryType, Field(description="The type of entry.")]
Ids = Annotated[list[str], Field(max_length=500, description="The ids of the entries.")]


def _now(memory: Memory, entry: Entry) -> EntryJson:
    """Return an entry as it is after the change; it may have expired by it."""
    return EntryJson.model_validate(parts_of(memory).entry_context.as_of_now(entry))


def owner_only(name: str, **options: Any) -> Callable[[Callable[[Call[Any]], Shape]], Tool]:
    """Make an operation that changes data, for the owner alone."""
    return operation(name, read_only=False, owner_only=True, **options)


# ---- add and edit -------------------------------------------------------------------------------------------------


class AddArguments(Arguments):
    text: Text
    type: Type | None = described(None, "The type of entry. By default, rules choose it.")
    importance: Importance = 3.0
    tags: Tags = Field(default=[])
    expires_at: Time | None = described(
        None, "When it expires, in seconds since the epoch. By default never."
    )


class AddResult(Shape):
    """Outcome for a statement of the owner."""

    action: RememberAction = "refused"
    entry: EntryJson | None = None
    replaced: str | None = described(None, "The id of the entry that this one supersedes.")
    note: Prose | None = described(None, "The reason.")

    @classmethod
    def of(cls, memory: Memory, remembered: Remembered) -> AddResult:
        """Return the outcome for a statement."""
        entry = _now(memory, remembered.entry) if remembered.entry else None
        return cls(action=remembered.action, entry=entry, replaced=remembered.replaced, note=remembered.note)


class EditArguments(IdArguments):
    text: Text | None = None
    type: Type | None = None
    importance: Importance | None = None
    tags: Tags | None = None
    expires_at: Time | None = described(None, "When it expires, in seconds since the epoch; 0 means never.")
    if_seq: IfSeq | None = None


class EditResult(Shape):
    """The entry after the change."""

    entry: EntryJson | None = None


@owner_only("entries.add")
def _add(call: Call[AddArguments]) -> AddResult:
    """Remember a statement of the owner. A repeated statement is stored once. A statement that contradicts an older one
    replaces it.
    """
    asked = call.arguments
    remembered = call.memory.entries.add(
        asked.text,
        asked.type,
        importance=asked.importance,
        tags=tuple(asked.tags),
        session=call.session,
        source="owner",
        expires_at=asked.expires_at,
    )
    return AddResult.of(call.memory, remembered)


@owner_only("entries.edit")
def _edit(call: Call[EditArguments]) -> EditResult:
    """Change the text or the properties of an entry. The old version stays in its history."""
    asked = call.arguments
    changes: dict[str, Any] = {
        name: getattr(asked, name)
        for name in ("text", "type", "importance", "tags", "expires_at")
        if getattr(asked, name) is not None
    }
    if not changes:
        message = "entries.edit needs something to change: text, type, importance, tags or expiresAt."
        raise BadArgument(message)
    if asked.tags is not None:
        changes["tags"] = tuple(asked.tags)
    if asked.expires_at == 0:
        changes["expires_at"] = None
    return EditResult(
        entry=_now(call.memory, call.memory.entries.update(asked.id, if_seq=asked.if_seq, **changes))
    )


# ---- merge, supersede and undo ------------------------------------------------------------------------------------


class MergeArguments(Arguments):
    ids: Ids
    text: Text | None = None
    if_seqs: list[int] = described([], "The `seq` of each entry, in the order of the ids.", max_length=500)


class SupersedeArguments(IdArguments):
    text: Text
    if_seq: IfSeq | None = None


class ReplaceResult(EditResult):
    """The new entry, and the ids of the entries it replaced."""

    replaced: list[str] = Field(default=[])


class UndoArguments(Arguments):
    id: str | None = described(None, "Undo only changes of this entry.", max_length=64)
    if_seq: IfSeq | None = None


class UndoResult(Shape):
    """The changes that were undone, and the entries as they are now."""

    undone: list[EventJson] = Field(default=[])
    entries: list[EntryJson] = Field(default=[])

    @classmethod
    def of(cls, memory: Memory, undone: Sequence[EntryEvent], entries: Sequence[Entry]) -> UndoResult:
        """Return what an undo changed."""
        return cls.model_validate({"undone": undone, "entries": [_now(memory, entry) for entry in entries]})


@owner_only("entries.merge", destructive=True)
def _merge(call: Call[MergeArguments]) -> ReplaceResult:
    """Replace several entries by one. It has the given text, or the longest text of the merged entries."""
    asked = call.arguments
    entry = call.memory.entries.merge(asked.ids, asked.text, if_seqs=asked.if_seqs)
    replaced = [old.id for old in call.memory.entries.replaced_by(entry.id)]
    return ReplaceResult(entry=_now(call.memory, entry), replaced=replaced)


@owner_only("entries.supersede", destructive=True)
def _supersede(call: Call[SupersedeArguments]) -> ReplaceResult:
    """Replace an entry by a new statement. The old entry is hidden and stays in the history."""
    asked = call.arguments
    remembered = call.memory.entries.supersede(asked.id, asked.text, if_seq=asked.if_seq)
    assert remembered.entry is not None
    assert remembered.replaced is not None
    return ReplaceResult(entry=_now(call.memory, remembered.entry), replaced=[remembered.replaced])


@owner_only("entries.undo", destructive=True)
def _undo(call: Call[UndoArguments]) -> UndoResult:
    """Undo the newest change of one entry, or of all entries. The next call undoes the change before it. Erased entries
    cannot be restored.
    """
    undone, entries = call.memory.entries.undo(call.arguments.id, if_seq=call.arguments.if_seq)
    return UndoResult.of(call.memory, undone, entries)


# ---- forget -------------------------------------------------------------------------------------------------------


class ForgetArguments(Arguments):
    id: str | None = described(None, "The id of the entry, or the beginning of it.", max_length=64)
    query: str | None = described(None, "What the entry says.", max_length=8_000)
    session: str | None = described(None, "Everything learned in this session.", max_length=500)
    source: str | None = described(None, "Everything from this source.", max_length=500)
    since: Time | None = described(None, "Created at or after this time, in seconds since the epoch.")
    until: Time | None = described(None, "Created before this time, in seconds since the epoch.")
    dry_run: bool = described(False, "Only report what would be forgotten.")


class ForgetResult(ReceiptJson):
    """The entries that were forgotten, or would be."""

    dry_run: bool = False


def _selection(asked: ForgetArguments) -> Selection:
    return Selection(**asked.model_dump(exclude={"dry_run"}))


@owner_only("entries.forget", destructive=True)
def _forget(call: Call[ForgetArguments]) -> ForgetResult:
    """Hide entries. `entries.undo` restores them until they are erased after the retention time. Name them in exactly
    one way: an id, a query, a session, a source or a time. A query hides an entry only if exactly one clearly matches.
    Otherwise the result lists the candidates.
    """
    receipt = call.memory.forget(_selection(call.arguments), dry_run=call.arguments.dry_run)
    return ForgetResult.model_validate(receipt)


@owner_only("entries.erase", destructive=True)
def _erase(call: Call[ForgetArguments]) -> ForgetResult:
    """Erase entries and every copy of them for good, with the lines of daily logs that say exactly the same. Name them
    as for `entries.forget`; a query also finds hidden entries. With `dryRun` the result lists what would be erased.
    """
    receipt = call.memory.erase(_selection(call.arguments), dry_run=call.arguments.dry_run)
    return ForgetResult.model_validate(receipt)


# ---- approve and reject -------------------------------------------------------------------------------------------


class IdsArguments(Arguments):
    """Arguments of an operation on several entries."""

    ids: Ids


class ApproveResult(Shape):
    """Outcome for each staged entry."""

    approved: list[RememberedJson] = Field(default=[])


class RejectResult(Shape):
    """The ids of the rejected entries."""

    rejected: list[str] = Field(default=[])


@owner_only("entries.approve")
def _approve(call: Call[IdsArguments]) -> ApproveResult:
    """Activate staged entries. Each is compared with the active entries, so that nothing is stored twice."""
    return ApproveResult.model_validate({"approved": call.memory.entries.approve(call.arguments.ids)})


@owner_only("entries.reject", destructive=True)
def _reject(call: Call[IdsArguments]) -> RejectResult:
    """Reject staged entries. They are hidden, not staged again, and erased after the retention time of expired entries.
    Until then the rejection can be undone.
    """
    return RejectResult(rejected=[entry.id for entry in call.memory.entries.reject(call.arguments.ids)])


OPERATIONS = (_add, _edit, _merge, _supersede, _undo, _forget, _erase, _approve, _reject)
