"""What was found for a prompt, as lines that may be told, in the order in which they are.

A thing is told once, in its shortest form and by whom is trusted most; marks for programs are left out. How much
enters is `inject`'s duty.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memoriter.recall.render import NOTES, Line
from memoriter.records import Turn, is_trusted_like
from memoriter.sentences import sentence
from memoriter.sessions.messages import turns_of_messages
from memoriter.text import query_terms
from memoriter.text.tokens import find_words
from memoriter.text.words import normal_form

if TYPE_CHECKING:
    from memoriter.records import Entry, EntryHit, Hit, Part, Trust


MAX_QUERY = 1000  #: characters of what the person said
RECENT = 10  #: messages that say what the conversation is about
KEYWORDS = 8  #: the person's own words must weigh more than what was talked about before
AGAIN = 3  #: messages that must have a word in common: an answer repeats its question's words, and that says little
FEW = 20  #: characters; so few alone are joined with what the person said before


def question(messages: Sequence[Mapping[str, object]]) -> str:
    """What the person said last; then what the last messages keep coming back to, the words of most of them first."""
    turns = turns_of_messages(messages)[-RECENT:]
    said = [turn.text for turn in turns if turn.role == "user"]
    if not said:
        return ""
    newest = "\n".join(said[-2:] if len(said[-1]) < FEW else said[-1:])[-MAX_QUERY:]
    return " ".join([newest, *_recurring(turns, besides=newest)])


def _recurring(turns: Sequence[Turn], besides: str) -> list[str]:
    """Words that several turns have in common, as they were written; text from outside does not steer a memory."""
    held, written = Counter[str](), dict[str, str]()
    for turn in turns:
        if turn.trust != "untrusted":
            text = turn.text[:MAX_QUERY]
            held.update(query_terms(text))
            written |= {token: text[start:end] for start, end, tokens in find_words(text) for token in tokens}
    known = set(query_terms(besides))
    again = (term for term, turns_with in held.most_common() if turns_with >= AGAIN and term not in known)
    return list(dict.fromkeys(written[term] for term in again if term in written))[:KEYWORDS]


_FRONT = re.compile(r"\A---\n.*?(?:\n---\s*(?:\n|\Z)|\Z)", re.DOTALL)
_OURS = re.compile(r"<!-- memoriter: [^\n]*? -->")
_HEADINGS = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_ENDS = re.compile(r"(?<=[.!?…])\s|(?<=[。！？])|\n")
#: What logs, lists and our own summaries put before a sentence.
_LEAD = re.compile(
    r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\d{1,2}:\d{2}(?::\d{2})?\s+)?(?:It began with: |起因：)?"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that may be told."""

    line: Line
    kind: str  #: "entry" or "note"
    ref: str
    score: float
    parts: tuple[Any, ...]
    refused: str = ""  #: why it may not enter
    trust: Trust = "owner"


def of_entry(hit: EntryHit, show_places: bool) -> Candidate:
    """An entry that was found, unless it comes from outside."""
    refused = sentence("recall.untrusted_memory")
    found = entry_as(hit.entry, hit.score, hit.explain.parts, show_places)
    return replace(found, refused=refused if found.trust == "untrusted" else "")


def entry_as(entry: Entry, score: float, parts: tuple[Part, ...], show_places: bool) -> Candidate:
    """An entry as it is told."""
    line = Line(f"entry:{entry.id}" if show_places else "", entry.type, entry.text)
    return Candidate(line, "entry", entry.id, score, parts, trust=entry.trust)


def of_note(hit: Hit, show_places: bool, least: float) -> Candidate:
    """A piece of a note, unless it comes from outside, holds nothing to tell, or fits less than it must."""
    refused = sentence("recall.untrusted_text") if hit.trust == "untrusted" else ""
    text = _OURS.sub("", _FRONT.sub("", hit.snippet)).strip()
    refused = refused or ("" if text else sentence("recall.markup"))
    if not refused and hit.score < least:
        refused = sentence("recall.weak", score=round(hit.score, 3), threshold=least)
    place = f"{hit.path}#L{hit.start_line}-L{hit.end_line}"
    line = Line(hit.citation or "" if show_places else "", NOTES, text)
    return Candidate(line, "note", place, hit.score, hit.explain.parts, refused, hit.trust)


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Best first; an entry that says all of a better note stands before it, because it says so in fewer words."""
    rank = {one.ref: one.score for one in candidates}
    entries = [one for one in candidates if one.kind == "entry" and not one.refused]
    for note in (one for one in candidates if one.kind == "note" and not one.refused):
        for entry in entries:
            if is_said(note, [entry]):
                rank[entry.ref] = max(rank[entry.ref], note.score)
    return sorted(candidates, key=lambda one: (-rank[one.ref], one.kind))


def is_said(one: Candidate, chosen: Sequence[Candidate]) -> bool:
    """Whether another has every sentence of this one: what was said, logged and summarised would fill the prompt.

    Whole sentences, because few words turn one round: "never deploy on Friday" holds "deploy on Friday". And the other
    must be trusted no less.
    """
    sentences = _sentences(one.line.text)
    return any(
        is_trusted_like(other.trust, one.trust) and sentences <= _sentences(other.line.text)
        for other in chosen
    )


def _sentences(text: str) -> set[str]:
    """The sentences under the headings, without what does not change their meaning."""
    body = _HEADINGS.sub("", text)
    pieces = _ENDS.split(body if body.strip() else text)
    return {form for form in (normal_form(_LEAD.sub("", piece)) for piece in pieces) if form}
