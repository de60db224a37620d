"""Extraction: a language model finds statements worth remembering, beside those that the capture rules find.

The model sees numbers instead of ids, so an invented number has no effect. It cannot raise trust: a statement has the
trust `owner` only if whole sentences of the owner's turn say the same, as repetitions do; otherwise `agent`.
Where the rules captured the same statement, the owner's words are stored with the model's labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import BaseModel, model_validator

from memoriter import logs
from memoriter.entries.capture import LEADING, TurnLike, capture, day_of
from memoriter.entries.capture_rules import HYPOTHETICAL, QUESTION, STRONG, WEIGHTY
from memoriter.entries.collection import Entries, context_of
from memoriter.entries.drafts import Draft, clamp, type_of
from memoriter.entries.relation import relation
from memoriter.entries.statement import as_speaker, statement
from memoriter.errors import BadArgument, ChatError, WriteError
from memoriter.llm import Chat
from memoriter.llm.prompts import ask, prompt
from memoriter.records import Entry, EntryType, Remembered, Trust, Turn
from memoriter.search.when import add_dates
from memoriter.text.pasted import own_words
from memoriter.text.words import split_sentences

log = logs.get("entries")

MAX_TOKENS = 2_000
#: Maximum number of statements from one conversation.
MAX_STATEMENTS = 8
#: Number of known entries that the model is shown.
MAX_KNOWN = 12
TURN_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Gates:
    """Conditions for calling the model and for keeping its statements."""

    min_confidence: float = 0.7
    min_importance: float = 2.0
    message_interval: int = 10
    on_session_end: bool = True


class _Statement(BaseModel):
    """One statement in the model's answer."""

    content: str
    type: EntryType
    category: str
    importance: float
    confidence: float
    tags: list[str]
    turn: int
    replaces: int | None


class _Statements(BaseModel):
    """The answer that the model must return."""

    statements: list[_Statement]


class _Answer(BaseModel):
    """The answer as it is parsed. A bare list or another key is accepted; invalid statements are dropped later."""

    statements: list[Any]

    @model_validator(mode="before")
    @classmethod
    def _find_list(cls, answer: object) -> object:
        if isinstance(answer, dict):
            answer = next((value for value in answer.values() if isinstance(value, list)), [answer])
        return {"statements": answer}


class Extractor:
    """Extracts statements from conversations with a language model."""

    def __init__(self, entries: Entries, chat: Chat, gates: Gates | None = None) -> None:
        self.entries = entries
        self.chat = chat
        self.gates = gates or Gates()
        self._waiting: dict[str, list[TurnLike]] = {}

    def observe(self, turns: Sequence[TurnLike], *, session: str, wait: bool) -> list[Remembered]:
        """Ask the model about turns. With ``wait``, they are queued until there are enough of them."""
        waiting = self._waiting.setdefault(session, [])
        waiting.extend(turns)
        if wait and len(waiting) < self.gates.message_interval:
            return []
        del self._waiting[session]
        return self.extract(waiting, session=session)

    def waiting(self, session: str) -> list[TurnLike]:
        """Return the turns of a session that the model has not seen yet."""
        return list(self._waiting.get(session, ()))

    def end(self, *, session: str) -> list[Remembered]:
        """Process the waiting turns of a session that has ended, if the settings allow it."""
        waiting = self._waiting.pop(session, [])
        return self.extract(waiting, session=session) if waiting and self.gates.on_session_end else []

    def extract(self, turns: Sequence[TurnLike], *, session: str | None = None) -> list[Remembered]:
        """Remember what the rules capture from the turns, and the statements that the model finds in them."""
        readable = [turn for turn in map(_without_pasted, turns) if turn and turn.trust != "untrusted"]
        if not readable:
            return []
        known = self._find_known(readable)
        try:
            found = self._ask(readable, known)
        except (ChatError, ValueError, TypeError) as error:
            log.warning("the model failed, the capture rules are used instead: %s", error)
            return self.entries.capture(readable, session=session)
        captured = list(self._capture(readable, session))
        done, sentences = [], tuple(captured)
        for one in found[:MAX_STATEMENTS]:
            draft = self._draft(one, readable, session)
            if draft is None:
                continue
            said = next((own for own in sentences if _covers(own.text, draft)), None)
            if said is not None:
                if said not in captured or not _says(said.text, draft.text):
                    continue  # the sentence, which is stored anyway, has every word of it
                captured.remove(said)
                draft = replace(draft, text=said.text, trust=said.trust, requested=said.requested)
            replaced = _numbered(one.get("replaces"), known)
            done.append(self.entries.add_draft(draft, actor="extract", replaces=replaced and replaced.id))
        return [*done, *(self.entries.add_draft(draft, actor="capture") for draft in captured)]

    def _capture(self, readable: Sequence[TurnLike], session: str | None) -> Iterator[Draft]:
        context = context_of(self.entries)
        return capture(readable, session=session, limits=context.options.capture, now=context.clock())

    def _find_known(self, readable: Sequence[TurnLike]) -> list[Entry]:
        query = " ".join(turn.text[:200] for turn in readable[-4:])
        return [hit.entry for hit in self.entries.search(query, limit=MAX_KNOWN, threshold=0.0).hits]

    def _ask(self, readable: Sequence[TurnLike], known: Sequence[Entry]) -> list[Mapping[str, Any]]:
        asked = prompt(
            "extract",
            known="\n".join(f"[{number}] {_escape_tags(one.text)}" for number, one in enumerate(known, 1))
            or "nothing",
            conversation="\n\n".join(
                f"[{number}] {turn.role}: {_escape_tags(turn.text[:TURN_CHARS])}"
                for number, turn in enumerate(readable, 1)
            ),
        )
        schema = _Statements.model_json_schema()
        answer = ask(self.chat, asked, _Answer, schema=schema, max_tokens=MAX_TOKENS)
        return [one for one in answer.statements if isinstance(one, dict)]

    def _draft(
        self, one: Mapping[str, Any], readable: Sequence[TurnLike], session: str | None
    ) -> Draft | None:
        """Return a draft of one statement; None if it is invalid or does not pass the gates."""
        text = one.get("content") or one.get("text")
        if not isinstance(text, str):
            return None
        source: TurnLike | None = _numbered(one.get("turn"), readable)
        confidence, importance = _number(one.get("confidence"), 0.8), _number(one.get("importance"), 3.0)
        if confidence < self.gates.min_confidence or importance < self.gates.min_importance:
            return None
        try:
            return Draft(
                add_dates(text, day_of(source or readable[-1])),
                _type(one.get("type")),
                category=_label(one.get("category")),
                importance=_raise_importance(importance, text.lower()),
                confidence=min(1.0, confidence),
                trust=_trust(text, source),
                session=session,
                source="extract",
                said_at=getattr(source, "time", None),
                tags=tuple(tag for tag in map(_label, one.get("tags") or ()) if tag),
                on_purpose=False,
            ).clean()
        except (BadArgument, WriteError):
            return None


