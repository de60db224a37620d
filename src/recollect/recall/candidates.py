"""What was found for a prompt, as lines that may be told, in the order in which they are.

A thing is told once, in its shortest form, and marks for programs are left out. How much enters is `inject`'s duty.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.recall.render import NOTES, Line

if TYPE_CHECKING:
    from recollect.records import Entry, EntryHit, Hit

_FRONT = re.compile(r"\A---\n.*?(?:\n---\s*(?:\n|\Z)|\Z)", re.DOTALL)
_OURS = re.compile(r"<!-- recollect: [^\n]*? -->")
_HEADINGS = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_WORDS = re.compile(r"[a-z0-9_à-ɏ]+|[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that may be told."""

    line: Line
    kind: str  #: "entry" or "note"
    ref: str
    score: float
    parts: tuple[Any, ...]
    refused: str = ""  #: why it may not enter


def of_entry(hit: EntryHit, show_places: bool) -> Candidate:
    """An entry, unless it comes from outside."""
    entry = hit.entry
    refused = (
        "untrusted memories are never put before an agent by themselves"
        if entry.origin == "untrusted"
        else ""
    )
    return Candidate(entry_line(entry, show_places), "entry", entry.id, hit.score, hit.explain.parts, refused)


def entry_line(entry: Entry, show_places: bool) -> Line:
    """An entry as it is told."""
    return Line(f"entry:{entry.id}" if show_places else "", entry.type, entry.text)


def of_note(hit: Hit, show_places: bool, least: float) -> Candidate:
    """A piece of a note, unless it comes from outside, holds nothing to tell, or fits less than it must."""
    refused = "untrusted text is never put before an agent by itself" if hit.trust == "untrusted" else ""
    text = _OURS.sub("", _FRONT.sub("", hit.snippet)).strip()
    refused = refused or ("" if text else "it holds nothing but marks for programs")
    refused = refused or (
        "" if hit.score >= least else f"it fits too little: {hit.score:.3f}, less than {least:g}"
    )
    place = f"{hit.path}#L{hit.start_line}-L{hit.end_line}"
    line = Line(hit.citation or "" if show_places else "", NOTES, text)
    return Candidate(line, "note", place, hit.score, hit.explain.parts, refused)


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Best first; an entry that says all of a better note stands before it, because it says so in fewer words."""
    rank = {one.ref: one.score for one in candidates}
    entries = [one for one in candidates if one.kind == "entry" and not one.refused]
    for note in (one for one in candidates if one.kind == "note" and not one.refused):
        for entry in entries:
            if is_said(note.line, [entry.line]):
                rank[entry.ref] = max(rank[entry.ref], note.score)
    return sorted(candidates, key=lambda one: (-rank[one.ref], one.kind))


def is_said(line: Line, chosen: Sequence[Line]) -> bool:
    """Whether another line has every word of this one: what was said, logged and summarised would fill the prompt."""
    words = _words(line.text)
    return any(words <= _words(other.text) for other in chosen)


def _words(text: str) -> set[str]:
    """Every word under the headings, the small ones too: they turn a statement round. Of Chinese, every character."""
    body = _HEADINGS.sub("", text)
    return set(_WORDS.findall((body if body.strip() else text).casefold()))
