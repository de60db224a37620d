"""What an import did."""

from __future__ import annotations

from memoriter.hosts import ImportReport
from memoriter.records import Imported


def counts(report: ImportReport) -> tuple[str, dict[str, int], Imported]:
    actions: dict[str, int] = {}
    for step in report.steps:
        key = f"{step.kind} {step.action}"
        actions[key] = actions.get(key, 0) + 1
    return report.program, actions, report.entries