def _without_pasted(turn: TurnLike) -> Turn | None:
    """Return what the speaker said, without text that a user pasted; None if nothing is left."""
    if turn.role not in ("user", "assistant"):
        return None
    text = own_words(turn.text) if turn.role == "user" else turn.text
    role, trust = cast("Any", turn.role), cast("Trust", turn.trust)
    return Turn(role, text, 0, getattr(turn, "time", None), trust) if text.strip() else None


def _numbered(number: Any, shown: Sequence[Any]) -> Any:
    """Return the turn or entry with a number that the model was shown; None for an invented number."""
    is_known = isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= len(shown)
    return shown[number - 1] if is_known else None


def _trust(text: str, source: TurnLike | None) -> Trust:
    """Return `owner` if the turn is the owner's and says the same; else `agent`."""
    owned = source is not None and source.role == "user" and source.trust == "owner"
    return "owner" if owned and source is not None and _is_said(text, source.text) else "agent"


#: Letters at the start that related words share, as "allergic" and "allergy".
_STEM = 5


def _is_said(text: str, turn: str) -> bool:
    """Return whether whole sentences of a turn, one after the other, say the same as a statement.

    A part of a sentence is not enough: any other part may deny it, or say whose words it is ("…, claims Bob").
    """
    wanted, sentences = split_sentences(as_speaker(text)), split_sentences(turn)
    starts = range(1 + len(sentences) - len(wanted)) if wanted else ()
    return any(all(map(_is_same, sentences[at:], wanted)) for at in starts)


def _is_same(said: str, text: str) -> bool:
    lowered = said.lower().strip()
    doubtful = lowered.endswith(LEADING) or QUESTION.search(lowered) or HYPOTHETICAL.search(lowered)
    return not doubtful and relation(said, text, None).kind == "same"


def _says(said: str, text: str) -> bool:
    """Return whether what was said is the same as a text, in the first or the third person, or contains it."""
    return relation(said, as_speaker(text), None).kind in ("same", "part")


def _covers(sentence: str, draft: Draft) -> bool:
    """Return whether a sentence of the owner has each content word of a draft and its denials."""
    said, stated = statement(sentence), statement(as_speaker(draft.text))
    known = said.words | {word[:_STEM] for word in said.words}
    new = {word for word in stated.words - {"user"} if word not in known and word[:_STEM] not in known}
    return not new and stated.denials <= said.denials


def _escape_tags(text: str) -> str:
    """Return a text that cannot close the tags around it."""
    return text.replace("<", "‹").replace(">", "›")


def _label(value: Any) -> str | None:
    """Return a category or tag of the model: one word. The placeholders of the prompt are none."""
    return value if isinstance(value, str) and re.fullmatch(r"\s*[^\W_][\w.+#-]{0,60}\s*", value) else None


def _type(name: Any) -> Any:
    try:
        return type_of(str(name))
    except BadArgument:
        return "other"


def _number(value: Any, otherwise: float) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return otherwise
    return found if found == found and abs(found) < 1e6 else otherwise  # noqa: PLR0124 - NaN


def _raise_importance(importance: float, lowered: str) -> float:
    """Add 0.5 for a strong wish and 0.3 for an important word."""
    return min(
        5.0, clamp(importance) + 0.5 * bool(STRONG.search(lowered)) + 0.3 * bool(WEIGHTY.search(lowered))
    )
