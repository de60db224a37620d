"""What is put before the agent by itself: found, sifted, fitted into the budget, rendered, and noted in the ledger.

Untrusted, expired and superseded memories never enter. It never raises: without memory the agent answers all the same.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memoriter import logs
from memoriter.entries.search import MIN_SIMILARITY
from memoriter.errors import MemoriterError, StoreError
from memoriter.recall.candidates import Candidate, entry_as, is_said, of_entry, of_note, ranked
from memoriter.recall.render import Line, in_order, language_of, render
from memoriter.records import Considered, Entry, EntryType, Part, Recall, Trust
from memoriter.sentences import sentence
from memoriter.text import estimate_tokens
from memoriter.text.blocks import without_blocks

if TYPE_CHECKING:
    from memoriter.entries import Entries
    from memoriter.entries.listing import EntryFilters
    from memoriter.records import Answer, Hit


IMPORTANCE = 0.6  #: weight of an entry's stars
LASTING = 0.2  #: of a preference or a habit, which hold in every project
HERE = 0.2  #: of what was learned in this project
LEAST = 0.5  #: below this an entry waits until it is asked for

ALWAYS: tuple[EntryType, ...] = ("user_preference", "workflow", "skill", "relationship")


def weighed(
    entries: Iterable[Entry], sessions: Collection[str]
) -> list[tuple[Entry, tuple[Part, ...], float]]:
    """The entries that matter, with the parts of their weight: heaviest first, newest first among equals.

    ``sessions`` are those of the project at hand. What was decided in another one may be wrong here, and is left out.
    """
    found = list[tuple[Entry, tuple[Part, ...], float]]()
    for entry in entries:
        always, here = entry.type in ALWAYS, entry.session is None or entry.session in sessions
        if not always and not here:
            continue
        parts = (
            Part("importance", entry.importance / 5, IMPORTANCE, IMPORTANCE * entry.importance / 5),
            Part("always", float(always), LASTING, LASTING * always, entry.type),
            Part("here", float(here), HERE, HERE * here),
        )
        score = sum(part.contribution for part in parts)
        if score >= LEAST:
            found.append((entry, parts, score))
    return sorted(found, key=lambda one: (-one[2], -one[0].updated_at))


log = logs.get("recall")

QUERY_CHARS = 1_000
SPARE = 3  #: notes that are looked at for each that may enter: many say what has been said
LOOKED_THROUGH = 500  #: most important entries of each kind that a brief is made of
#: Whose entries may enter a prompt automatically.
TRUSTED: tuple[Trust, ...] = ("owner", "agent")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be told, and how well it must fit."""

    max_entries: int = 10
    max_notes: int = 3
    threshold: float = MIN_SIMILARITY  #: minimum similarity of an entry
    note_threshold: float = 0.25  #: of a note's score
    characters: int = 4_000
    tokens: int | None = None  #: None: characters alone bound it
    candidates: int = 20


@dataclass(frozen=True, slots=True)
class Recalled:
    """What the agent is told now."""

    id: str  #: under which the ledger knows it; empty where it does not
    text: str  #: the block; empty when nothing fits
    lines: tuple[Line, ...] = ()
    degraded: str | None = None


_Fitted = tuple[list[Line], list[Considered], str, str]
NotesSearch = Callable[[str, int], "Answer"]


class Injector:
    """Recalls for one agent."""

    def __init__(
        self,
        entries: Entries,
        notes: NotesSearch | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.entries = entries
        self.notes = notes
        self._clock = clock

    def recall(
        self,
        query: str,
        *,
        budget: Budget | None = None,
        interface: str = "recall",
        session: str | None = None,
        show_places: bool = True,
        given_up: Callable[[], bool] = lambda: False,
    ) -> Recalled:
        """The block for a query, noted in the ledger when it is not empty and somebody still waits for it."""
        budget = budget or Budget()
        try:
            return self._recall(query, budget, interface, session, show_places, given_up)
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
        given_up: Callable[[], bool],
    ) -> Recalled:
        query = without_blocks(query).strip()[:QUERY_CHARS]
        if not query:
            return Recalled("", "")
        notes: Sequence[Hit] = ()
        candidates, degraded = list[Candidate](), None
        if self.notes and budget.max_notes:
            answer = self.notes(query, budget.max_notes * SPARE)
            notes, degraded = answer.hits, answer.degraded
            candidates += [of_note(hit, show_places, budget.note_threshold) for hit in notes]
        if budget.max_entries:
            found = self.entries.search(
                query, limit=budget.candidates, threshold=budget.threshold, beside=notes, trust=TRUSTED
            )
            candidates += [of_entry(hit, show_places) for hit in found.hits]
            degraded = degraded or found.degraded
        fitted = self._fitted(candidates, budget, language_of(query))
        if given_up():  # the ledger says what entered a prompt, and this will not
            return Recalled("", "", degraded=degraded)
        told = self._noted(fitted, query, interface, session)
        return replace(told, degraded=" ".join(filter(None, (degraded, told.degraded))) or None)

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
        """What matters before anything was asked; ``about`` names the project, and ``sessions`` were in it."""
        budget = budget or Budget()
        try:
            kinds: tuple[EntryFilters, ...] = (
                {"types": ALWAYS, "trust": TRUSTED},
                {"within": sessions, "trust": TRUSTED},
            )
            found = [self.entries.list(sort="importance", limit=LOOKED_THROUGH, **kind) for kind in kinds]
            entries = {entry.id: entry for entry in itertools.chain(*found)}
            best = weighed(entries.values(), frozenset(sessions))[: budget.candidates]
            candidates = [entry_as(entry, score, parts, show_places) for entry, parts, score in best]
            language = language_of(" ".join(one.line.text for one in candidates))
            return self._noted(self._fitted(candidates, budget, language), about, interface, session)
        except MemoriterError as error:
            log.error("nothing could be recalled: %s", error)
            return Recalled("", "", degraded=str(error))

    def _noted(self, fitted: _Fitted, query: str, interface: str, session: str | None) -> Recalled:
        """What is told, noted in the ledger when it is anything; told all the same when the disk takes no note."""
        chosen, considered, text, recall_id = fitted
        if not chosen:
            return Recalled("", text)
        used = [one.ref for one in considered if one.entered and one.kind == "entry"]
        size = (len(text), estimate_tokens(text))
        try:
            self.entries.add_recall(
                Recall(recall_id, self._clock(), interface, session, query, *size, tuple(considered)), used
            )
        except StoreError as error:
            log.error("a recall is not in the ledger: %s", error)
            return Recalled("", text, tuple(chosen), f"This recall is not in the ledger: {error}.")
        return Recalled(recall_id, text, tuple(chosen))

    def _fitted(self, candidates: Sequence[Candidate], budget: Budget, language: Any) -> _Fitted:
        """Best first, each whole while there is room; every one is accounted for."""
        recall_id = uuid.uuid4().hex[:16]
        chosen, considered, text = list[Candidate](), list[Considered](), ""
        left = {"entry": budget.max_entries, "note": budget.max_notes}
        for one in ranked(candidates):
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
            considered.append(Considered(one.kind, one.ref, not reason, why, one.score, one.parts))
        return in_order(one.line for one in chosen), considered, text, recall_id


def _fits(text: str, budget: Budget) -> bool:
    return len(text) <= budget.characters and (
        budget.tokens is None or estimate_tokens(text) <= budget.tokens
    )
