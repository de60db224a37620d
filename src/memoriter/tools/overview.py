"""The operation `overview.get`: what the memory did on the last days, and which entries are used most and never."""

from __future__ import annotations

import time

from pydantic import Field

from memoriter import logs
from memoriter.records import Entry
from memoriter.tools.entries import EntryJson, Time
from memoriter.tools.timeline import BucketJson
from memoriter.tools.tool import Arguments, Call, Count, Shape, Tool

#: Entries in each list.
MAX_LISTED = 6
DAY_S = 86_400.0


class OverviewArguments(Arguments):
    """Arguments of `overview.get`."""

    until: Time | None = Field(
        default=None, description="The end of the last day, in seconds since the epoch. The default is now."
    )
    days: int = Field(default=30, ge=1, le=366, description="Number of days.")


class OverviewResult(Shape):
    """The last days of the memory, the last of them being today."""

    days: list[BucketJson] = Field(default=[])
    active: Count = Field(default=0, description="Entries in force.")
    staged: Count = Field(default=0, description="Entries that wait for the owner's approval.")
    errors: Count = Field(default=0, description="Warnings and errors of this process on the last day.")
    latest: list[EntryJson] = Field(default=[], description="The entries that were learned last.")
    most_used: list[EntryJson] = Field(default=[], description="The entries that were used most.")
    never_used: list[EntryJson] = Field(
        default=[], description="The most important entries that were never used."
    )
    never_used_total: Count = 0


def _overview(call: Call[OverviewArguments]) -> OverviewResult:
    entries, asked = call.memory.entries, call.arguments
    until = time.time() if asked.until is None else asked.until
    days = entries.timeline(since=max(0.0, until - asked.days * DAY_S), until=until, buckets=asked.days)
    states = entries.facets().states
    never = entries.page(sort="importance", limit=MAX_LISTED, used=False)
    troubles = logs.troubles(str(call.memory.settings.agent_folder))
    return OverviewResult(
        days=[BucketJson.model_validate(day) for day in days],
        active=states.get("active", 0),
        staged=states.get("staged", 0),
        errors=sum(until - DAY_S <= trouble.at < until for trouble in troubles),
        latest=_listed(entries.page(limit=MAX_LISTED).entries),
        most_used=_listed(entries.page(sort="used", limit=MAX_LISTED, used=True).entries),
        never_used=_listed(never.entries),
        never_used_total=never.total,
    )


def _listed(entries: tuple[Entry, ...]) -> list[EntryJson]:
    return [EntryJson.model_validate(entry) for entry in entries]


OPERATIONS = (
    Tool(
        "overview.get",
        "Return what the memory did on the last days: learned, superseded and recalled entries, tokens added to "
        "prompts, what waits for approval, errors, and the entries that were used most and never.",
        OverviewArguments,
        OverviewResult,
        _overview,
    ),
)
