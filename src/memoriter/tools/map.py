"""Operations for drawings: `map.get` returns entries as points, `timeline.get` returns changes over time."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memoriter.errors import BadArgument
from memoriter.records import EntryType, Point
from memoriter.tools.entries import Time
from memoriter.tools.tool import Arguments, Call, Count, Degraded, Shape, Tool

MAX_POINTS = 50_000
#: Characters of the text of a point.
LABEL_CHARS = 120

Coordinate = Annotated[float, Field(ge=-1, le=1)]


class MapArguments(Arguments):
    """Arguments of `map.get`."""

    limit: int = Field(default=MAX_POINTS, ge=1, le=MAX_POINTS, description="Maximum number of points.")


class PointJson(Shape):
    """An entry on the map."""

    id: str
    x: Coordinate
    y: Coordinate
    type: EntryType
    importance: float
    text: str = Field(max_length=LABEL_CHARS)
    created_at: float
    access_count: Count = Field(default=0, description="How often it was used.")

    @classmethod
    def of(cls, point: Point) -> PointJson:
        """Return a point with what the map shows of its entry."""
        entry = point.entry
        return cls(
            id=entry.id,
            x=point.x,
            y=point.y,
            type=entry.type,
            importance=entry.importance,
            text=_label(entry.text),
            created_at=entry.created_at,
            access_count=entry.access_count,
        )


class RegionJson(Shape):
    """A region of the map."""

    name: str = Field(description="Words that its entries have in common.")
    x: Coordinate
    y: Coordinate
    entries: Count


class MapResult(Shape):
    """Entries as points."""

    points: list[PointJson] = Field(default=[])
    regions: list[RegionJson] = Field(default=[])
    total: Count = 0
    method: str = "pca"
    generation: Count = 0
    degraded: Degraded = None


class TimelineArguments(Arguments):
    """Arguments of `timeline.get`."""

    since: Time | None = Field(default=None, description="The start, in seconds since the epoch.")
    until: Time | None = Field(
        default=None, description="The end (not included), in seconds since the epoch."
    )
    buckets: int = Field(default=60, ge=1, le=500, description="Number of intervals.")


class BucketJson(Shape):
    """Numbers of changes in one interval."""

    start: float
    end: float
    captured: Count
    superseded: Count
    forgotten: Count
    recalls: Count
    hits: Count = Field(default=0, description="Notes and entries that recalls added to prompts.")
    tokens: Count = Field(default=0, description="Tokens that recalls added to prompts.")
    entries: Count = Field(
        default=0, description="Entries in force today that were created before the end of the interval."
    )


class TimelineResult(Shape):
    """Changes over time."""

    buckets: list[BucketJson] = Field(default=[])
    since: float | None = None
    until: float | None = None


def _map(call: Call[MapArguments]) -> MapResult:
    drawn = call.memory.entries.map(call.arguments.limit)
    return MapResult(
        points=[PointJson.of(point) for point in drawn.points],
        regions=[RegionJson.model_validate(region) for region in drawn.regions],
        total=drawn.total,
        method=drawn.method,
        generation=drawn.generation,
        degraded=drawn.degraded,
    )


def _label(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LABEL_CHARS else f"{flat[: LABEL_CHARS - 1]}…"


def _timeline(call: Call[TimelineArguments]) -> TimelineResult:
    since, until = call.arguments.since, call.arguments.until
    if since is not None and until is not None and since >= until:
        raise BadArgument("`since` must be before `until`.", "since", "until")
    buckets = call.memory.entries.timeline(since=since, until=until, buckets=call.arguments.buckets)
    return TimelineResult(
        buckets=[BucketJson.model_validate(bucket) for bucket in buckets],
        since=buckets[0].start if buckets else since,
        until=buckets[-1].end if buckets else until,
    )


OPERATIONS = (
    Tool(
        "map.get",
        "Return the active entries as points in two dimensions. Entries of similar meaning are close to each other, "
        "and regions with many entries have a name from their words. If there are more entries than the limit, the "
        "points are an even sample.",
        MapArguments,
        MapResult,
        _map,
    ),
    Tool(
        "timeline.get",
        "Count captured, superseded and forgotten entries, recalls and their tokens in intervals of equal length. "
        "The default is the time from the first event until now.",
        TimelineArguments,
        TimelineResult,
        _timeline,
    ),
)
