"""Tables of changes, of what waits for approval, and of recalls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from memoriter.cli.entry_tables import change_of, conversation, count_entries, day, entries, remembered
from memoriter.cli.render import console, fit, plain, print_table

if TYPE_CHECKING:
    from memoriter.records import CleanedUp, Entry, EntryEvent, Part, Recall, RecallPage, Remembered

NOTHING_STAGED = "Nothing waits for your approval."


def staged(waiting: Sequence[Entry], notes: Sequence[str]) -> None:
    """Print the entries and notes that wait for approval."""
    if waiting or not notes:
        entries(waiting, if_none=NOTHING_STAGED)
    for path in notes:
        console().print(f"{path} (a note: run `memoriter approve {path}`, or delete the file)")


def approved(outcomes: Sequence[Remembered], notes: Sequence[str]) -> None:
    """Print what happened to approved entries and notes."""
    if not outcomes and not notes:
        console().print(NOTHING_STAGED)
    for path in notes:
        console().print(f"Approved {path}.")
    for outcome in outcomes:
        remembered(outcome)


def events(found: Sequence[EntryEvent]) -> None:
    """Print the history of an entry."""
    rows = [
        (
            str(event.seq),
            day(event.at),
            event.deed,
            event.by,
            conversation(event.after or event.before),
            change_of(event),
            event.note,
        )
        for event in found
    ]
    print_table(rows, "event", "day", "change", "by", "conversation", "text", "note")


def cleaned_up(counts: CleanedUp) -> None:
    """Print what a cleanup changed."""
    restored = f", {counts.restored} in force again" if counts.restored else ""
    console().print(f"{count_entries(counts.expired)} expired, {counts.purged} erased{restored}.")
    if counts.clock:
        console().print(counts.clock, style="yellow")


def recalls(page: RecallPage) -> None:
    """Print a list of recalls."""
    if not page.recalls:
        console().print("No recalls yet. A recall adds notes and entries to the prompt of an agent.")
        return
    rows = [
        (
            recall.id[:8],
            f"{datetime.fromtimestamp(recall.at).astimezone():%Y-%m-%d %H:%M}",
            recall.interface,
            recall.session or "",
            f"{recall.entered} of {recall.entered + recall.left_out}",
            " ".join(recall.query.split()) or "(forgotten)",
        )
        for recall in page.recalls
    ]
    print_table(rows, "recall", "time", "by", "session", "added", "query")
    if page.total > len(page.recalls):
        console().print(f"{page.total} recalls in all. Show more with --limit.")


def recall(record: Recall, texts: Mapping[str, str], found_entries: Mapping[str, Entry]) -> None:
    """Print what entered a prompt, and why. ``texts`` and ``found_entries`` are what the references lead to now."""
    console().print(
        f"Recall {record.id} on {day(record.at)}, by {record.interface}, session {record.session or 'none'}"
    )
    console().print(plain(f"Query: {record.query or '(forgotten)'}"))
    if not record.considered:
        console().print("Nothing was found.")
        return
    for found in record.considered:
        state = "included" if found.entered else "left out"
        text = fit(found.text or texts.get(found.ref, "(no longer there)"), 17)
        origin = _origin(found.ref, found_entries.get(found.ref))
        console().print(f"{state}  {found.score:.3f}  {text}")
        console().print(f"{'':8}  {'':5}  {origin} · {found.reason}", style="dim")
        console().print(f"{'':8}  {'':5}  {_parts(found.parts)}", style="dim")


def _origin(ref: str, entry: Entry | None) -> str:
    """Return the place of a note, or the short id of an entry with the conversation that it comes from."""
    if entry is None:
        return f"from {ref}"
    said = conversation(entry)
    return f"entry {entry.id[:8]}{said and f' · from {said}'}"


def _parts(parts: Sequence[Part]) -> str:
    return ", ".join(f"{part.name} {part.contribution:+.3f}" for part in parts)
