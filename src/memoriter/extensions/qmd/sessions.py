"""Session transcripts exported as Markdown, so that qmd can index them.

Line N of an exported file holds the turn of line N of the transcript, so that the line numbers are the same. Each
line starts with the speaker, which also determines its trust.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.errors import SourceError
from memoriter.files.platform import replace
from memoriter.files.state import read_state, write_state
from memoriter.records import FoundFile, Trust, Turn

if TYPE_CHECKING:
    from memoriter.sessions.transcripts import Transcripts

_MANIFEST = ".exported.json"
_LABELS = {"user": "User: ", "assistant": "Assistant: "}
_UNTRUSTED = "Assistant, after text from outside: "
_TRUST: tuple[tuple[str, Trust], ...] = (
    (_UNTRUSTED, "untrusted"),
    (_LABELS["assistant"], "agent"),
    (_LABELS["user"], "owner"),
)


class Exports:
    """The exported transcripts of one agent."""

    def __init__(self, transcripts: Transcripts, folder: Path) -> None:
        self.transcripts = transcripts
        self.folder = folder

    def files(self) -> tuple[FoundFile, ...]:
        """List the transcripts."""
        return self.transcripts.scan().files

    def by_name(self) -> dict[str, FoundFile]:
        """Return the transcripts by the names of their exported files."""
        return {_name(found): found for found in self.files()}

    def write(self) -> None:
        """Export changed transcripts and delete the exports of deleted ones.

        A transcript that cannot be read keeps its last export.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = read_state(self.folder / _MANIFEST)
        now = {name: [found.mtime_ns, found.size] for name, found in self.by_name().items()}
        for name, found in self.by_name().items():
            if known.get(name) != now[name]:
                with suppress(SourceError):
                    _replace(self.folder / name, _lines(self.transcripts.turns(found)))
        for name in known.keys() - now.keys():
            (self.folder / name).unlink(missing_ok=True)
        write_state(self.folder / _MANIFEST, now)

    def lines(self, name: str) -> list[str]:
        """Read the lines of one exported file."""
        try:
            return (self.folder / name).read_text("utf-8").split("\n")
        except OSError as error:
            raise SourceError(f"Cannot read the exported session {name}: {error.strerror}.") from error


def trust_of(lines: Iterable[str]) -> Trust:
    """Return the trust of the least trusted of these exported lines."""
    lines = list(lines)
    return next((trust for label, trust in _TRUST if any(line.startswith(label) for line in lines)), "owner")


def _name(found: FoundFile) -> str:
    digest = hashlib.sha256(found.path.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{found.absolute.stem[:80]}-{digest}.md"


def _lines(turns: Iterable[Turn]) -> Iterator[str]:
    """Yield one line for each line of the transcript. The least trusted part of a message decides its label."""
    next_line = 1
    for line, parts in groupby(turns, key=lambda turn: turn.line):
        together = list(parts)
        yield from [""] * (line - next_line)
        is_untrusted = any(turn.trust == "untrusted" for turn in together)
        label = _UNTRUSTED if is_untrusted else _LABELS[together[0].role]
        yield label + " ".join(" ".join(turn.text.split()) for turn in together)
        next_line = line + 1


def _replace(path: Path, lines: Sequence[str] | Iterator[str]) -> None:
    new = path.with_name(path.name + ".new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{line}\n" for line in lines)
    replace(new, path)
