"""The JSON output of `tidy` and `audit`."""

from __future__ import annotations

from memoriter.tools.entries import EntryJson, EventJson
from memoriter.tools.tool import Shape


class EditJson(Shape):
    """An entry before and after a step."""

    before: EntryJson
    after: EntryJson


class StepJson(Shape):
    """One thing that a run did: what, why, from which statements, and the entries before and after."""

    kind: str
    why: str
    sources: list[str]
    edits: list[EditJson]


class FindingJson(Shape):
    """Something about entries that is worth a look, and the command that fixes it."""

    kind: str
    ids: list[str]
    texts: list[str]
    why: str
    fix: str


class TidyResult(Shape):
    """What a run did, or would do."""

    dry_run: bool
    change: int | None
    entries: int
    changed: int
    steps: list[StepJson]
    left: int
    waiting: int
    proposed: list[FindingJson]
    degraded: str | None


class TidyRunJson(Shape):
    """One run in the history."""

    change: int
    at: float
    undone: bool
    events: list[EventJson]


class TidyHistoryResult(Shape):
    """The runs that changed something, newest first, and when the last run was."""

    last_run: float | None
    runs: list[TidyRunJson]


class AuditResult(Shape):
    """What is worth a look among the entries, the gravest first."""

    entries: int
    findings: list[FindingJson]
    degraded: str | None
