"""A change of a note that tests make: more text at its end."""

from __future__ import annotations

from pathlib import Path

from memoriter.files import edits


def append(path: Path, text: str, *, head: str = "") -> bool:
    """Append a text. A new note starts with ``head``. Existing content stays unchanged to the byte."""

    def change(old: str | None) -> str:
        before = head if old is None else old
        newline = "\r\n" if "\r\n" in before else "\n"
        gap = "" if not before or before.endswith("\n") else newline
        return before + gap + text.replace("\n", newline)

    return edits.update(path, change)
