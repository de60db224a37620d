"""What is put before the agent by itself: found, sifted, fitted into the budget, rendered, and noted in the ledger.

Untrusted, expired and superseded memories never enter. It never raises: without memory the agent answers all the same.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from recollect import logs
from recollect.errors import RecollectError
from recollect.recall.brief import weighed
from recollect.recall.candidates import Candidate, entry_line, is_said, of_entry, of_note, ranked
from recollect.recall.render import Line, in_order, language_of, render
from recollect.records import Considered, Recall
from recollect.store.entry_rows import EntryFilter
from recollect.store.ledger import Ledger
from recollect.text import estimate_tokens, query_terms
from recollect.text.blocks import without_blocks

if TYPE_CHECKING:
    from recollect.entries import Keeper
    from recollect.records import Answer

log = logs.get("recall")

RECENT = 10  #: messages that say what the conversation is about
KEYWORDS = 15
QUERY_CHARS = 1_000
SPARE = 3  #: notes that are looked at for each that may enter: many say what has been said
LOOKED_THROUGH = 2_000  #: newest entries that a brief is made of
TRUSTED = EntryFilter(origins=("owner", "agent", "system"))


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be told, and how well it must fit."""

    max_entries: int = 10
    max_notes: int = 3
    threshold: float = 0.3  #: of an entry's likeness
    note_threshold: float = 0.25  #: of a note's score
    characters: int = 4_000
    tokens: int | None = None  #: None: characters alone bound it
    candidates: int = 20


@dataclass(frozen=True, slots=True)
class Recalled:
    """What the agent is told now."""

    id: str
    text: str  #: the block; empty when nothing fits
    lines: tuple[Line, ...] = ()
    degraded: str | None = None


_Fitted = tuple[list[Line], list[Considered], str, str]
NotesSearch = Callable[[str, int], "Answer"]


