"""Runs of `memoriter tidy`: one change set each, which `memoriter undo` reverts as a whole.

A run plans without a lock and writes in one transaction. Steps whose entries have changed meanwhile are left out. A run
that is killed has changed nothing. How far entries are compared is stored in their index, which is derived: without it,
a run compares all of them again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from memoriter import logs
from memoriter.entries.collection import context_of
from memoriter.entries.context import EntryContext
from memoriter.errors import StoreError
from memoriter.extensions.tidy.auditing import propose
from memoriter.extensions.tidy.planning import ACTOR, Step, TidyReport, make_plan
from memoriter.extensions.tidy.settings import TidySettings
from memoriter.memory import Memory, parts_of
from memoriter.records import Entry, EntryEvent
from memoriter.sentences import join, sentence
from memoriter.store.entry_store import Edit

log = logs.get("tidy")

#: The name under which the index stores how far entries are compared.
_STATE = "tidy"
#: The resident process tidies again after this time.
NIGHTLY_S = 20 * 3600.0
#: Entries that one report proposes to forget.
MAX_PROPOSED = 20
#: Runs that `history` returns.
MAX_RUNS = 20


@dataclass(frozen=True, slots=True)
class TidyRun:
    """One run in the history."""

    change: int
    at: float
    events: tuple[EntryEvent, ...]
    undone: bool


@dataclass(frozen=True, slots=True)
class TidyHistory:
    """The runs that changed something, newest first, and when the last run was."""

    last_run: float | None
    runs: list[TidyRun]


def tidy(memory: Memory, *, dry_run: bool = False) -> TidyReport:
    """Tidy the entries of a memory once and return what was done. With ``dry_run`` nothing is changed."""
    if not parts_of(memory).entries_exist:
        return TidyReport(at=time.time(), entries=0, dry_run=dry_run)
    context = context_of(memory.entries)
    if not dry_run:
        context.follower.try_follow(embed=False)
    plan = make_plan(memory, context, _compared(context))
    changed = {edit.entry_id for step in plan.steps for edit in step.edits}
    others = (entry for entry in memory.entries.list() if entry.id not in changed)
    plan = replace(
        plan,
        degraded=join(plan.degraded, memory.entries.missing_vectors()),
        dry_run=dry_run,
        proposed=tuple(islice(propose(context, others, plan.at), MAX_PROPOSED)),
    )
    return plan if dry_run else _apply(context, plan)


def _apply(context: EntryContext, plan: TidyReport) -> TidyReport:
    """Write the steps whose entries are as they were. All of them are on disk afterwards, or none."""
    with context.store.transaction():
        now = context.store.load({one.id for step in plan.steps for one in step.based_on})
        steps = tuple(step for step in plan.steps if _is_current(step, now))
        change = context.store.seq() + 1 if steps else None
        edits = [_with_usage(edit, now) for step in steps for edit in step.edits]
        if edits:
            context.store.apply(edits, at=context.clock(), by=ACTOR)
    context.follower.try_follow(embed=False)
    late = len(plan.steps) - len(steps)
    compared = min(plan.compared, _compared(context)) if late else plan.compared
    _save(context, compared)
    return replace(plan, steps=steps, change=change, left=plan.left + late)


def _is_current(step: Step, now: dict[str, Entry]) -> bool:
    """Return whether no entry of a step has changed since it was planned."""
    return all(one.id in now and now[one.id].seq == one.seq for one in step.based_on)


def _with_usage(edit: Edit, now: dict[str, Entry]) -> Edit:
    """Return an edit that keeps the usage counts. Using an entry does not change it."""
    stored = now[edit.entry_id]
    assert edit.after is not None
    return replace(
        edit,
        after=replace(edit.after, access_count=stored.access_count, last_accessed_at=stored.last_accessed_at),
    )


def _state(context: EntryContext) -> dict[str, Any]:
    """Return what the last run stored; nothing if it was for another store, or with another model."""
    try:
        state = json.loads(context.follower.healing(lambda: context.follower.index.meta(_STATE)) or "{}")
    except (ValueError, StoreError):
        return {}
    known = isinstance(state, dict) and state.get("store") == [context.store.store_id, context.follower.model]
    return state if known else {}


def _compared(context: EntryContext) -> int:
    """Return the number of the change up to which entries are compared; 0 if the store has diverged."""
    state = _state(context)
    seq = state.get("compared")
    if not isinstance(seq, int) or seq > context.store.seq() or context.store.mark(seq) != state.get("mark"):
        return 0
    return seq


def _save(context: EntryContext, compared: int) -> None:
    """Store how far entries are compared. Without it, the next run only takes longer."""
    state = {
        "store": [context.store.store_id, context.follower.model],
        "compared": compared,
        "mark": context.store.mark(compared),
        "at": context.clock(),
    }
    try:
        with context.follower.index.transaction():
            context.follower.index.set_meta(**{_STATE: json.dumps(state)})
    except StoreError as error:
        log.warning("the next run compares all entries again: %s", error)


def history(memory: Memory, limit: int = MAX_RUNS) -> list[TidyRun]:
    """Return the runs that changed something, newest first."""
    if not parts_of(memory).entries_exist:
        return []
    store = context_of(memory.entries).store
    with store.database.read() as connection:
        statement = "select change from events where by = ? group by change order by change desc limit ?"
        rows: Any = connection.execute(statement, (ACTOR, limit)).fetchall()
    runs = [(int(row[0]), tuple(store.change(int(row[0])))) for row in rows]
    return [
        TidyRun(number, events[0].at, events, _is_undone(store.history(events[0].entry_id), events[0]))
        for number, events in runs
    ]


def last_run(memory: Memory) -> float | None:
    """Return when the last run was, whether it changed something or not."""
    if not parts_of(memory).entries_exist:
        return None
    at = _state(context_of(memory.entries)).get("at")
    return float(at) if isinstance(at, int | float) else None


def _is_undone(events: Sequence[EntryEvent], run: EntryEvent) -> bool:
    """Return whether an event was undone, and not made again."""
    undone, seq, kind = False, run.seq, run.kind
    for event in events:
        if event.kind in ("undo", "redo") and event.note == sentence("history.undo", kind=kind, seq=seq):
            undone, seq, kind = not undone, event.seq, event.kind
    return undone


def nightly(memory: Memory) -> None:
    """Tidy once a day, unless the settings switch it off. The resident process calls this when it is idle."""
    if not memory.settings.section(TidySettings).nightly or not parts_of(memory).entries_exist:
        return
    last = last_run(memory)
    if last is not None and 0 <= context_of(memory.entries).clock() - last < NIGHTLY_S:
        return
    started = time.process_time()
    report = tidy(memory)
    what = f"changed {report.changed} of {report.entries} entries (change {report.change})"
    log.info("tidied: %s, %.1f s", what if report.steps else "no change", time.process_time() - started)
