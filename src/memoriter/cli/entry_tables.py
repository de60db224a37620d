"""How entries look: tables with stars for people, JSON for machines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.cli.render import _console as console
from memoriter.cli.render import _table as table
from memoriter.cli.render import plain, to_json

if TYPE_CHECKING:
    from memoriter.records import CleanedUp, Entry, Event, Imported, Part, Recall, Receipt, Remembered


def stars(importance: float) -> str:
    """Importance as stars.

    >>> stars(3.8)
    '★★★★☆'
    """
    full = round(importance)
    return "★" * full + "☆" * (5 - full)


def day(seconds: float | None) -> str:
    """A time as people write days; empty for none."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}" if seconds is not None else ""


def one_line(text: str, width: int = 80) -> str:
    """A text fit for a table's cell."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def remembered(done: Remembered, as_json: bool) -> None:
    """What became of a statement."""
    entry = done.entry
    if as_json:
        head = asdict(entry) if entry else {"id": None}
        to_json({**head, "action": done.action, "replaced": done.replaced, "note": done.note})
        return
    if entry is None:
        console().print(f"Not remembered: {done.note}")
        return
    console().print(f"{done.action.capitalize()}: {entry.id}  {entry.type}  {stars(entry.importance)}")
    if done.note:
        console().print(f"Note: {done.note}")


def entries(found: Sequence[Entry], as_json: bool) -> None:
    """A list of entries."""
    if as_json:
        to_json([asdict(entry) for entry in found])
        return
    rows = [
        (
            entry.id[:8],
            one_line(entry.text),
            entry.type,
            stars(entry.importance),
            day(entry.updated_at),
            _state(entry),
        )
        for entry in found
    ]
    console().print(table(rows, "id", "text", "type", "importance", "updated", "state"))


def _state(entry: Entry) -> str:
    trust = "" if entry.trust == "owner" else f" ({entry.trust})"
    return entry.state + trust


def events(found: Sequence[Event], as_json: bool) -> None:
    """The history of an entry."""
    if as_json:
        to_json([asdict(event) for event in found])
        return
    rows = [(str(e.seq), day(e.at), e.kind, e.by, _change(e), e.note) for e in found]
    console().print(table(rows, "event", "day", "what", "by", "text", "note"))


def _change(event: Event) -> str:
    after = event.after.text if event.after else ""
    if event.before and event.before.text != after:
        return f"{one_line(event.before.text, 40)} → {one_line(after, 40) or 'nothing'}"
    return one_line(after)


def undone(taken_back: Sequence[Event], now: Sequence[Entry], as_json: bool) -> None:
    """What an undo did."""
    if as_json:
        to_json({"undone": [event.seq for event in taken_back], "entries": [asdict(entry) for entry in now]})
        return
    for event in taken_back:
        console().print(f"Took back: {event.kind} of {event.entry_id[:8]}  {_change(event)}")


def write_private(path: Path, lines: Iterable[str]) -> int:
    """Write lines into a file that only its owner may read; how many entries they are."""
    count = -1  # the head line is no entry
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        for line in lines:
            file.write(line + "\n")
            count += 1
        file.flush()
        os.fsync(file.fileno())
    return count


def exported(count: int, path: Path, as_json: bool) -> None:
    """How much was written where."""
    if as_json:
        to_json({"exported": count, "path": str(path)})
    else:
        console().print(f"{count} entries written to {path}.")


def imported(done: Imported, as_json: bool) -> None:
    """What an import did."""
    if as_json:
        to_json(asdict(done))
    else:
        console().print(f"{done.added} entries taken in, {done.already} were there already.")


def receipt(done: Receipt, as_json: bool) -> None:
    """What was forgotten, which copies went, and which are out of reach."""
    if as_json:
        to_json(asdict(done))
        return
    if done.candidates:
        console().print(
            "It is not clear which one is meant; nothing was forgotten. Name one of these by its id:"
        )
        entries([hit.entry for hit in done.candidates], as_json=False)
        return
    verb = "Would forget" if done.dry_run else "Forgot"
    console().print(
        f"{verb} {len(done.forgotten)} entries: {', '.join(id_[:8] for id_ in done.forgotten) or 'none'}"
    )
    for title, lines in (("Covered", done.covered), ("Not covered", done.not_covered)):
        for line in lines:
            console().print(f"  {title}: {line}")


def cleaned_up(done: CleanedUp, as_json: bool) -> None:
    """What a cleanup did."""
    if as_json:
        to_json(asdict(done))
    else:
        console().print(f"{done.expired} entries expired, {done.purged} erased.")


def recall(told: Recall, as_json: bool) -> None:
    """What entered a prompt, and why."""
    if as_json:
        to_json(asdict(told))
        return
    console().print(f"Recall {told.id} on {day(told.at)}, by {told.door}, session {told.session or 'none'}")
    console().print(plain(f"Asked: {told.query or '(forgotten)'}"))
    rows = [
        ("entered" if one.entered else "left out", one.ref, f"{one.score:.3f}", one.reason, _parts(one.parts))
        for one in told.considered
    ]
    console().print(table(rows, "", "what", "score", "why", "made of"))


def _parts(parts: Sequence[Part]) -> str:
    return ", ".join(f"{part.name} {part.contribution:+.3f}" for part in parts)
