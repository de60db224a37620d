"""What commands say about the folder of notes: files that are not indexed, and how to go on."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.cli import render
from memoriter.extension import offers
from memoriter.files.platform import quote

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.memory import Memory

#: Endings of files that are not notes, by the kind that people call them.
KINDS = {
    "PDF": ".pdf",
    "Word": ".docx .doc",
    "images": ".png .jpg .jpeg .gif .webp .svg .heic .bmp .tiff",
    "audio": ".mp3 .m4a .wav .ogg .flac .opus",
    "code": ".py .js .ts .tsx .go .rs .java .c .h .cpp .rb .sh .sql .css .html",
}
#: Files that are counted at most, so that a command in a huge folder does not wait.
MAX_COUNTED = 50_000
#: The kind of files beyond that number. At least one exists.
UNCOUNTED = "uncounted"


def not_indexed(memory: Memory) -> dict[str, int]:
    """Count the files of the workspace that are not in the memory, by kind. Hidden files are left out."""
    from memoriter.files.scan import NOTE_SUFFIXES, SKIPPED_FOLDERS

    root, indexed = memory.settings.workspace, set(memory.notes.paths())

    def files() -> Iterator[str]:
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name[0] != "." and name not in SKIPPED_FOLDERS]
            below = Path(folder).relative_to(root)
            yield from ((below / name).as_posix() for name in names if name[0] != ".")

    kinds = {"notes": " ".join(NOTE_SUFFIXES), **KINDS}
    by_suffix = {suffix: kind for kind, suffixes in kinds.items() for suffix in suffixes.split()}
    every = files()
    left_out = (Path(path) for path in islice(every, MAX_COUNTED) if path not in indexed)
    counts = Counter(by_suffix.get(path.suffix.lower(), "other") for path in left_out)
    counts[UNCOUNTED] = sum(1 for _ in islice(every, 1))
    return {kind: counts[kind] for kind in (*kinds, "other", UNCOUNTED) if counts[kind]}


def describe_files(counts: Mapping[str, int]) -> str:
    """Return counts of files in words."""
    text = ", ".join(f"{kind} {number}" for kind, number in counts.items() if kind != UNCOUNTED)
    if UNCOUNTED not in counts:
        return text
    return f"{text or 'none'} among the first {MAX_COUNTED:,} files; the folder has more than {MAX_COUNTED:,}"


def how_to_index(counts: Mapping[str, int], folder: Path) -> str:
    """Say how to index what is not indexed: all notes, and documents whose reader is not installed."""
    hints = list[str]()
    if "notes" in counts:
        name, is_open = quote(str(folder)), os.access(folder, os.W_OK)
        command = f"init {name} --all-notes" if is_open else f"collection add NAME {name}"
        hints.append(f"To index all notes, run `memoriter {command}`.")
    readers = ((kind, offers("readers").get(suffixes.split()[0])) for kind, suffixes in KINDS.items())
    missing = {
        kind: reader for kind, reader in readers if kind in counts and reader and not reader.is_installed()
    }
    if missing:
        install = next(iter(missing.values())).install
        hints.append(f"To read {' and '.join(missing)} files, run `{install}`, then `memoriter index`.")
    return " ".join(hints)


@contextmanager
def saying_how_to_continue(memory: Memory) -> Iterator[None]:
    """When a person interrupts an index, say what is ready and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        now = memory.status()
        files, meaning = render.count(now.files, "file"), f"{now.embedded} of {now.chunks} chunks by meaning"
        ready = f"{files} can be searched by keyword, {meaning}"
        sys.stderr.write(
            f"memoriter: Interrupted. {ready}. To go on, run `{index_command(memory.settings)}`.\n"
        )
        raise


def index_command(settings: Settings) -> str:
    """Return the command that indexes a workspace."""
    is_here = Path.cwd().resolve() == settings.workspace.resolve()
    return "memoriter index" if is_here else f"memoriter index --workspace {quote(str(settings.workspace))}"
