"""Taking lines out of the day's logs: those that say just what somebody wants forgotten, and no others.

A line that says more than that is a person's own note and stays; whoever asks is told that notes are not covered.
An agent takes lines out of agents' logs alone: the owner's are named. A log that cannot be read or written keeps nobody
from striking the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from memoriter.errors import WriteError
from memoriter.files import update
from memoriter.notes.chunking import trust_of_note
from memoriter.records import Trust
from memoriter.store.digests import normal_form
from memoriter.text.lines import split_lines

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:-(?:agent|owner)(?:-\d{1,2})?)?\.md")
_LEAD = re.compile(r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\d{1,2}:\d{2}(?::\d{2})?\s+)?")


class Struck(NamedTuple):
    """What came of it."""

    changed: tuple[str, ...]  #: names of logs
    left: tuple[str, ...]  #: what stays, in words


class _NotTheirs(Exception):
    """The log holds somebody else's words."""


def strike(root: Path, texts: Iterable[str], *, trust: Trust = "owner") -> Struck:
    """Remove the lines of the days' logs that say one of the texts: for the owner from all, else from agents' alone."""
    forms = {form for form in map(normal_form, texts) if form}
    changed, kept, unread = list[str](), list[str](), list[str]()
    for path in sorted(path for path in (root / "memory").glob("*.md") if _DAY.fullmatch(path.name)):
        try:
            if _struck(path, forms, trust):
                changed.append(path.name)
        except _NotTheirs:
            kept.append(path.name)
        except (WriteError, OSError):
            unread.append(path.name)
    left = {
        "logs of the owner that say it, and are changed by the owner alone": kept,
        "logs that could not be read or written, and may say it": unread,
    }
    return Struck(
        tuple(changed), tuple(f"{what}: {', '.join(names)}" for what, names in left.items() if names)
    )


def _struck(path: Path, forms: set[str], trust: Trust) -> bool:
    """Whether the log said one of the texts; a log that does not is never opened for writing."""
    text = update.read(path)
    if text is None or _without(text, forms, trust) == text:
        return False
    return update.update(path, lambda old: _without(old, forms, trust))


def _without(text: str | None, forms: set[str], trust: Trust) -> str | None:
    if text is None:
        return None
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if normal_form(_LEAD.sub("", line)) not in forms]
    if len(kept) < len(lines) and trust != "owner" and trust_of_note(split_lines(text)) == "owner":
        raise _NotTheirs
    return "".join(kept)
