"""The changes of entries, newest first, and a letter about the last days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from memoriter.entries.collection import context_of
from memoriter.extensions.tidy.auditing import AuditFinding, propose
from memoriter.memory import Memory, parts_of
from memoriter.records import Entry, EntryEvent
from memoriter.store import entry_rows

DAY_S = 86_400.0
#: Changes that one answer has, and statements in each part of a letter.
MAX_CHANGES = 200
MAX_LISTED = 20
#: An entry that no prompt used for so long counts as never used.
UNUSED_S = 14 * DAY_S

#: `EntryEvent.deed`, in SQL.
DEED = "iif(kind = 'reject' and before ->> 'state' <> 'staged', 'forget', kind)"
LEARNED = ("add", "import", "approve")
CHANGED = ("update", "merge", "restore")
RETIRED = ("supersede", "expire", "absorb", "reject", "forget")


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what happened to one or several entries at once."""

    number: int
    at: float
    events: tuple[EntryEvent, ...]
    #: Whether an undo of its first entry would revert exactly this change.
    is_newest: bool


@dataclass(frozen=True, slots=True)
class Letter:
    """What the memory did in the last days."""

    since: float
    until: float
    learned: tuple[Entry, ...]
    #: Statements before and after.
    changed: tuple[tuple[str, Entry], ...]
    retired: tuple[Entry, ...]
    recalls: int
    waiting: int
    never_used: tuple[Entry, ...]
    never_used_total: int
    #: What the owner may want to forget, and why.
    forget: tuple[AuditFinding, ...]


def list_changes(
    memory: Memory,
    *,
    since: float | None = None,
    until: float | None = None,
    by: str | None = None,
    kind: str | None = None,
    before: int | None = None,
    limit: int = MAX_CHANGES,
) -> list[Change]:
    """Return changes, newest first. ``before`` is the number of the last change of the page before."""
    if not parts_of(memory).entries_exist:
        return []
    store = context_of(memory.entries).store
    given = (("at >= ?", since), ("at < ?", until), ("by = ?", by), (f"{DEED} = ?", kind))
    found = [(clause, value) for clause, value in given if value is not None]
    where = " and ".join(["true", *(clause for clause, _ in found)])
    # An import adds changes of earlier times, so the order of the numbers is not that of the days.
    after = "having (max(at), change) < ((select max(at) from events where change = ?), ?)" if before else ""
    with store.database.read() as connection:
        rows: Any = connection.execute(
            f"select change from events where {where} group by change {after}"  # noqa: S608
            " order by max(at) desc, change desc limit ?",
            (*(value for _, value in found), *((before, before) if before else ()), limit),
        ).fetchall()
    changes = []
    for (number,) in rows:
        events = tuple(event for event in store.change(int(number)) if event.before or event.after)
        if events:
            newest = next(store.newest_steps(events[0].entry_id), None)
            changes.append(
                Change(int(number), events[0].at, events, bool(newest and newest.change == number))
            )
    return changes


def write_letter(memory: Memory, *, days: int = 7) -> Letter:
    """Return the letter of the last days."""
    if not parts_of(memory).entries_exist:
        now = datetime.now().astimezone().timestamp()
        return Letter(now - days * DAY_S, now, (), (), (), 0, 0, (), 0, ())
    context = context_of(memory.entries)
    until = context.clock()
    since = until - days * DAY_S
    with context.store.database.read() as connection:
        events = entry_rows.events(connection, "at >= ?", since)
    active = memory.entries.list()
    known = {entry.id: entry for entry in active}
    learned = {event.entry_id for event in events if event.kind in LEARNED and event.entry_id in known}
    changed = {
        event.entry_id: event.before.text
        for event in reversed(events)  # the oldest text of these days stays
        if event.kind in CHANGED and event.before and event.after and event.before.text != event.after.text
    }
    retired = {event.entry_id: event.before for event in events if event.kind in RETIRED and event.before}
    unused = [one for one in active if not one.access_count and until - one.created_at >= UNUSED_S]
    return Letter(
        since,
        until,
        tuple(known[id_] for id_ in known if id_ in learned),
        tuple((text, known[id_]) for id_, text in changed.items() if id_ in known and id_ not in learned),
        tuple(entry for id_, entry in retired.items() if id_ not in known),
        memory.entries.recalls(limit=1, since=since).total,
        len(memory.entries.list(states=("staged",))) + len(memory.notes.pending()),
        tuple(unused[:MAX_LISTED]),
        len(unused),
        tuple(islice(propose(context, active, until), MAX_LISTED)),
    )


def as_markdown(letter: Letter) -> str:
    """Return a letter as Markdown."""

    def part(title: str, lines: list[str], total: int | None = None) -> list[str]:
        count = len(lines) if total is None else total
        more = [f"- and {count - MAX_LISTED:,} more"] if count > MAX_LISTED else []
        return [f"## {title} ({count:,})", "", *(lines[:MAX_LISTED] or ["Nothing."]), *more, ""]

    def line(text: str) -> str:
        return f"- {' '.join(text.split())}"

    dates = (datetime.fromtimestamp(at).astimezone() for at in (letter.since, letter.until))
    days = " to ".join(f"{date:%Y-%m-%d}" for date in dates)
    return "\n".join(
        [
            f"# The memory, {days}",
            "",
            f"Recalled {letter.recalls:,} times. {letter.waiting:,} wait for approval.",
            "",
            *part("Learned", [line(entry.text) for entry in letter.learned]),
            *part("Changed", [line(f"{before} → {entry.text}") for before, entry in letter.changed]),
            *part("Retired", [line(entry.text) for entry in letter.retired]),
            *part("Never used", [line(entry.text) for entry in letter.never_used], letter.never_used_total),
            *part("Forget?", [line(f"{one.texts[0]} ({one.why}): `{one.fix}`") for one in letter.forget]),
        ]
    )
