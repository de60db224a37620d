"""Tables of entries."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.cli.render import console, fit, plain, stars
from memoriter.invisible import invisible

if TYPE_CHECKING:
    from memoriter.records import Entry, EntryEvent, Receipt, Remembered


def day(seconds: float | None) -> str:
    """Return the day of a time, or an empty string for None."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}" if seconds is not None else ""


def count_entries(number: int) -> str:
    """Return a number of entries in words.

    >>> count_entries(1), count_entries(0)
    ('1 entry', '0 entries')
    """
    return f"{number} {'entry' if number == 1 else 'entries'}"


def remembered(outcome: Remembered) -> None:
    """Print what happened to a statement."""
    entry = outcome.entry
    if entry is None:
        console().print(f"Not stored: {outcome.note}")
        return
    about = f"{entry.id}  {entry.type}  {stars(entry.importance)}  {expiry(entry)}"
    console().print(f"{'Added' if outcome.replaced else outcome.action.capitalize()}: {about}")
    if outcome.replaced:
        console().print(f"Superseded: {outcome.replaced[:8]} ({outcome.note or 'contradicts it'})")
    elif outcome.note:
        console().print(f"Note: {outcome.note}")
    _warn_of_invisible(entry)


def _warn_of_invisible(entry: Entry) -> None:
    """Say that an entry contains invisible characters, which can make a text read as another."""
    if names := invisible(" ".join((entry.text, *entry.tags))):
        console().print(f"{'':8}  Invisible characters: {', '.join(names)}.", style="yellow")


def entries(
    found: Sequence[Entry], state: str | None = None, if_none: str = "No entries.", total: int | None = None
) -> None:
    """Print a list of entries. ``state`` replaces the state that each had last. ``total`` counts those not listed too.

    The words are Chinese if the entries are.
    """
    from memoriter.recall.render import LABELS, language_of

    if not found:
        console().print(if_none)
    language = language_of(" ".join(entry.text for entry in found))
    if found and total is not None:
        console().print(f"共 {total} 条" if language == "zh" else count_entries(total))
    for entry in found:
        label = f"{LABELS['zh'][entry.type]} ({entry.type})" if language == "zh" else entry.type
        about = [label, stars(entry.importance), f"updated {day(entry.updated_at)}", expiry(entry)]
        if origin := conversation(entry):
            about.append(f"from {origin}")
        console().print(f"{entry.id[:8]}  {fit(entry.text, 10)}")
        console().print(f"{'':8}  {' · '.join([*about, state or _state(entry)])}", style="dim")
        _warn_of_invisible(entry)


def expiry(entry: Entry) -> str:
    """Return when an entry expires, in words."""
    return "never expires" if entry.expires_at is None else f"expires {day(entry.expires_at)}"


def conversation(entry: Entry | None) -> str:
    """Return the session that an entry comes from, or else the interface that added it."""
    return " ".join(plain((entry.session or entry.source or "") if entry else "").split())


def _state(entry: Entry) -> str:
    trust = "" if entry.trust == "owner" else f" ({entry.trust})"
    return entry.state + trust


def change_of(event: EntryEvent) -> str:
    """Return the text before and after a change."""
    after = event.after.text if event.after else ""
    if event.before and event.before.text != after:
        return f"{_flat(event.before.text)} → {_flat(after) or '(removed)'}"
    return f"{_flat(after)} (said: {_flat(event.said)})" if event.said else _flat(after)


def _flat(text: str) -> str:
    return " ".join(text.split())


def undone(changes: Sequence[EntryEvent]) -> None:
    """Print what an undo changed."""
    for event in changes:
        console().print(plain(f"Undone: {event.deed} of {event.entry_id[:8]}  {change_of(event)}"))


def redone(undos: Sequence[EntryEvent]) -> None:
    """Print what a redo changed."""
    for event in undos:
        change = replace(event, before=event.after, after=event.before)
        console().print(plain(f"Redone: {event.entry_id[:8]}  {change_of(change)}"))


#: The first candidate is the clear choice if its similarity exceeds that of the second by at least this.
CLEAR_LEAD = 0.1


def edit_text(text: str) -> str:
    """Let the user change a text in an editor. Raises `BadArgument` if there is none, or if it fails."""
    import shlex
    import subprocess
    import tempfile

    from memoriter.errors import BadArgument, reason_of

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise BadArgument("No editor is set: set EDITOR, or pass the new text with --text.")
    with tempfile.TemporaryDirectory(prefix="memoriter-") as folder:  # only its owner can read it
        file = Path(folder, "entry.txt")
        file.write_text(f"{text}\n", encoding="utf-8")
        try:
            if sys.platform == "win32":  # the shell finds `code.cmd` and leaves backslashes as they are
                subprocess.run(f'{editor} "{file}"', check=True, shell=True)  # noqa: S602
            else:
                subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603 - the user's own editor
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise BadArgument(
                f"The editor '{editor}' failed: {reason_of(error)}. Nothing was changed."
            ) from error


def clear_candidate(result: Receipt) -> Entry | None:
    """Return the one candidate that is probably meant. A person can be asked about it."""
    from memoriter.records import level_of

    ranked = sorted(result.candidates, key=lambda hit: -hit.similarity)
    if ranked and level_of(ranked[0].confidence) == "low":
        return None
    if not ranked or (len(ranked) > 1 and ranked[0].similarity - ranked[1].similarity < CLEAR_LEAD):
        return None
    return ranked[0].entry


def receipt(result: Receipt, *, erased: bool) -> None:
    """Print what was forgotten, which copies were erased, and which could not be."""
    if result.candidates:
        console().print(
            "No entry matches for certain, and nothing was forgotten. Forget one of these by its id:"
        )
        entries([hit.entry for hit in result.candidates])
    elif not result.forgotten:
        console().print("No entry matches. Nothing was forgotten.")
    if not result.forgotten:
        _mentions(result)
        return
    verb = (
        ("Would erase" if erased else "Would forget") if result.dry_run else "Erased" if erased else "Forgot"
    )
    ids = ", ".join(id_[:8] for id_ in result.forgotten)
    console().print(f"{verb} {count_entries(len(result.forgotten))}: {ids}")
    for title, lines in (("Covered", result.covered), ("Not covered", result.not_covered)):
        for line in lines:
            console().print(f"  {title}: {line}")
    note_lines(result)
    _mentions(result)
    if not erased and not result.dry_run:
        console().print(
            f"Restore with `memoriter undo {result.forgotten[0][:8]}`. "
            f"Erase at once with `memoriter forget {result.forgotten[0][:8]} --now`."
        )


def note_lines(result: Receipt) -> None:
    """Print the lines of notes that are erased with the entries."""
    if result.note_lines:
        console().print(
            "Lines of daily logs that are erased too:" if result.dry_run else "Lines of daily logs, erased:"
        )
    for at in result.note_lines:
        console().print(plain(f"  {at.path}:{at.line}  {at.text}"))


def _mentions(result: Receipt) -> None:
    if result.mentions:
        console().print("Notes and sessions that still say it:")
    for place in result.mentions:
        console().print(plain(f"  {place}"))