class Injector:
    """Recalls for one agent."""

    def __init__(
        self,
        keeper: Keeper,
        notes: NotesSearch | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.keeper = keeper
        self.notes = notes
        self.ledger = Ledger(keeper.entries.database)
        self._clock = clock

    def recall(
        self,
        query: str,
        *,
        budget: Budget | None = None,
        door: str = "recall",
        session: str | None = None,
        show_places: bool = True,
        given_up: Callable[[], bool] = lambda: False,
    ) -> Recalled:
        """The block for a query, noted in the ledger when it is not empty and somebody still waits for it."""
        budget = budget or Budget()
        try:
            return self._recall(query, budget, door, session, show_places, given_up)
        except RecollectError as error:
            log.error("nothing could be recalled: %s", error)
            return Recalled("", "", degraded=str(error))

    def _recall(
        self,
        query: str,
        budget: Budget,
        door: str,
        session: str | None,
        show_places: bool,
        given_up: Callable[[], bool],
    ) -> Recalled:
        query = without_blocks(query).strip()[:QUERY_CHARS]
        if not query:
            return Recalled("", "")
        candidates, degraded = list[Candidate](), None
        if budget.max_entries:
            found = self.keeper.search(
                query, limit=budget.candidates, threshold=budget.threshold, where=TRUSTED
            )
            candidates += [of_entry(hit, show_places) for hit in found.hits]
            degraded = found.degraded
        if self.notes and budget.max_notes:
            answer = self.notes(query, budget.max_notes * SPARE)
            candidates += [of_note(hit, show_places, budget.note_threshold) for hit in answer.hits]
            degraded = answer.degraded or degraded
        fitted = self._fitted(candidates, budget, language_of(query))
        if given_up():  # the ledger says what entered a prompt, and this will not
            return Recalled("", "", degraded=degraded)
        return replace(self._noted(fitted, query, door, session), degraded=degraded)

    def brief(
        self,
        about: str,
        *,
        sessions: Sequence[str] = (),
        budget: Budget | None = None,
        door: str = "brief",
        session: str | None = None,
        show_places: bool = True,
    ) -> Recalled:
        """What matters before anything was asked; ``about`` names the project, and ``sessions`` were in it."""
        budget = budget or Budget()
        try:
            entries = self.keeper.find(TRUSTED, limit=LOOKED_THROUGH)
            best = weighed(entries, frozenset(sessions))[: budget.candidates]
            candidates = [
                Candidate(entry_line(entry, show_places), "entry", entry.id, score, parts)
                for entry, parts, score in best
            ]
            language = language_of(" ".join(one.line.text for one in candidates))
            return self._noted(self._fitted(candidates, budget, language), about, door, session)
        except RecollectError as error:
            log.error("nothing could be recalled: %s", error)
            return Recalled("", "", degraded=str(error))

    def _noted(self, fitted: _Fitted, query: str, door: str, session: str | None) -> Recalled:
        """What is told, noted in the ledger when it is anything."""
        chosen, considered, text, recall_id = fitted
        if not chosen:
            return Recalled("", text)
        used = [one.ref for one in considered if one.entered and one.kind == "entry"]
        size = (len(text), estimate_tokens(text))
        self.ledger.write(
            Recall(recall_id, self._clock(), door, session, query, *size, tuple(considered)), used
        )
        return Recalled(recall_id, text, tuple(chosen))

    def _fitted(self, candidates: Sequence[Candidate], budget: Budget, language: Any) -> _Fitted:
        """Best first, each whole while there is room; every one is accounted for."""
        recall_id = uuid.uuid4().hex[:16]
        chosen, considered, text = list[Line](), list[Considered](), ""
        left = {"entry": budget.max_entries, "note": budget.max_notes}
        for one in ranked(candidates):
            reason = one.refused
            if not reason:
                wider = render(in_order([*chosen, one.line]), recall_id, language)
                reason = (
                    "another line says just this" if one.kind == "note" and is_said(one.line, chosen) else ""
                )
                reason = reason or ("" if left[one.kind] else "enough of its kind had entered")
                reason = reason or ("" if _fits(wider, budget) else "no room was left")
                if not reason:
                    chosen, text = [*chosen, one.line], wider
                    left[one.kind] -= 1
            said = reason or f"fits, score {one.score:.3f}"
            considered.append(Considered(one.kind, one.ref, not reason, said, one.score, one.parts))
        return in_order(chosen), considered, text, recall_id

    def inject(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        conversation_tokens: int,
        ratio: float = 0.1,
        budget: Budget | None = None,
        session: str | None = None,
        role: str = "system",
    ) -> list[dict[str, Any]]:
        """The messages with what is remembered placed first; unchanged when nothing is."""
        plain = [dict(message) for message in messages]
        allowed = replace(budget or Budget(), tokens=round(conversation_tokens * ratio))
        done = self.recall(query_of(messages), budget=allowed, door="inject", session=session)
        if not done.text:
            return plain
        metadata = {"type": "memory_injection", "memoryCount": len(done.lines), "recallId": done.id}
        return [{"role": role, "content": done.text, "metadata": metadata}, *plain]

    def why(self, recall_id: str) -> Recall:
        """What entered a prompt, what did not, and why."""
        return self.ledger.get(recall_id)


def query_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the conversation is about: its newest words from the user, and the words that keep coming back."""
    recent = [(str(m.get("role", "")), _text(m.get("content"))) for m in messages[-RECENT:]]
    newest = next((text for role, text in reversed(recent) if role == "user" and text.strip()), "")
    counted = Counter(term for _, text in recent for term in query_terms(text[:QUERY_CHARS]))
    known = set(query_terms(newest))
    again = [term for term, count in counted.most_common(KEYWORDS) if count > 1 and term not in known]
    return " ".join([newest[:QUERY_CHARS], *again]).strip()


def _text(content: object) -> str:
    if isinstance(content, str):
        return without_blocks(content)
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return without_blocks("\n".join(part for part in parts if isinstance(part, str)))
    return ""


def _fits(text: str, budget: Budget) -> bool:
    return len(text) <= budget.characters and (
        budget.tokens is None or estimate_tokens(text) <= budget.tokens
    )
