"""Operations on the ledger: which memories were put before an agent when, what was left out, and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from memoriter.records import Considered, Entry
from memoriter.tools import results
from memoriter.tools.paging import CURSOR, CURSOR_OUT, LIMIT, decoded, encoded
from memoriter.tools.tool import LATEST, Call, Param, Result, Tool, camel

_ORDER = "recalls"


def _list(call: Call) -> Result:
    page = call.memory.entries.recalls(
        limit=call["limit"] or 100,
        after=decoded(call["cursor"], _ORDER),
        session=call["session"],
        door=call["door"],
        since=call["since"],
        until=call["until"],
        entry=call["entry"],
    )
    return {
        "recalls": [camel(asdict(one)) for one in page.recalls],
        "total": page.total,
        "cursor": encoded(page.after, _ORDER),
    }


def _get(call: Call) -> Result:
    found = call.memory.entries.get_recall(call["id"])
    entries = call.memory.entries.get_many(one.ref for one in found.considered if one.kind == "entry")
    entered = sum(one.entered for one in found.considered)
    return {
        "id": found.id,
        "at": found.at,
        "door": found.door,
        "session": found.session,
        "query": found.query,
        "characters": found.characters,
        "tokens": found.tokens,
        "entered": entered,
        "leftOut": len(found.considered) - entered,
        "considered": [_considered(one, entries.get(one.ref)) for one in found.considered],
    }


def _considered(one: Considered, entry: Entry | None) -> dict[str, Any]:
    """What was considered, with the text of an entry that still exists and the place of a note."""
    shown: dict[str, Any] = {
        "kind": one.kind,
        "ref": one.ref,
        "entered": one.entered,
        "reason": one.reason,
        "score": round(one.score, 6),
        "parts": [asdict(part) for part in one.parts],
    }
    if one.kind == "note":
        shown["citation"] = one.ref
    if entry is not None:
        shown["text"] = entry.text
    return shown


_CONSIDERED = results.shape(
    ("text", "citation"),
    kind=results.one_of("entry", "note"),
    ref=results.TEXT,
    entered=results.BOOLEAN,
    reason=results.TEXT,
    score=results.NUMBER,
    parts=results.many(results.PART),
    text=results.TEXT,
    citation=results.TEXT,
)

RECALLS = (
    Tool(
        "recalls.list",
        "The ledger: every moment at which memory was put before an agent, newest first, a page at a time.",
        (
            Param("session", "string", "Only of this session.", longest=500),
            Param("door", "string", "Only by this way, such as `hook` or `host`.", longest=100),
            Param("since", "number", "At or after; seconds since the epoch.", minimum=0, maximum=LATEST),
            Param("until", "number", "Before; seconds since the epoch.", minimum=0, maximum=LATEST),
            Param("entry", "string", "Only where this entry entered; its whole id.", longest=64),
            LIMIT,
            CURSOR,
        ),
        _list,
        {},
        empty={"recalls": [], "total": 0, "cursor": None},
        returns={
            "recalls": results.many(results.RECALL),
            "total": results.COUNT,
            "cursor": CURSOR_OUT,
        },
    ),
    Tool(
        "recalls.get",
        "One recall: what was considered, what entered the prompt and what did not, and why.",
        (Param("id", "string", "The recall's id, or the beginning of it.", required=True, longest=64),),
        _get,
        {},
        returns={**results.RECALL["properties"], "considered": results.many(_CONSIDERED)},
    ),
)
