"""`memoriter init`: make what is missing, touch nothing that exists."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memoriter.config import Settings

# In comments that no search reads, and without a heading: a new memory is empty, and a search of it finds nothing.
MEMORY_MD = """\
<!-- memoriter: lasting facts go here, one to a line: who, what, how things are done. -->
<!-- memoriter: the day's notes go to memory/YYYY-MM-DD.md, longer topics to memory/<topic>/<name>.md. -->
"""

CONFIG_YAML = """# Settings of memoriter. Everything has a default; `memoriter config show` lists all of it.
# workspace: {workspace}
# search:
#   max_results: 6
# embedding:
#   provider: auto
"""


@dataclass(frozen=True, slots=True)
class Made:
    """What `init` made, and what it found there already."""

    workspace: Path
    home: Path
    made: tuple[Path, ...]
    kept: tuple[Path, ...]


def set_up(settings: Settings) -> Made:
    """Make the workspace's and the home's first files."""
    root, home = settings.workspace, settings.home
    notes = root / "memory"
    core = next(
        (root / name for name in ("MEMORY.md", "memory.md") if (root / name).is_file()), root / "MEMORY.md"
    )
    made, kept = list[Path](), list[Path]()
    for folder, mode in ((root, 0o777), (notes, 0o777), (home, 0o700)):
        (kept if folder.is_dir() else made).append(folder)
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for file, text, mode in (
        (core, MEMORY_MD, 0o666),
        (home / "config.yaml", CONFIG_YAML.format(workspace=root), 0o600),
    ):
        (made if _create(file, text, mode) else kept).append(file)
    return Made(root, home, tuple(made), tuple(kept))


def _create(file: Path, text: str, mode: int) -> bool:
    """Write a new file; False when there is one, whoever made it and however lately."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(handle)
    return True
