"""The JSON output of `tidy` and `audit`."""

from __future__ import annotations

from memoriter.extensions.tidy.auditing import AuditFinding
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


class TidyResult(Shape):
    """What a run did, or would do."""

    dry_run: bool
    change: int | None
    entries: int
    changed: int
    steps: list[StepJson]
    left: int
    waiting: int
    proposed: list[AuditFinding]
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
    findings: list[AuditFinding]
    degraded: str | None
