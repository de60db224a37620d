"""Operations that draw: entries as points on a map, and what happened when."""

from __future__ import annotations

from dataclasses import asdict

from memoriter.tools import results
from memoriter.tools.tool import LATEST, Call, Param, Result, Tool, WrongArgument

MOST_POINTS = 10_000
LABEL = 120  #: characters of a point's text
BUCKETS = 60


def _map(call: Call) -> Result:
    drawn = call.memory.entries.map(call["limit"] or MOST_POINTS)
    return {
        "points": [
            {
                "id": point.entry.id,
                "x": point.x,
                "y": point.y,
                "type": point.entry.type,
                "importance": point.entry.importance,
                "text": _label(point.entry.text),
                "createdAt": point.entry.created_at,
            }
            for point in drawn.points
        ],
        "total": drawn.total,
        "method": drawn.method,
        "generation": drawn.generation,
        "degraded": drawn.degraded,
    }


def _label(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LABEL else f"{flat[: LABEL - 1]}…"


def _timeline(call: Call) -> Result:
    since, until = call["since"], call["until"]
    if since is not None and until is not None and since >= until:
        raise WrongArgument("since must be before until.")
    found = call.memory.entries.timeline(since=since, until=until, buckets=call["buckets"] or BUCKETS)
    return {
        "buckets": [asdict(one) for one in found],
        "since": found[0].start if found else since,
        "until": found[-1].end if found else until,
    }


_POINT = results.shape(
    id=results.TEXT,
    x={"type": "number", "minimum": -1, "maximum": 1},
    y={"type": "number", "minimum": -1, "maximum": 1},
    type=results.one_of(*results.TYPES),
    importance=results.NUMBER,
    text={"type": "string", "maxLength": LABEL},
    createdAt=results.NUMBER,
)
_BUCKET = results.shape(
    start=results.NUMBER,
    end=results.NUMBER,
    captured=results.COUNT,
    superseded=results.COUNT,
    forgotten=results.COUNT,
    recalls=results.COUNT,
)

PICTURE = (
    Tool(
        "map.get",
        "Entries in force as points in two dimensions: those that are near in meaning stand near each other. Where "
        "there are more than the limit, an even sample.",
        (Param("limit", "integer", "Most points.", minimum=1, maximum=MOST_POINTS),),
        _map,
        {},
        empty={"points": [], "total": 0, "method": "pca", "generation": 0, "degraded": None},
        returns={
            "points": results.many(_POINT),
            "total": results.COUNT,
            "method": results.TEXT,
            "generation": results.COUNT,
            "degraded": results.DEGRADED,
        },
    ),
    Tool(
        "timeline.get",
        "How many statements were captured, superseded and forgotten and how many recalls there were, in spans of "
        "equal length; from the first event until now, unless times are given.",
        (
            Param("since", "number", "Seconds since the epoch.", minimum=0, maximum=LATEST),
            Param(
                "until", "number", "Seconds since the epoch; no part of the span.", minimum=0, maximum=LATEST
            ),
            Param("buckets", "integer", f"How many spans; {BUCKETS} if not given.", minimum=1, maximum=500),
        ),
        _timeline,
        {},
        empty={"buckets": [], "since": None, "until": None},
        returns={
            "buckets": results.many(_BUCKET),
            "since": results.MAYBE_NUMBER,
            "until": results.MAYBE_NUMBER,
        },
    ),
)
