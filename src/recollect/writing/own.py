"""Which notes are an agent's own: those whose front matter says ``trust: agent``. All others are not its to change."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from recollect.chunking import trust_of_note
from recollect.text.lines import split_lines
from recollect.writing import files
from recollect.writing.notebook import front_matter

HEAD = front_matter(trust="agent") + "\n"
"""What stands above the text of every note that an agent makes."""

_FRONT = re.compile(r"\A---[ \t]*\r?\n.*?\n---[ \t]*\r?\n(?:\r?\n)?", re.DOTALL)


def parted(text: str) -> tuple[str, str]:
    """The lines that say that a note is the agent's, and its text; of others' notes the text alone."""
    found = _FRONT.match(text)
    if found is None or trust_of_note(split_lines(text)) != "agent":
        return "", text
    return found[0], text[found.end() :]


def all_own(path: Path) -> bool:
    """Whether a note, or every file below a folder, is the agent's own."""
    if stat.S_ISREG(mode_of(path)):
        return bool(parted(files.read(path) or "")[0])
    if not stat.S_ISDIR(mode_of(path)):
        return False
    walk = list(os.walk(path))
    if any(stat.S_ISLNK(mode_of(Path(folder, name))) for folder, names, _ in walk for name in names):
        return False
    return all(all_own(Path(folder, name)) for folder, _, names in walk for name in names)


def mode_of(path: Path) -> int:
    """What stands at a path, links not followed; 0 for nothing."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
