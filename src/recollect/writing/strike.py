"""Taking lines out of the day's logs: those that say just what somebody wants forgotten, and no others.

A line that says more than that is a person's own note and stays; whoever asks is told that notes are not covered.
A log that cannot be read or written keeps nobody from striking the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from recollect.errors import WriteError
from recollect.store.digests import normal_form
from recollect.writing import files

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:-agent(?:-\d{1,2})?)?\.md")
_LEAD = re.compile(r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\d{1,2}:\d{2}(?::\d{2})?\s+)?")


def strike(root: Path, texts: Iterable[str]) -> list[str]:
    """Remove the lines of the days' logs, people's and agents', that say one of the texts; the logs that changed.

    Where no log changed, but some could not be looked at, `WriteError` names them: first what can be done is done.
    """
    forms = {form for form in map(normal_form, texts) if form}
    changed, left = list[str](), list[str]()
    for path in sorted(path for path in (root / "memory").glob("*.md") if _DAY.fullmatch(path.name)):
        try:
            if _struck(path, forms):
                changed.append(path.name)
        except (WriteError, OSError):
            left.append(path.name)
    if left and not changed:
        raise WriteError(f"logs that could not be read or written, and may say it: {', '.join(left)}")
    return changed


def _struck(path: Path, forms: set[str]) -> bool:
    """Whether the log said one of the texts; a log that does not is never opened for writing."""
    text = files.read(path)
    if text is None or _without(text, forms) == text:
        return False
    return files.update(path, lambda old: _without(old, forms))


def _without(text: str | None, forms: set[str]) -> str | None:
    if text is None:
        return None
    kept = [line for line in text.splitlines(keepends=True) if normal_form(_LEAD.sub("", line)) not in forms]
    return "".join(kept)
