"""Taking lines out of the day's logs: those that say just what somebody wants forgotten, and no others.

A line that says more than that is a person's own note and stays; whoever asks is told that notes are not covered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from recollect.store.digests import normal_form
from recollect.writing import files

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.md")
_LEAD = re.compile(r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\d{1,2}:\d{2}(?::\d{2})?\s+)?")


def strike(root: Path, texts: Iterable[str]) -> list[str]:
    """Remove the lines of `memory/YYYY-MM-DD.md` that say one of the texts; the names of the logs that changed."""
    forms = {form for form in map(normal_form, texts) if form}
    logs = sorted(path for path in (root / "memory").glob("*.md") if _DAY.fullmatch(path.name))
    return [
        path.name
        for path in logs
        if _says(path, forms) and files.update(path, lambda old: _without(old, forms))
    ]


def _says(path: Path, forms: set[str]) -> bool:
    text = files.read(path)
    return text is not None and _without(text, forms) != text


def _without(text: str | None, forms: set[str]) -> str | None:
    if text is None:
        return None
    kept = [line for line in text.splitlines(keepends=True) if normal_form(_LEAD.sub("", line)) not in forms]
    return "".join(kept)
