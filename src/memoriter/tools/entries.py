"""Operations that look at entries: a page of them, one with all that belongs to it, counts. None changes anything."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from memoriter.tools import results
from memoriter.tools.paging import CURSOR, CURSOR_OUT, LIMIT, decoded, encoded
from memoriter.tools.tool import LATEST, Call, Param, Result, Tool, camel

if TYPE_CHECKING:
    from memoriter.records import Entry, EntrySort, Event

STATES = ("active", "staged", "superseded", "expired", "rejected")
ORIGINS = ("owner", "agent", "untrusted", "system")

ID = Param("id", "string", "The entry's id, or the beginning of it.", required=True, longest=64)
SINCE = Param("since", "number", "Created at or after; seconds since the epoch.", minimum=0, maximum=LATEST)
UNTIL = Param("until", "number", "Created before; seconds since the epoch.", minimum=0, maximum=LATEST)


def entry_json(entry: Entry) -> dict[str, Any]:
    """An entry as its owner sees it."""
    return {**camel(asdict(entry)), "related": list(entry.related), "tags": list(entry.tags)}


def event_json(event: Event) -> dict[str, Any]:
    """A change of an entry."""
    return {
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind,
        "entryId": event.entry_id,
        "by": event.by,
        "note": event.note,
        "before": entry_json(event.before) if event.before else None,
        "after": entry_json(event.after) if event.after else None,
    }


def _list(call: Call) -> Result:
    order: EntrySort = call["sort"] or ("score" if (call["query"] or "").strip() else "created")
    page = call.memory.entries.page(
        query=call["query"] or "",
        sort=order,
        limit=call["limit"] or 100,
        after=decoded(call["cursor"], order),
        types=tuple(call["types"] or ()),
        states=("active",) if call["states"] is None else tuple(call["states"]),
        origins=tuple(call["origins"] or ()),
        tags=tuple(call["tags"] or ()),
        min_importance=call["minImportance"] or 0.0,
        since=call["since"],
        until=call["until"],
        session=call["session"],
    )
    return {
        "entries": [_scored(entry, page.scores.get(entry.id)) for entry in page.entries],
        "total": page.total,
        "cursor": encoded(page.after, order),
        "degraded": page.degraded,
    }


def _scored(entry: Entry, score: float | None) -> dict[str, Any]:
    return entry_json(entry) | ({} if score is None else {"score": round(score, 6)})


def _get(call: Call) -> Result:
    found = call.memory.entries.detail(call["id"])
    entry = found.entry
    said = call.memory.notes.said(entry.session, entry.text) if entry.session else None
    transcript = {"path": said[0], "line": said[1]} if said else None
    return {
        "entry": entry_json(entry),
        "history": [event_json(event) for event in found.history],
        "related": [entry_json(one) for one in found.related],
        "supersedes": [entry_json(one) for one in found.supersedes],
        "supersededBy": entry.superseded_by,
        "recalls": [camel(asdict(one)) for one in found.recalls],
        "provenance": {"session": entry.session, "source": entry.source, "transcript": transcript},
    }


def _facets(call: Call) -> Result:
    found = call.memory.entries.facets()
    return {
        "total": found.total,
        "types": dict(found.types),
        "states": dict(found.states),
        "origins": dict(found.origins),
        "tags": dict(found.tags),
    }


_COUNTS: results.Schema = {"type": "object", "additionalProperties": results.COUNT}
_PROVENANCE = results.shape(
    session=results.MAYBE_TEXT,
    source=results.MAYBE_TEXT,
    transcript=results.maybe(results.shape(path=results.TEXT, line=results.MAYBE_COUNT)),
)

ENTRIES = (
    Tool(
        "entries.list",
        "Entries that fit every filter, a page at a time. A query finds entries in force by meaning and keyword, at "
        "most 200; of entries in other states, those that hold its words as they stand.",
        (
            Param("query", "string", "What the entries are about, in any language.", longest=8_000),
            Param("types", "array", "Only these types.", choices=results.TYPES, longest=20),
            Param(
                "states",
                "array",
                "Only these states; those in force if not given, all if empty.",
                choices=STATES,
                longest=20,
            ),
            Param("origins", "array", "Only from these.", choices=ORIGINS, longest=20),
            Param("tags", "array", "Only with all of these tags.", longest=32),
            Param("minImportance", "number", "Only with at least so many stars.", minimum=0, maximum=5),
            SINCE,
            UNTIL,
            Param("session", "string", "Only from this session.", longest=500),
            Param(
                "sort",
                "string",
                "Greatest first; `score` with a query and `created` without, if not given.",
                choices=("created", "updated", "importance", "score"),
            ),
            LIMIT,
            CURSOR,
        ),
        _list,
        {},
        empty={"entries": [], "total": 0, "cursor": None, "degraded": None},
        returns={
            "entries": results.many(results.ENTRY),
            "total": results.COUNT,
            "cursor": CURSOR_OUT,
            "degraded": results.DEGRADED,
        },
    ),
    Tool(
        "entries.get",
        "One entry with its history, related entries, the versions that it replaced, the prompts that it has entered, "
        "and where it comes from.",
        (ID,),
        _get,
        {},
        returns={
            "entry": results.ENTRY,
            "history": results.many(results.EVENT),
            "related": results.many(results.ENTRY),
            "supersedes": results.many(results.ENTRY),
            "supersededBy": results.MAYBE_TEXT,
            "recalls": results.many(results.RECALL),
            "provenance": _PROVENANCE,
        },
    ),
    Tool(
        "entries.facets",
        "How many entries there are in each state, and of those in force of each type, origin and tag (the 200 most "
        "frequent).",
        (),
        _facets,
        {},
        empty={"total": 0, "types": {}, "states": {}, "origins": {}, "tags": {}},
        returns={
            "total": results.COUNT,
            "types": _COUNTS,
            "states": _COUNTS,
            "origins": _COUNTS,
            "tags": _COUNTS,
        },
    ),
)
