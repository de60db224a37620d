"""Recall: finds what belongs in a prompt, fits it into the budget, renders it and records it in the ledger.

Untrusted, expired and superseded entries never enter. `Injector` never raises: without memory the agent still answers.
"""

from __future__ import annotations

import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import chain, groupby
from typing import Any

from memoriter import logs
from memoriter.background import is_cancelled
from memoriter.entries import Entries
from memoriter.entries.collection import context_of
from memoriter.entries.context import MIN_SIMILARITY
from memoriter.entries.relation import contradicts
from memoriter.entries.search import EntryFilters, FoundEntries, judge_together, needed_confidence
from memoriter.errors import MemoriterError, StoreError
from memoriter.recall.profile import make_profile, section_of, whose_words
from memoriter.recall.render import NOTES, Line, in_order, language_of, render
from memoriter.records import (
    AGENTS,
    Answer,
    Considered,
    Entry,
    EntryHit,
    EntryType,
    Hit,
    Part,
    Recall,
    Trust,
    Turn,
    is_trusted_like,
)
from memoriter.search.freshness import Lookup, asks_about_the_past
from memoriter.search.when import label_plans, past_question
from memoriter.sentences import sentence
from memoriter.sessions.messages import turns_of_messages
from memoriter.text import estimate_tokens, query_terms
from memoriter.text.blocks import without_blocks
from memoriter.text.dates import end_of_day, local_day
from memoriter.text.redaction import redact, without_private
from memoriter.text.tokens import find_words
from memoriter.text.words import normal_form, split_sentences

#: Maximum number of characters of a query, and of the user's message.
MAX_QUERY_CHARS = 1_000
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
    #: The place of a newer line about the same thing, which enters even if enough lines have entered.
    newer: str = ""


def of_entry(hit: Hit, found: EntryHit, show_places: bool, least: float, *, dated: bool = False) -> Candidate:
    """Return an entry as a candidate; it is refused if untrusted, or below the minimum confidence."""
    entry = found.entry
    refused = sentence("recall.untrusted_memory") if entry.trust == "untrusted" else ""
    one = entry_as(entry, hit.score, hit.explain.parts, show_places)
    if dated or found.before:
        one = _dated(one, entry)
    if entry.superseded_by:
        until = f"{entry.day} to {local_day(entry.updated_at)}"
        one = replace(one, line=replace(one.line, date=until))
    return replace(one, refused=refused or _weakness(hit.confidence, least))


def entry_as(entry: Entry, score: float, parts: tuple[Part, ...], show_places: bool) -> Candidate:
    """Return an entry as a candidate."""
    ref = f"entry:{entry.id}" if show_places else ""
    line = Line(ref, entry.type, entry.text, whose_words(entry.trust, entry.source))
    return Candidate(line, "entry", entry.id, score, parts, trust=entry.trust)


def _dated(one: Candidate, entry: Entry) -> Candidate:
    return replace(one, line=replace(one.line, date=entry.day or ""))


def of_note(hit: Hit, show_places: bool, least: float, *, dated: bool = False) -> Candidate:
    """Return a piece of a note as a candidate; it is refused if untrusted, empty, or below the minimum confidence."""
    refused = sentence("recall.untrusted_text") if hit.trust == "untrusted" else ""
    text = _MARKER.sub("", _FRONT.sub("", hit.snippet)).strip()
    refused = refused or ("" if text else sentence("recall.markup"))
    refused = refused or _weakness(hit.confidence, least)
    place = f"{hit.path}#L{hit.start_line}-L{hit.end_line}"
    ref, date = (hit.citation or "" if show_places else ""), (hit.date or "" if dated else "")
    line = Line(ref, NOTES, text, whose_words(hit.trust, None), date)
    return Candidate(line, "note", place, hit.score, hit.explain.parts, refused, hit.trust)


def _aged(one: Candidate, days: str | None, *, past: bool) -> Candidate:
    """Refuse a plan whose days have passed. A question about the past gets it together with them."""
    if days and past:
        return replace(one, line=replace(one.line, date=f"{days} (planned)"))
    return replace(one, refused=sentence("recall.past_plan", days=days)) if days and not one.refused else one


def _checked(one: Candidate, check: Check | None) -> Candidate:
    return replace(one, line=replace(one.line, stale=check(one))) if check and not one.refused else one


def _weakness(confidence: float | None, least: float) -> str:
    """Return the reason to refuse a line that is not likely to answer."""
    if confidence is None or confidence >= least:
        return ""
    return sentence("recall.weak", confidence=round(confidence, 3), threshold=least)


