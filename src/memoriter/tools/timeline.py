"""The operation `timeline.get`: changes and recalls over time."""

from __future__ import annotations

from pydantic import Field

from memoriter.errors import BadArgument
from memoriter.tools.entries import Time
from memoriter.tools.tool import Arguments, Call, Count, Shape, Tool


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
        "timeline.get",
        "Count captured, superseded and forgotten entries, recalls and their tokens in intervals of equal length. "
        "The default is the time from the first event until now.",
        TimelineArguments,
        TimelineResult,
        _timeline,
    ),
)
