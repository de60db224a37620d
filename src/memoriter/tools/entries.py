"""Operations that read entries: `entries.list`, `entries.get` and `entries.facets`. They change nothing."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import Field

from memoriter.config.fields import described
from memoriter.errors import BadArgument
from memoriter.records import Entry, EntryPage, EntrySort, EntryState, EntryType, Trust
from memoriter.tools.entry_tools import MemoryJson
from memoriter.tools.search import NoArguments
from memoriter.tools.tool import (
    LATEST,
    Arguments,
    Call,
    Count,
    Degraded,
    Prose,
    Score,
    Shape,
    omitted_if_none,
    operation,
)

#: The most entries or recalls on one page.
MAX_PAGE = 500

Id = Annotated[str, Field(max_length=64, description="The id of the entry, or the beginning of it.")]
Time = Annotated[float, Field(ge=0, le=LATEST)]
ListedState = Literal["active", "staged", "superseded", "expired", "rejected"]


# ---- pages --------------------------------------------------------------------------------------------------------

Place = tuple[float, str]


class PageArguments(Arguments):
    """Arguments of an operation that returns a page of a list."""

    limit: int = described(100, "Maximum number of items on the page.", ge=1, le=MAX_PAGE)
    cursor: str | None = described(
        None, "The `cursor` of the page before, to continue with the same filters.", max_length=500
    )


Cursor = Annotated[str | None, Field(description="Pass it back for the next page; null on the last page.")]


def encode_cursor(place: Place | None, order: str) -> str | None:
    """Return the cursor for a place in a list of this order."""
    if place is None:
        return None
    return base64.urlsafe_b64encode(json.dumps([order, *place]).encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None, order: str) -> Place | None:
    """Return the place that a cursor names. Raises `BadArgument` for a cursor of another list."""
    if not cursor:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        found, value, id_ = json.loads(text)
        place = (float(value), str(id_))
    except (ValueError, TypeError, RecursionError):
        raise BadArgument(
            "`cursor` is not a cursor of this list. Start again without it.", "cursor"
        ) from None
    if found != order or not math.isfinite(place[0]):
        message = "`cursor` belongs to a list in another order. Start again without it."
        raise BadArgument(message, "cursor")
    return place


# ---- shapes -------------------------------------------------------------------------------------------------------


class EntryJson(MemoryJson):
    """An entry as its owner sees it."""

    state: EntryState
    source: str | None
    updated_at: float
    valid_from: float
    superseded_by: str | None
    last_accessed_at: float | None
    access_count: Count
    repetitions: Count
    related: list[str]
    seq: int = Field(description="The number of its newest change. Pass it back as `ifSeq`.")
    score: Score | None = omitted_if_none()


class EventJson(Shape):
    """One change of an entry."""

    seq: Count
    at: float
    kind: str = Field(validation_alias="deed")
    entry_id: str
    by: str
    note: Prose
    before: EntryJson | None
    after: EntryJson | None
    said: str | None = Field(
        description="The words of a repetition, if they differ from the text of the entry."
    )


class RecallJson(Shape):
    """One recall, as the list of recalls shows it."""

    id: str
    at: float
    interface: str
    session: str | None
    query: str = Field(description="Empty if part of it was forgotten since.")
    characters: Count
    tokens: Count
    entered: Count
    left_out: Count


class TranscriptJson(Shape):
    """The place of a statement in a transcript."""

    path: str
    line: Count | None


class ProvenanceJson(Shape):
    """The source of an entry."""

    session: str | None
    source: str | None
    transcript: TranscriptJson | None


# ---- operations ---------------------------------------------------------------------------------------------------


class FilterArguments(Arguments):
    """Filters of entries. Every filter that is given must match."""

    types: list[EntryType] = described([], "Only these types.", max_length=20)
    states: list[ListedState] = described(
        ["active"], "Only these states; an empty list means all of them.", max_length=20
    )
    trust: list[Trust] = described([], "Only entries with these trust levels.", max_length=20)
    tags: list[str] = described([], "Only entries with all of these tags.", max_length=32)
    min_importance: float = described(0.0, "Only entries of at least this importance.", ge=0, le=5)
    since: Time | None = described(None, "Created at or after this time, in seconds since the epoch.")
    until: Time | None = described(None, "Created before this time, in seconds since the epoch.")
    session: str | None = described(None, "Only from this session.", max_length=500)
    source: str | None = described(None, "Only from this source.", max_length=500)
    workspace: str | None = described(
        None, "Only learned in the workspace with this path, or in none.", max_length=4_096
    )
    used: bool | None = described(None, "Only entries that were used, or only entries that were never used.")

    def filters(self) -> dict[str, Any]:
        """Return the filters as the library takes them."""
        values = {name: getattr(self, name) for name in FilterArguments.model_fields}
        return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


class EntryListArguments(FilterArguments, PageArguments):
    query: str = described("", "What the entries are about, in any language.", max_length=8_000)
    sort: EntrySort | None = described(
        None, "Highest first. The default is `score` with a query and `created` without."
    )
    ascending: bool = described(False, "Lowest first.")
    offset: int = described(0, "Skip this many entries, instead of a `cursor`.", ge=0, le=10_000_000)
    around: str | None = described(
        None,
        "The id of an entry that the page should contain. If it does not match, `offset` counts.",
        max_length=64,
    )


class EntryListResult(Shape):
    """A page of entries."""

    entries: list[EntryJson] = Field(default=[])
    total: Count = 0
    offset: Count | None = described(None, "Matching entries before this page; null if a `cursor` was given.")
    cursor: Cursor = None
    degraded: Degraded = None

    @classmethod
    def of(cls, page: EntryPage, order: str) -> EntryListResult:
        """Return a page of entries in this order."""
        return cls(
            entries=[_to_json(entry, page.scores.get(entry.id)) for entry in page.entries],
            total=page.total,
            offset=page.offset,
            cursor=encode_cursor(page.after, order),
            degraded=page.degraded,
        )


class IdArguments(Arguments):
    """Arguments of an operation on one entry."""

    id: Id


class EntryGetResult(Shape):
    """One entry and what belongs to it."""

    entry: EntryJson
    history: list[EventJson]
    related: list[EntryJson]
    supersedes: list[EntryJson]
    superseded_by: str | None
    valid_until: float | None = Field(description="When its successor became true, or when it expires.")
    recalls: list[RecallJson]
    provenance: ProvenanceJson


class FacetsResult(Shape):
    """Numbers of entries."""

    total: Count = 0
    types: dict[str, Count] = Field(default={})
    states: dict[str, Count] = Field(default={})
    trust: dict[str, Count] = Field(default={})
    tags: dict[str, Count] = Field(default={})
    sources: dict[str, Count] = Field(default={})
    workspaces: dict[str, Count] = described({}, "Only for the owner.")


@operation("entries.list")
def _list(call: Call[EntryListArguments]) -> EntryListResult:
    """List the entries that match every filter, a page at a time. A query finds at most 200 active entries by meaning
    and by keyword. Entries in other states match if they contain the words of the query.
    """
    asked = call.arguments
    order: EntrySort = asked.sort or ("score" if asked.query.strip() else "created")
    directed = f"{order} ascending" if asked.ascending else order
    page = call.memory.entries.page(
        query=asked.query,
        sort=order,
        limit=asked.limit,
        after=decode_cursor(asked.cursor, directed),
        offset=0 if asked.cursor else asked.offset,
        around=None if asked.cursor else asked.around,
        ascending=asked.ascending,
        **asked.filters(),
    )
    return EntryListResult.of(page, directed)


def _to_json(entry: Entry, score: float | None) -> EntryJson:
    shown = EntryJson.model_validate(entry)
    return shown if score is None else shown.model_copy(update={"score": round(score, 6)})


@operation("entries.get")
def _get(call: Call[IdArguments]) -> EntryGetResult:
    """Return one entry with its history, related entries, the versions it replaced, the prompts it was added to, and
    where it comes from.
    """
    found = call.memory.entries.detail(call.arguments.id)
    entry = found.entry
    said = call.memory.notes.find_quote(entry.session, entry.text) if entry.session else None
    transcript = {"path": said[0], "line": said[1]} if said else None
    provenance = {"session": entry.session, "source": entry.source, "transcript": transcript}
    successors = call.memory.entries.get_many([entry.superseded_by] if entry.superseded_by else [])
    until = entry.valid_until(successors.get(entry.superseded_by or ""))
    computed = {"superseded_by": entry.superseded_by, "valid_until": until, "provenance": provenance}
    return EntryGetResult.model_validate(
        {field.name: getattr(found, field.name) for field in fields(found)} | computed
    )


@operation("entries.facets")
def _facets(call: Call[NoArguments]) -> FacetsResult:
    """Count the entries in each state, and the active entries of each type, trust, source, workspace and tag (the 200
    most frequent tags).
    """
    found = FacetsResult.model_validate(call.memory.entries.facets())
    return found.model_copy(update={"workspaces": {}}) if call.masked else found  # paths of this machine


OPERATIONS = (_list, _get, _facets)