def rank(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates in their order. An entry that says all of a better note comes before it: it is shorter."""
    places = {one.ref: place for place, one in enumerate(candidates)}
    entries = [one for one in candidates if one.kind == "entry" and not one.refused]
    for note in (one for one in candidates if one.kind == "note" and not one.refused):
        for entry in entries:
            if is_said(note, [entry]):
                places[entry.ref] = min(places[entry.ref], places[note.ref])
    return sorted(candidates, key=lambda one: (places[one.ref], one.kind))


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
    pieces = split_sentences(body if body.strip() else text)
    return {form for form in (normal_form(_LEAD.sub("", piece)) for piece in pieces) if form}


log = logs.get("recall")

#: Weight of an entry's importance in a brief.
IMPORTANCE_WEIGHT = 0.6
#: Weight of the lines of the profile.
PROFILE_WEIGHT = 0.2
#: Weight of an entry that was learned in this project.
PROJECT_WEIGHT = 0.2
#: Minimum weight of an entry in a brief.
MIN_BRIEF_WEIGHT = 0.5

#: Types that may be about the owner.
PERSONAL: tuple[EntryType, ...] = ("user_preference", "workflow", "skill", "relationship", "fact", "other")

#: Number of notes that are searched for each one that may enter, because many repeat each other.
NOTES_PER_PLACE = 3
#: Maximum number of entries of each kind that a brief chooses from.
MAX_BRIEF_ENTRIES = 500
#: Whose entries may enter a prompt automatically.
TRUSTED: tuple[Trust, ...] = ("owner", *AGENTS)


def weigh(
    entries: Collection[Entry], sessions: Collection[str], today: date
) -> list[tuple[Entry, tuple[Part, ...], float]]:
    """Return the entries for a brief with the parts of their weight, heaviest first and then newest first.

    ``sessions`` are those of the current project. Decisions from other projects may be wrong here and are left out.
    """
    local = {one.id for one in entries if one.session is None or one.session in sessions}
    usable = [one for one in entries if one.id in local or section_of(one, today) not in ("projects", None)]
    profiled = {line.citation for line in make_profile(usable, today).lines}
    found = list[tuple[Entry, tuple[Part, ...], float]]()
    for entry in usable:
        parts = tuple(
            Part(name, value, weight, weight * value)
            for name, value, weight in (
                ("importance", entry.importance / 5, IMPORTANCE_WEIGHT),
                ("profile", float(f"entry:{entry.id}" in profiled), PROFILE_WEIGHT),
                ("here", float(entry.id in local), PROJECT_WEIGHT),
            )
        )
        score = sum(part.contribution for part in parts)
        if score >= MIN_BRIEF_WEIGHT and section_of(entry, today):
            found.append((entry, parts, score))
    return sorted(found, key=lambda one: (-one[2], -one[0].updated_at))


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of the text that enters a prompt: its size and its minimum relevance."""

    max_entries: int = 10
    max_notes: int = 3
    #: Minimum similarity of an entry.
    threshold: float = MIN_SIMILARITY
    #: Minimum probability that a note or an entry answers.
    min_confidence: float = 0.25
    characters: int = 4_000
    #: None means that only characters are limited.
    tokens: int | None = None
    candidates: int = 20


@dataclass(frozen=True, slots=True)
class Recalled:
    """The result of a recall."""

    #: Its id in the ledger; empty if it is not recorded.
    id: str
    #: The block; empty if nothing is relevant.
    text: str
    lines: tuple[Line, ...] = ()
    degraded: str | None = None


_Fitted = tuple[list[Line], list[Considered], str, str]
Check = Callable[[Candidate], str]
"""Returns what a candidate names that does not exist; empty if it names nothing of the kind."""
NotesSearch = Callable[[str, int], "Answer"]


class Injector:
    """Makes the recalls of one agent."""

    def __init__(
        self,
        entries: Entries,
        notes: NotesSearch | None = None,
        lookup: Lookup | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.entries = entries
        self.notes = notes
        self.lookup = lookup or Lookup(contradicts)
        self._clock = clock

    def recall(
        self,
        query: str,
        *,
        budget: Budget | None = None,
        interface: str = "recall",
        session: str | None = None,
        show_places: bool = True,
        check: Check | None = None,
    ) -> Recalled:
        """Return the block for a query. It is recorded unless it is empty or the caller has given up."""
        budget = budget or Budget()
        try:
            query = _clean_query(query)
            if not query:
                return Recalled("", "")
            candidates, degraded = self._search(query, budget, show_places)
            fitted = self._fit(candidates, budget, language_of(query), check)
            if is_cancelled():  # this will not enter a prompt, so it is not recorded
                return Recalled("", "", degraded=degraded)
            recalled = self._record(fitted, query, interface, session)
            return replace(recalled, degraded=" ".join(filter(None, (degraded, recalled.degraded))) or None)
        except MemoriterError as error:
            log.error("nothing could be recalled: %s", error)
            return Recalled("", "", degraded=str(error))

    def _search(self, query: str, budget: Budget, show_places: bool) -> tuple[list[Candidate], str | None]:
        """Return notes and entries as candidates, and what was missing."""
        answer, found = Answer((), "none", ""), FoundEntries(())
        if self.notes and budget.max_notes:
            answer = self.notes(query, budget.max_notes * NOTES_PER_PLACE)
        today = local_day(self._clock())
        if budget.max_entries:
            search = partial(
                self.entries.search,
                limit=budget.candidates,
                threshold=budget.threshold,
                beside=answer.hits,
                trust=TRUSTED,
            )
            found = search(query)
            if asked := past_question(query, today):
                then = search(asked.text, as_of=end_of_day(asked.day))
                both = {hit.entry.id: hit for hit in (*then.hits, *found.hits)}
                found = replace(found, hits=tuple(both.values()))
        hits = label_plans(judge_together(query, answer, found, self.lookup), today)
        least, past = needed_confidence(budget.min_confidence, hits), asks_about_the_past(query)
        dated = any(hit.newer for hit in hits)

        def candidate(hit: Hit) -> Candidate:
            if hit.entry is None:
                one = of_note(hit, show_places, least(hit), dated=dated)
            else:
                one = of_entry(hit, hit.entry, show_places, least(hit), dated=dated)
            return replace(_aged(one, hit.planned, past=past), newer=(hit.newer or "").removeprefix("entry:"))

        return [candidate(hit) for hit in hits], answer.degraded or found.degraded

    def brief(
        self,
        about: str,
        *,
        sessions: Sequence[str] = (),
        also: Sequence[Entry] = (),
        budget: Budget | None = None,
        interface: str = "brief",
        session: str | None = None,
        show_places: bool = True,
        check: Check | None = None,
    ) -> Recalled:
        """Return the block for the start of a session, as `Memory.brief` describes it."""
        budget = budget or Budget()
        try:
            kinds: tuple[EntryFilters, ...] = (
                {"types": PERSONAL, "trust": TRUSTED},
                {"within": sessions, "trust": TRUSTED},
            )
            found = [self.entries.list(sort="importance", limit=MAX_BRIEF_ENTRIES, **kind) for kind in kinds]
            entries = {entry.id: entry for entry in chain(*found, also)}
            today = local_day(self._clock())
            best = weigh(entries.values(), frozenset(sessions), today)[: budget.candidates]
            candidates = [
                _dated(entry_as(entry, score, parts, show_places), entry) for entry, parts, score in best
            ]
            language = language_of(" ".join(one.line.text for one in candidates))
            fitted = self._fit(candidates, budget, language, check)
            return self._record(fitted, _clean_query(about), interface, session)
        except MemoriterError as error:
            log.error("nothing could be recalled: %s", error)
            return Recalled("", "", degraded=str(error))

    def _record(self, fitted: _Fitted, query: str, interface: str, session: str | None) -> Recalled:
        """Record a recall that is not empty. If the disk is full, the block is returned anyway."""
        chosen, considered, text, recall_id = fitted
        if not chosen:
            return Recalled("", text)
        used = [one.ref for one in considered if one.entered and one.kind == "entry"]
        size = (len(text), estimate_tokens(text))
        try:
            context_of(self.entries).add_recall(
                Recall(recall_id, self._clock(), interface, session, query, *size, tuple(considered), text),
                used,
            )
        except StoreError as error:
            log.error("a recall is not in the ledger: %s", error)
            return Recalled("", text, tuple(chosen), f"This recall is not in the ledger: {error}")
        return Recalled(recall_id, text, tuple(chosen))

    def _fit(
        self, candidates: Sequence[Candidate], budget: Budget, language: Any, check: Check | None
    ) -> _Fitted:
        """Choose candidates, best first, as long as each fits as a whole; give a reason for every one."""
        recall_id = uuid.uuid4().hex[:16]
        chosen, considered, text = list[Candidate](), list[Considered](), ""
        left = {"entry": budget.max_entries, "note": budget.max_notes}
        for one in (_checked(each, check) for each in rank(candidates)):
            reason = one.refused
            if not reason:
                lines = in_order(each.line for each in [*chosen, one])
                wider = render(lines, recall_id, language)
                said = one.kind == "note" and is_said(one, chosen)
                reason = sentence("recall.duplicate") if said else ""
                is_newer = any(each.newer == one.ref for each in chosen)
                reason = reason or ("" if left[one.kind] > 0 or is_newer else sentence("recall.enough"))
                reason = reason or ("" if _fits(wider, budget) else sentence("recall.no_room"))
                if not reason:
                    chosen, text = [*chosen, one], wider
                    left[one.kind] -= 1
            why = reason or sentence("recall.fits", score=round(one.score, 3))
            entered = "" if reason else one.line.text
            considered.append(Considered(one.kind, one.ref, not reason, why, one.score, one.parts, entered))
        return in_order(one.line for one in chosen), considered, text, recall_id


def _clean_query(query: str) -> str:
    """Return a query without injected blocks, private spans and secrets, because the ledger keeps it."""
    return redact(without_private(without_blocks(query))).strip()[:MAX_QUERY_CHARS]


def _fits(text: str, budget: Budget) -> bool:
    return len(text) <= budget.characters and (
        budget.tokens is None or estimate_tokens(text) <= budget.tokens
    )
