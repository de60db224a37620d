"""The query for a recall, and the candidates for a prompt in their order.

A statement enters a prompt once, in its shortest and most trusted form. Markers for programs are removed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from memoriter.recall.render import NOTES, Line, Whose
from memoriter.records import IMPORTED, Turn, is_trusted_like
from memoriter.sentences import sentence
from memoriter.sessions.messages import turns_of_messages
from memoriter.text import query_terms
from memoriter.text.tokens import find_words
from memoriter.text.words import normal_form

if TYPE_CHECKING:
    from memoriter.records import Entry, EntryHit, Hit, Part, Trust


#: Maximum number of characters of the user's message.
MAX_QUERY_CHARS = 1000
#: Number of messages that say what the conversation is about.
MAX_MESSAGES = 10
#: Maximum number of recurring words. The words of the user's message must count more.
MAX_RECURRING_WORDS = 8
#: Minimum number of messages that share a word. An answer repeats the words of its question, so two are too few.
MIN_RECURRENCES = 3
#: A message with fewer characters is joined with the user's message before it.
MIN_MESSAGE_CHARS = 20


def question(messages: Sequence[Mapping[str, object]]) -> str:
    """Return the user's last message, followed by words that recur in the last messages, the most frequent first."""
    turns = turns_of_messages(messages)[-MAX_MESSAGES:]
    said = [
        "\n".join(turn.text for turn in message)
        for _, message in groupby((turn for turn in turns if turn.role == "user"), key=lambda turn: turn.line)
    ]
    if not said:
        return ""
    newest = "\n".join(said[-2:] if len(said[-1]) < MIN_MESSAGE_CHARS else said[-1:])[-MAX_QUERY_CHARS:]
    return " ".join([newest, *_recurring(turns, besides=newest)])


def _recurring(turns: Sequence[Turn], besides: str) -> list[str]:
    """Return words that several turns share, as they were written. Untrusted text is ignored."""
    held, written = Counter[str](), dict[str, str]()
    for turn in turns:
        if turn.trust != "untrusted":
            text = turn.text[:MAX_QUERY_CHARS]
            held.update(query_terms(text))
            written |= {token: text[start:end] for start, end, tokens in find_words(text) for token in tokens}
    known = set(query_terms(besides))
    again = (
        term for term, turns_with in held.most_common() if turns_with >= MIN_RECURRENCES and term not in known
    )
    return list(dict.fromkeys(written[term] for term in again if term in written))[:MAX_RECURRING_WORDS]


_FRONT = re.compile(r"\A---\n.*?(?:\n---\s*(?:\n|\Z)|\Z)", re.DOTALL)
_MARKER = re.compile(r"<!-- memoriter: [^\n]*? -->")
_HEADINGS = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_ENDS = re.compile(r"(?<=[.!?…])\s|(?<=[。！？])|\n")
#: Prefixes of sentences in logs, lists and generated summaries.
_LEAD = re.compile(
    r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\d{1,2}:\d{2}(?::\d{2})?\s+)?(?:It began with: |起因：)?"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry or a piece of a note that may enter a prompt."""

    line: Line
    #: "entry" or "note".
    kind: str
    ref: str
    score: float
    parts: tuple[Any, ...]
    #: The reason why it must not enter the prompt.
    refused: str = ""
    trust: Trust = "owner"


def of_entry(hit: EntryHit, show_places: bool, least: float, *, dated: bool = False) -> Candidate:
    """Return an entry as a candidate; it is refused if untrusted, or below the minimum confidence."""
    refused = sentence("recall.untrusted_memory") if hit.entry.trust == "untrusted" else ""
    found = entry_as(hit.entry, hit.score, hit.explain.parts, show_places)
    if dated:
        found = replace(found, line=replace(found.line, date=hit.entry.day or ""))
    return replace(found, refused=refused or _weakness(hit.confidence, least))


def entry_as(entry: Entry, score: float, parts: tuple[Part, ...], show_places: bool) -> Candidate:
    """Return an entry as a candidate."""
    ref = f"entry:{entry.id}" if show_places else ""
    line = Line(ref, entry.type, entry.text, _whose(entry.trust, entry.source or ""))
    return Candidate(line, "entry", entry.id, score, parts, trust=entry.trust)


def of_note(hit: Hit, show_places: bool, least: float, *, dated: bool = False) -> Candidate:
    """Return a piece of a note as a candidate; it is refused if untrusted, empty, or below the minimum confidence."""
    refused = sentence("recall.untrusted_text") if hit.trust == "untrusted" else ""
    text = _MARKER.sub("", _FRONT.sub("", hit.snippet)).strip()
    refused = refused or ("" if text else sentence("recall.markup"))
    refused = refused or _weakness(hit.confidence, least)
    place = f"{hit.path}#L{hit.start_line}-L{hit.end_line}"
    ref, date = (hit.citation or "" if show_places else ""), (hit.date or "" if dated else "")
    line = Line(ref, NOTES, text, _whose(hit.trust), date)
    return Candidate(line, "note", place, hit.score, hit.explain.parts, refused, hit.trust)


def _whose(trust: Trust, source: str = "") -> Whose:
    """Return whose words a text is. What the owner imported from another program was not said to this agent."""
    if trust == "owner":
        return "imported" if source.startswith(IMPORTED) else "owner"
    return "outside" if trust == "untrusted" else trust


def _weakness(confidence: float | None, least: float) -> str:
    """Return the reason to refuse a line that is not likely to answer."""
    if confidence is None or confidence >= least:
        return ""
    return sentence("recall.weak", confidence=round(confidence, 3), threshold=least)


def rank(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort candidates, best first. An entry that says all of a better note comes before it, because it is shorter."""
    scores = {one.ref: one.score for one in candidates}
    entries = [one for one in candidates if one.kind == "entry" and not one.refused]
    for note in (one for one in candidates if one.kind == "note" and not one.refused):
        for entry in entries:
            if is_said(note, [entry]):
                scores[entry.ref] = max(scores[entry.ref], note.score)
    return sorted(candidates, key=lambda one: (-scores[one.ref], one.kind))


def is_said(one: Candidate, chosen: Sequence[Candidate]) -> bool:
    """Return whether another candidate contains every sentence of this one and is trusted at least as much.

    What was said, logged and summarised would fill the prompt. Whole sentences are compared, because a few words can
    reverse a meaning: "never deploy on Friday" contains "deploy on Friday".
    """
    sentences = _sentences(one.line.text)
    return any(
        is_trusted_like(other.trust, one.trust) and sentences <= _sentences(other.line.text)
        for other in chosen
    )


def _sentences(text: str) -> set[str]:
    """Return the sentences below the headings, without what does not change their meaning."""
    body = _HEADINGS.sub("", text)
    pieces = _ENDS.split(body if body.strip() else text)
    return {form for form in (normal_form(_LEAD.sub("", piece)) for piece in pieces) if form}
