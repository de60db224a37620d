"""Recall: finds what belongs in a prompt, fits it into the budget, renders it and records it in the ledger.

Untrusted, expired and superseded entries never enter. `Injector` never raises: without memory the agent still answers.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memoriter import logs
from memoriter.background import is_cancelled
from memoriter.entries.collection import context_of
from memoriter.entries.context import MIN_SIMILARITY
from memoriter.entries.relation import contradicts
from memoriter.entries.search import FoundEntries, judge_together
from memoriter.errors import MemoriterError, StoreError
from memoriter.recall.candidates import Candidate, entry_as, is_said, of_entry, of_note, rank
from memoriter.recall.render import Line, in_order, language_of, render
from memoriter.records import (
    AGENTS,
    Answer,
    Considered,
    Entry,
    EntryType,
    Part,
    Recall,
    Trust,
)
from memoriter.search.freshness import Lookup
from memoriter.sentences import sentence
from memoriter.text import estimate_tokens
from memoriter.text.blocks import without_blocks
from memoriter.text.redaction import redact, without_private

if TYPE_CHECKING:
    from memoriter.entries import Entries
    from memoriter.entries.listing import EntryFilters

log = logs.get("recall")

#: Weight of an entry's importance in a brief.
IMPORTANCE_WEIGHT = 0.6
#: Weight of the types in `ALWAYS`, which hold in every project.
ALWAYS_WEIGHT = 0.2
#: Weight of an entry that was learned in this project.
PROJECT_WEIGHT = 0.2
#: Minimum weight of an entry in a brief.
MIN_BRIEF_WEIGHT = 0.5

ALWAYS: tuple[EntryType, ...] = ("user_preference", "workflow", "skill", "relationship")

#: Maximum number of characters of a query.
MAX_QUERY_CHARS = 1_000
#: Number of notes that are searched for each one that may enter, because many repeat each other.
NOTES_PER_PLACE = 3
#: Maximum number of entries of each kind that a brief chooses from.
MAX_BRIEF_ENTRIES = 500
#: Whose entries may enter a prompt automatically.
TRUSTED: tuple[Trust, ...] = ("owner", *AGENTS)


def weigh(entries: Iterable[Entry], sessions: Collection[str]) -> list[tuple[Entry, tuple[Part, ...], float]]:
    """Return the entries for a brief with the parts of their weight, heaviest first and then newest first.

    ``sessions`` are those of the current project. Decisions from other projects may be wrong here and are left out.
    """
    found = list[tuple[Entry, tuple[Part, ...], float]]()
    for entry in entries:
        always, here = entry.type in ALWAYS, entry.session is None or entry.session in sessions
        if not always and not here:
            continue
        parts = (
            Part(
                "importance",
                entry.importance / 5,
                IMPORTANCE_WEIGHT,
                IMPORTANCE_WEIGHT * entry.importance / 5,
            ),
            Part("always", float(always), ALWAYS_WEIGHT, ALWAYS_WEIGHT * always, entry.type),
            Part("here", float(here), PROJECT_WEIGHT, PROJECT_WEIGHT * here),
        )
        score = sum(part.contribution for part in parts)
        if score >= MIN_BRIEF_WEIGHT:
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
    ) -> Recalled:
        """Return the block for a query. It is recorded unless it is empty or the caller has given up."""
        budget = budget or Budget()
        try:
            return self._recall(query, budget, interface, session, show_places)
        except MemoriterError as error:
            log.error("nothing could be recalled: %s", error)
            return Recalled("", "", degraded=str(error))

    def _recall(
        self,
        query: str,
        budget: Budget,
        interface: str,
        session: str | None,
        show_places: bool,
    ) -> Recalled:
        query = _clean_query(query)
        if not query:
            return Recalled("", "")
        candidates, degraded = self._search(query, budget, show_places)
        fitted = self._fit(candidates, budget, language_of(query))
        if is_cancelled():  # this will not enter a prompt, so it is not recorded
            return Recalled("", "", degraded=degraded)
        recalled = self._record(fitted, query, interface, session)
        return replace(recalled, degraded=" ".join(filter(None, (degraded, recalled.degraded))) or None)

    def _search(self, query: str, budget: Budget, show_places: bool) -> tuple[list[Candidate], str | None]:
        """Return notes and entries as candidates, and what was missing."""
        answer, found = Answer((), "none", ""), FoundEntries(())
        if self.notes and budget.max_notes:
            answer = self.notes(query, budget.max_notes * NOTES_PER_PLACE)
        if budget.max_entries:
            found = self.entries.search(
                query, limit=budget.candidates, threshold=budget.threshold, beside=answer.hits, trust=TRUSTED
            )
        notes, entries, dated = judge_together(query, answer, found, self.lookup)
        candidates = [of_note(hit, show_places, budget.min_confidence, dated=dated) for hit in notes]
        candidates += [of_entry(hit, show_places, budget.min_confidence, dated=dated) for hit in entries]
        return candidates, answer.degraded or found.degraded

    def brief(
        self,
        about: str,
        *,
        sessions: Sequence[str] = (),
        budget: Budget | None = None,
        interface: str = "brief",
        session: str | None = None,
        show_places: bool = True,
    ) -> Recalled:
        """Return the block for the start of a session. ``about`` names the project, ``sessions`` are its sessions."""
        budget = budget or Budget()
        try:
            kinds: tuple[EntryFilters, ...] = (
                {"types": ALWAYS, "trust": TRUSTED},
                {"within": sessions, "trust": TRUSTED},
            )
            found = [self.entries.list(sort="importance", limit=MAX_BRIEF_ENTRIES, **kind) for kind in kinds]
            entries = {entry.id: entry for entry in itertools.chain(*found)}
            best = weigh(entries.values(), frozenset(sessions))[: budget.candidates]
            candidates = [entry_as(entry, score, parts, show_places) for entry, parts, score in best]
            language = language_of(" ".join(one.line.text for one in candidates))
            fitted = self._fit(candidates, budget, language)
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

    def _fit(self, candidates: Sequence[Candidate], budget: Budget, language: Any) -> _Fitted:
        """Choose candidates, best first, as long as each fits as a whole; give a reason for every one."""
        recall_id = uuid.uuid4().hex[:16]
        chosen, considered, text = list[Candidate](), list[Considered](), ""
        left = {"entry": budget.max_entries, "note": budget.max_notes}
        for one in rank(candidates):
            reason = one.refused
            if not reason:
                lines = in_order(each.line for each in (*chosen, one))
                wider = render(lines, recall_id, language)
                said = one.kind == "note" and is_said(one, chosen)
                reason = sentence("recall.duplicate") if said else ""
                reason = reason or ("" if left[one.kind] else sentence("recall.enough"))
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
