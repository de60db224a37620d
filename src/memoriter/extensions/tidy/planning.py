"""The plan of a run: which entries it changes, and why. Planning reads; `running` writes.

The plan depends on the stored entries, the vectors of the index, the notes and the time alone. A run changes at most a
tenth of the entries. What exceeds that, and entries beyond the pairs that one run judges, wait for the next run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

from memoriter.background import check_cancelled
from memoriter.entries.drafts import DAY, MAX_TAGS, later
from memoriter.errors import MemoriterError
from memoriter.extensions.tidy.asking import Asked, model_of
from memoriter.extensions.tidy.pairs import Verdict, is_readable, load_vectors, pairs_of, verdict_of
from memoriter.records import IMPORTED, Entry
from memoriter.search.when import ended_plan
from memoriter.sentences import join
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import Edit
from memoriter.text.dates import local_day
from memoriter.text.words import normal_form

if TYPE_CHECKING:
    from memoriter.entries.context import EntryContext
    from memoriter.extensions.tidy.auditing import AuditFinding
    from memoriter.memory import Memory

#: The author of the changes, in the history.
ACTOR = "tidy"
#: The part of the entries that one run may change. In a small memory it may change two, because a join needs two.
MAX_SHARE, MIN_CHANGES = 0.1, 2
#: Pairs that the judge reads in one run, at about 6 ms each.
MAX_JUDGED = 6_000
#: Entries that one run compares without vectors, at about 2 ms each.
MAX_LOOKED_UP = 5_000
#: Days on which the owner said something before it counts as important, and the importance that it gets.
SAID_DAYS, SAID_IMPORTANCE = 3, 4.0
#: Time after which an entry that was never used loses one point of importance.
UNUSED_S = 180 * DAY
#: Importance of entries that are never lowered. They never expire either.
PERMANENT = 5.0
#: The tags of a plan whose days have passed, and of an entry that a note says too.
PASSED, IN_NOTES = "past-plan", "in-notes"
#: Notes that are read to find lines that repeat an entry.
MAX_NOTES = 5_000

_LEAD = re.compile(r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\[[ x]\]\s+)?(?:\d{1,2}:\d{2}(?::\d{2})?\s+)?")

Kind = Literal["joined", "replaced", "passed", "promoted", "lowered", "marked"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a run does."""

    kind: Kind
    why: str
    edits: tuple[Edit, ...]
    #: The entries that it depends on, as they were.
    based_on: tuple[Entry, ...]
    #: The line of a note that it depends on.
    line: str = ""

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the statements come from: entries, the sessions in which they were learned, the line of a note."""
        places = (place for one in self.based_on for place in (f"entry:{one.id}", f"session:{one.session}"))
        return tuple(
            place for place in dict.fromkeys((*places, self.line)) if place not in ("session:None", "")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TidyReport:
    """What a run did, or would do."""

    at: float
    #: Entries in force before the run.
    entries: int
    steps: tuple[Step, ...] = ()
    #: The number of the change; None if nothing was changed.
    change: int | None = None
    #: Steps that wait for the next run, because one run changes at most a tenth of the entries.
    left: int = 0
    #: Entries that wait for the next run to be compared.
    waiting: int = 0
    #: Entries up to this change are compared with all others.
    compared: int = 0
    #: Entries that the owner may want to forget, at most `MAX_PROPOSED`. A run forgets nothing.
    proposed: tuple[AuditFinding, ...] = ()
    degraded: str | None = None
    dry_run: bool = False

    @property
    def changed(self) -> int:
        """The number of entries that were changed."""
        return sum(len(step.edits) for step in self.steps)


def make_plan(memory: Memory, context: EntryContext, since: int) -> TidyReport:
    """Plan a run. Entries with a change after ``since`` are compared with the others."""
    at = context.clock()
    everything = sorted(context.store.find(EntryFilter(now=at)), key=lambda entry: entry.seq)
    undone = undone_entries(context)
    entries = [entry for entry in everything if entry.id not in undone]
    judge, asked = context.options.judge, model_of(memory, context)
    problem = judge.problem() if judge else None
    verdicts, compared, waiting = _compare(context, entries, since, can_judge=problem is None, asked=asked)
    steps = [
        *_ended({id_: verdict for id_, (verdict, _) in verdicts.items()}, at),
        *_passed(entries, at),
        *_promoted(context, entries, at),
        *_lowered(context, everything, entries, at),
        *_marked(memory, entries),
    ]
    chosen, dropped = _limited(steps, max(MIN_CHANGES, int(len(everything) * MAX_SHARE)))
    unfinished = (verdicts[id_][1] - 1 for ids in dropped for id_ in ids if id_ in verdicts)
    return TidyReport(
        at=at,
        entries=len(everything),
        steps=tuple(chosen),
        left=len(dropped),
        waiting=waiting,
        compared=min([compared, *unfinished]),
        degraded=join(problem, asked.problem if asked else None),
    )


def _limited(steps: Iterable[Step], room: int) -> tuple[list[Step], list[set[str]]]:
    """Return the steps that one run takes, and the entries that others would change. A run changes an entry once."""
    chosen, dropped, changed = list[Step](), list[set[str]](), set[str]()
    for step in steps:
        ids = {edit.entry_id for edit in step.edits}
        if not changed.isdisjoint(ids):
            continue
        if some := _within(step, room - len(changed)):
            chosen.append(some)
            changed |= {edit.entry_id for edit in some.edits}
        dropped += [ids - changed] if ids - changed else []
    return chosen, dropped


def _within(step: Step, room: int) -> Step | None:
    """Return a step with at most this many changes. Some of many duplicates can be joined."""
    if len(step.edits) <= room:
        return step
    if step.kind != "joined" or room < MIN_CHANGES:
        return None
    first, *others = step.edits[:room]
    stays = first.before
    assert stays is not None
    ended = [(edit.before, edit.note) for edit in others if edit.before]
    return _join(stays, ended, first.after.updated_at if first.after else 0.0)


def _passed(entries: Iterable[Entry], at: float) -> Iterator[Step]:
    """Yield the plans whose days have passed. They stay, for questions about the past, and matter least."""
    today = local_day(at)
    for entry in (one for one in entries if PASSED not in one.tags and len(one.tags) < MAX_TAGS):
        check_cancelled()
        if days := ended_plan(entry, today):
            importance = entry.importance if entry.importance >= PERMANENT else 1.0
            after = replace(entry, tags=(*entry.tags, PASSED), importance=importance, updated_at=at)
            yield _change("passed", entry, after, f"it was planned for {days}, which has passed")


def _compare(
    context: EntryContext, entries: Sequence[Entry], since: int, *, can_judge: bool, asked: Asked | None
) -> tuple[dict[str, tuple[Verdict, int]], int, int]:
    """Compare the entries that have changed since with the others.

    Return the verdicts by the entry that ends, each with the change of the entry that led to it; the change up to which
    entries are compared; and how many are left.
    """
    fresh, vectors = [entry for entry in entries if entry.seq > since], load_vectors(context, entries)
    verdicts: dict[str, tuple[Verdict, int]] = {}
    waiting = 0
    unread = [since + 1] if fresh and not can_judge else []
    if context.follower.embedder is not None:
        unread += [entry.seq for entry in fresh if entry.id not in vectors]
    judged = 0
    for count, (entry, pairs) in enumerate(pairs_of(context, entries, fresh, vectors)):
        if judged >= MAX_JUDGED or (not vectors and count >= MAX_LOOKED_UP):
            waiting = len(fresh) - count
            unread.append(entry.seq)
            break
        for pair in pairs:
            judged += can_judge and is_readable(pair)
            verdict = verdict_of(asked.judging(context, pair) if asked else context, pair)
            if verdict and asked and verdict.kind == "replaced":
                verdict = replace(verdict, why=asked.why(pair, verdict.why))
            if verdict:
                verdicts.setdefault(verdict.ends.id, (verdict, entry.seq))
            unread += [entry.seq] if asked and asked.missed and not unread else []
    newest = max((entry.seq for entry in entries), default=since)
    return verdicts, min([newest, *(seq - 1 for seq in unread)]), waiting


def _ended(verdicts: Mapping[str, Verdict], at: float) -> Iterator[Step]:
    """Yield the steps that retire what was replaced and join what is said twice."""
    joined = dict[str, tuple[Entry, list[tuple[Entry, str]]]]()
    for one in verdicts.values():
        if one.kind == "replaced":
            after = replace(one.ends, state="superseded", superseded_by=one.stays.id, updated_at=at)
            yield _change("replaced", one.ends, after, one.why, "supersede", one.stays)
        elif last := _survivor(one, verdicts):
            joined.setdefault(last.id, (last, []))[1].append((one.ends, one.why))
    for stays, ended in joined.values():
        yield _join(stays, ended, at)


def _survivor(verdict: Verdict, verdicts: Mapping[str, Verdict]) -> Entry | None:
    """Return the entry into which all of a chain of duplicates is joined; None if something replaced it."""
    seen, last = {verdict.ends.id}, verdict.stays
    while (further := verdicts.get(last.id)) is not None:
        if further.kind == "replaced" or last.id in seen:
            return None
        seen.add(last.id)
        last = further.stays
    return None if last.id in seen else last


def _join(stays: Entry, ended: Sequence[tuple[Entry, str]], at: float) -> Step:
    """Join duplicates. Only those of the same trust count as repetitions and add to the entry that stays."""
    same = [one for one, _ in ended if one.trust == stays.trust]
    expires = stays.expires_at
    for one in same:
        expires = later(expires, one.expires_at)
    first = replace(
        stays,
        repetitions=stays.repetitions + sum(one.repetitions for one in same),
        importance=max(one.importance for one in (stays, *same)),
        confidence=max(one.confidence for one in (stays, *same)),
        valid_from=min(one.valid_from for one in (stays, *same)),
        tags=tuple(dict.fromkeys(tag for one in (stays, *same) for tag in one.tags))[:MAX_TAGS],
        related=tuple(dict.fromkeys((*stays.related, *(one.id for one, _ in ended)))),
        workspace=stays.workspace if all(one.workspace == stays.workspace for one, _ in ended) else None,
        expires_at=expires,
        updated_at=at,
    )
    why = ended[0][1]
    edits = [
        Edit("absorb", replace(one, state="superseded", superseded_by=stays.id, updated_at=at), one, note)
        for one, note in ended
    ]
    based_on = (stays, *(one for one, _ in ended))
    return Step("joined", why, (Edit("repeat", first, stays, why), *edits), based_on)


def _promoted(context: EntryContext, entries: Iterable[Entry], at: float) -> Iterator[Step]:
    """Yield what the owner said on several days and what is not important yet. No other words are promoted."""
    for entry in entries:
        if entry.trust != "owner" or entry.repetitions < SAID_DAYS or entry.importance >= SAID_IMPORTANCE:
            continue
        check_cancelled()
        days = _days_said(context, entry)
        if len(days) >= SAID_DAYS:
            after = replace(entry, importance=SAID_IMPORTANCE, updated_at=at)
            yield _change("promoted", entry, after, f"said on {len(days)} days, last on {max(days)}")


def _days_said(context: EntryContext, entry: Entry) -> set[date]:
    """Return the days on which the speaker of an entry said it. Words of others do not change when it was updated."""
    events = context.store.history(entry.id)
    said = {
        local_day(event.at)
        for event in events
        if event.by != ACTOR and event.after and event.kind in ("repeat", "merge")
        if event.before is None or event.after.updated_at != event.before.updated_at
    }
    joined = [one for one in context.store.replaced_by(entry.id) if one.trust == entry.trust]
    absorbed = [
        one for one in joined if any(event.kind == "absorb" for event in context.store.history(one.id))
    ]
    return said | {local_day(one.created_at) for one in (entry, *absorbed)}


def _lowered(
    context: EntryContext, everything: Sequence[Entry], entries: Iterable[Entry], at: float
) -> Iterator[Step]:
    """Yield what was never used although the memory was. What the owner added by hand keeps its importance."""
    last_use = max((one.last_accessed_at for one in everything if one.last_accessed_at), default=0.0)
    since = known_since(context)
    for entry in entries:
        known_s = min(at, last_use) - max(since.get(entry.id, at), entry.updated_at)
        if is_unused(entry) and known_s >= UNUSED_S and 1.0 < entry.importance < PERMANENT:
            after = replace(entry, importance=max(1.0, entry.importance - 1.0), updated_at=at)
            yield _change("lowered", entry, after, f"never used in {int(known_s / DAY)} days")


def known_since(context: EntryContext) -> dict[str, float]:
    """Return when each entry came to this memory. An import keeps the time at which another program learned it."""
    with context.store.database.read() as connection:
        rows: Any = connection.execute("select entry_id, min(at) from events group by entry_id")
        return {str(id_): float(at) for id_, at in rows}


def is_unused(entry: Entry) -> bool:
    """Return whether an entry was never used nor repeated. What the owner added by hand does not count."""
    imported = (entry.source or "").startswith(IMPORTED)
    by_hand = entry.trust == "owner" and entry.expires_at is None and not imported
    return not entry.access_count and entry.repetitions == 1 and not by_hand


def _marked(memory: Memory, entries: Sequence[Entry]) -> Iterator[Step]:
    """Yield entries that a line of a note says too, and those that no note says any more."""
    lines = _lines_of_notes(memory, {normal_form(entry.text) for entry in entries})
    if lines is None:
        return
    for entry in entries:
        place, is_marked = lines.get(normal_form(entry.text)), IN_NOTES in entry.tags
        if place and not is_marked and len(entry.tags) < MAX_TAGS:
            after = replace(entry, tags=(*entry.tags, IN_NOTES))
            yield replace(_change("marked", entry, after, f"{place} says the same"), line=place)
        elif is_marked and not place:
            after = replace(entry, tags=tuple(tag for tag in entry.tags if tag != IN_NOTES))
            yield _change("marked", entry, after, "no note says it any more")


def _lines_of_notes(memory: Memory, wanted: set[str]) -> dict[str, str] | None:
    """Return the citations of lines that say one of the texts, by text; None if the notes cannot all be read."""
    found = dict[str, str]()
    try:
        files = memory.notes.list(source="memory", limit=MAX_NOTES + 1).files if wanted else ()
        if len(files) > MAX_NOTES:
            return None
        for file in files:
            check_cancelled()
            for number, line in enumerate(memory.notes.read(file.path).text.split("\n"), 1):
                form = normal_form(_LEAD.sub("", line)) if line.strip() else ""
                if form in wanted:
                    found.setdefault(form, f"{file.path}#L{number}")
    except (MemoriterError, OSError):
        return None
    return found


def _change(kind: Kind, before: Entry, after: Entry, why: str, event: str = "update", *others: Entry) -> Step:
    return Step(kind, why, (Edit(event, after, before, why),), (before, *others))


def undone_entries(context: EntryContext) -> set[str]:
    """Return the entries for which a change of a run was undone. They are left alone."""
    statement = (
        "select distinct t.entry_id from events t join events u on u.entry_id = t.entry_id and u.seq > t.seq"
        " where t.by = ? and u.kind = 'undo'"
    )
    with context.store.database.read() as connection:
        rows: Any = connection.execute(statement, (ACTOR,))
        return {str(row[0]) for row in rows}
