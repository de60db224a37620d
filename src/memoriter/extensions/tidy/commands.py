"""The commands `tidy` and `audit`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from memoriter.cli.context import Json

if TYPE_CHECKING:
    from rich.console import Console

    from memoriter.extensions.tidy.auditing import AuditReport
    from memoriter.extensions.tidy.planning import TidyReport
    from memoriter.extensions.tidy.running import TidyHistory

T = TypeVar("T")

tidy_command, audit_command = (typer.Typer(add_completion=False) for _ in range(2))

#: Steps, and findings of each kind, that are printed. `--json` has all of them.
MAX_PRINTED = 20


@tidy_command.callback(
    invoke_without_command=True, epilog="Examples: memoriter tidy --dry-run · memoriter tidy"
)
def tidy(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be changed.")] = False,
    as_json: Json = False,
) -> None:
    """Join duplicates, retire what was replaced, mark plans that have passed, and adapt importance.

    Notes are never changed. A run changes at most a tenth of the entries, and `memoriter undo` reverts all of it.
    """
    if context.invoked_subcommand is None:
        from memoriter.extensions.tidy.running import tidy as tidy_memory

        with context.obj.memory() as memory:
            _show(as_json, "TidyResult", tidy_memory(memory, dry_run=dry_run), _print_report)


@tidy_command.command("history", epilog="Example: memoriter tidy history")
def history(context: typer.Context, as_json: Json = False) -> None:
    """List the runs that changed something, newest first."""
    from memoriter.extensions.tidy.running import TidyHistory, last_run
    from memoriter.extensions.tidy.running import history as runs_of

    with context.obj.memory() as memory:
        found = TidyHistory(last_run(memory), runs_of(memory))
        _show(as_json, "TidyHistoryResult", found, _print_history)


@audit_command.command(epilog="Example: memoriter audit --json")
def audit(context: typer.Context, as_json: Json = False) -> None:
    """List junk, duplicates, contradictions, secrets, and entries that expired or were never used.

    Each finding has the command that fixes it. Nothing is changed.
    """
    from memoriter.extensions.tidy.auditing import audit as audit_memory

    with context.obj.memory() as memory:
        _show(as_json, "AuditResult", audit_memory(memory), _print_audit)


def _show(as_json: bool, result: str, report: T, table: Callable[[Console, T], None]) -> None:
    """Print a report as JSON, by the name of its model, or for people."""
    from memoriter.cli import render

    if as_json:
        from memoriter.extensions.tidy import results

        render.to_json(getattr(results, result).model_validate(report))
    else:
        table(render.console(), report)


def _print_report(out: Console, report: TidyReport) -> None:
    entries = "1 entry" if report.entries == 1 else f"{report.entries} entries"
    if not report.steps:
        out.print(f"Nothing to change in {entries}.")
    else:
        verb = "Would change" if report.dry_run else "Changed"
        number = "" if report.change is None else f" (change {report.change})"
        out.print(f"{verb} {report.changed} of {entries}{number}:")
        for step in report.steps[:MAX_PRINTED]:
            first, *others = (edit.before for edit in step.edits if edit.before)
            joined = "".join(f" ← {one.text}" for one in others)
            out.print(f"  {step.kind} {first.id[:8]}: {first.text}{joined}\n    {step.why}")
    if len(report.steps) > MAX_PRINTED:
        out.print(f"  and {len(report.steps) - MAX_PRINTED} more: --json lists all")
    if report.steps and not report.dry_run:
        out.print(f"`memoriter undo {report.steps[0].edits[0].entry_id[:8]}` reverts all of it.")
    if report.left:
        out.print(f"Steps that wait for the next run: {report.left}.")
    if report.waiting:
        out.print(f"Entries that the next run compares: {report.waiting}.")
    for one in report.proposed:
        out.print(f"  forget? {one.texts[0]}\n    {one.why} → {one.fix}")
    if report.degraded:
        out.print(f"Note: {report.degraded}", style="yellow")


def _print_history(out: Console, found: TidyHistory) -> None:
    for run in found.runs:
        undone = ", undone" if run.undone else ""
        out.print(f"{_time(run.at)}  change {run.change}, entries changed: {len(run.events)}{undone}")
        for event in run.events[:MAX_PRINTED]:
            text = event.before.text if event.before else ""
            out.print(f"  {event.kind} {event.entry_id[:8]}: {text}\n    {event.note}")
    out.print(f"Last run: {_time(found.last_run)}." if found.last_run else "No run yet.")


def _print_audit(out: Console, report: AuditReport) -> None:
    for kind in dict.fromkeys(finding.kind for finding in report.findings):
        found = [finding for finding in report.findings if finding.kind == kind]
        out.print(f"{kind} ({len(found)})", style="bold")
        for one in found[:MAX_PRINTED]:
            out.print(f"  {' | '.join(one.texts)}\n    {one.why} → {one.fix}")
        if len(found) > MAX_PRINTED:
            out.print(f"  and {len(found) - MAX_PRINTED} more: --json lists all")
    if not report.findings:
        out.print(f"Nothing to do. Entries: {report.entries}.")
    if report.degraded:
        out.print(f"Note: {report.degraded}", style="yellow")


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}"
