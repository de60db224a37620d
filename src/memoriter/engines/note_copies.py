"""The copies of entries in notes and sessions: which lines are erased with an entry, and which places still say it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.engines import Engine
from memoriter.files import durable
from memoriter.files.platform import command_line
from memoriter.records import NoteLine, Query, Trust
from memoriter.search.shape import ALL_WORDS
from memoriter.sentences import sentence
from memoriter.text.words import normal_form

if TYPE_CHECKING:
    from memoriter.notes.collection import Notes

#: Maximum number of texts that are looked up in notes and sessions, and of places that are named for each.
MAX_TEXTS, MAX_PLACES = 50, 20


class NoteCopies:
    """The copies of entries in the files of one memory. An agent erases lines only in agents' logs.

    ``others`` are the folders of the indexes of other workspaces, ``aside`` are files that a restore replaced, and
    ``deleted`` has the notes that the owner deleted.
    """

    def __init__(
        self,
        engine: Engine,
        notes: Notes,
        trust: Trust,
        others: Sequence[Path],
        aside: Sequence[Path],
        deleted: Path,
    ) -> None:
        self._engine = engine
        self._notes = notes
        self._trust = trust
        self._deleted = deleted
        self._others = sorted(folder.name.rpartition("-")[0] for folder in others)
        self._aside = [str(path) for path in aside]

    def erase(self, texts: Sequence[str], *, dry_run: bool) -> tuple[tuple[NoteLine, ...], tuple[str, ...]]:
        """Erase the lines of daily logs that say exactly this. Return them, and descriptions of what remains."""
        result = self._notes.erase_lines(texts, trust=self._trust, dry_run=dry_run)
        if not dry_run:
            # Always: an erasure that was killed here, or a note that was deleted earlier, leaves the same words.
            self._engine.sync()
            self._engine.purge()
        if not dry_run and self._trust == "owner":
            for note in filter(Path.is_file, self._deleted.rglob("*")):
                said = normal_form(_text_of(note))
                if any(form in said for form in map(normal_form, texts) if form):
                    durable.remove(note)
        return result.lines, (*result.left, *self._left())

    def _left(self) -> list[str]:
        left = list[str]()
        if self._others:
            left.append(sentence("forget.workspaces", names=", ".join(self._others)))
        if self._aside:
            command = command_line(["rm", "-r", *self._aside])
            left.append(sentence("forget.replaced", paths=", ".join(self._aside), command=command))
        return left

    def mentions(self, texts: Sequence[str]) -> tuple[tuple[str, ...], bool]:
        """Return citations of the notes and sessions that contain all words of a text, and whether that is all."""
        places, complete = dict[str, None](), len(texts) <= MAX_TEXTS
        for text in texts[:MAX_TEXTS]:
            query = Query(text, max_results=MAX_PLACES, min_score=0.0, rerank=False)
            answer = self._engine.search(query)
            complete = complete and answer.degraded is None and len(answer.hits) < MAX_PLACES
            for hit in answer.hits:
                if hit.explain.coverage >= ALL_WORDS:
                    places[f"{hit.path}#L{hit.start_line}-L{hit.end_line}"] = None
        return tuple(sorted(places)), complete


def _text_of(note: Path) -> str:
    """Return the text of a deleted note or transcript. Lines of a transcript may escape letters."""
    text = note.read_text("utf-8", "replace")
    if note.suffix != ".jsonl":
        return text
    plain = re.sub(r"(?:\\u[0-9a-fA-F]{4})+", lambda found: json.loads(f'"{found[0]}"'), text)
    return plain.replace(r"\n", " ").replace(r"\"", '"')
