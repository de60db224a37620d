"""Drafts: statements that are checked and cleaned but not yet compared with known entries."""

from __future__ import annotations

import math
import re
import unicodedata
import uuid
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, get_args

from memoriter.errors import BadArgument, WriteError
from memoriter.records import Entry, EntryType, Trust
from memoriter.sentences import sentence
from memoriter.text.markdown import tag_list
from memoriter.text.redaction import clean_name, redact, without_private

DAY = 86_400.0

TYPES: tuple[EntryType, ...] = get_args(EntryType)
Category = Literal["preference", "decision", "entity", "fact", "other"]

LIFETIME_DAYS: dict[EntryType, int] = {
    "user_preference": 3650,
    "project_context": 365,
    "technical_decision": 365,
    "workflow": 90,
    "fact": 365,
    "skill": 1825,
    "relationship": 730,
}
#: Days by rounded importance, for entries whose type has no days of its own. Importance 5 never expires.
IMPORTANCE_DAYS = {1: 30, 2: 90, 3: 180, 4: 365}

_TYPE_OF: dict[str, EntryType] = {
    "preference": "user_preference",
    "decision": "technical_decision",
    "entity": "relationship",
    "fact": "fact",
    "other": "other",
}


def type_of(name: str) -> EntryType:
    """Return the entry type for the name of a type or a category.

    >>> type_of("decision"), type_of("workflow")
    ('technical_decision', 'workflow')
    """
    if name in TYPES:
        return name
    if name in _TYPE_OF:
        return _TYPE_OF[name]
    raise BadArgument(f"There is no type {name!r}. The types are: {', '.join(TYPES)}.", "type")


def expiry(type_: EntryType, importance: float, at: float) -> float | None:
    """Return when a statement that was not made by hand expires; None for importance 5, which never expires."""
    if importance >= 5:
        return None
    days = LIFETIME_DAYS.get(type_) or IMPORTANCE_DAYS[max(1, min(4, round(importance)))]
    return at + days * DAY


def later(*times: float | None) -> float | None:
    """Return the latest of some expiry times; None means never.

    >>> later(2.0, 1.0), later(2.0, None)
    (2.0, None)
    """
    return None if None in times else max(time for time in times if time is not None)


def clamp(importance: float) -> float:
    """Limit an importance to 1–5."""
    return min(5.0, max(1.0, float(importance)))


#: Maximum length of an entry: a statement, not a document.
MAX_CHARS = 2_000
MAX_TAGS = 32
#: Bidirectional marks stay: every interface draws them visibly, and a recall escapes them.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement to remember, and where it comes from."""

    text: str
    type: EntryType = "other"
    category: str | None = None
    importance: float = 3.0
    confidence: float = 1.0
    trust: Trust = "owner"
    session: str | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    #: When it was said, and became true. None: now.
    said_at: float | None = None
    #: Whether a caller asked to remember it. False: it was captured automatically.
    on_purpose: bool = True
    #: When it expires, if the speaker wants it to. None: as `expiry_at` decides.
    expires_at: float | None = None
    #: Whether the speaker asked for it in a conversation ("remember that …").
    requested: bool = False
    #: The folder of the workspace in which it is learned.
    workspace: str | None = None
    #: Why it is staged, if it was captured, whatever the settings say.
    held: str = ""

    def clean(self) -> Draft:
        """Return the draft without secrets, private spans and control characters, or raise if it is not a statement."""
        if len(self.text) > MAX_CHARS:  # before any work, so that a long text costs nothing
            raise WriteError(sentence("entry.too_long", limit=MAX_CHARS, length=len(self.text)))
        text = _CONTROLS.sub("", redact(without_private(self.text))).strip()
        if not any(char.isalnum() for char in text):
            raise WriteError(sentence("entry.empty"))
        if len(text) > MAX_CHARS:
            raise WriteError(sentence("entry.too_long", limit=MAX_CHARS, length=len(text)))
        _check_range("importance", self.importance, 1, 5)
        _check_range("confidence", self.confidence, 0, 1)
        if self.expires_at is not None and not math.isfinite(self.expires_at):
            raise WriteError("expires_at must be a number of seconds since the epoch")
        if len(tags := dict.fromkeys(tag_list(self.tags))) > MAX_TAGS:  # before they are cleaned, as the text
            raise WriteError(sentence("entry.too_many_tags", limit=MAX_TAGS))
        return replace(
            self,
            text=text,
            type=type_of(self.type),
            category=_tag(self.category) or None if self.category else None,
            importance=float(self.importance),
            confidence=float(self.confidence),
            tags=tuple(dict.fromkeys(tag for tag in map(_tag, tags) if tag)),
            session=_name(self.session),
            source=_name(self.source),
        )

    def loses_text(self, clean: Draft) -> bool:
        """Return whether secrets or private parts of the text are missing from the clean draft."""
        return clean.text != _CONTROLS.sub("", self.text).strip()

    def expiry_at(self, at: float) -> float | None:
        """Return when it expires. What the owner adds by hand, or asks to remember, never does (None)."""
        if self.expires_at is not None:
            return self.expires_at
        if self.trust == "owner" and (self.on_purpose or self.requested):
            return None
        return expiry(self.type, self.importance, at)

    def entry(self, at: float) -> Entry:
        """Return the entry that this draft becomes."""
        said_at = at if self.said_at is None else min(at, self.said_at)
        return Entry(
            id=str(uuid.uuid4()),
            text=self.text,
            type=self.type,
            category=self.category,
            importance=self.importance,
            confidence=self.confidence,
            trust=self.trust,
            session=self.session,
            workspace=self.workspace,
            source=self.source,
            created_at=said_at,
            updated_at=at,
            valid_from=said_at,
            expires_at=self.expiry_at(at),
            tags=self.tags,
        )


class DraftFields(TypedDict, total=False):
    """Optional arguments of `Entries.add`, each a field of the draft."""

    category: str | None
    importance: float
    confidence: float
    trust: Trust
    session: str | None
    source: str | None
    tags: tuple[str, ...]
    expires_at: float | None


#: The fields of an entry that are those of the statement that it was.
_STATED = ("text", "type", "category", "importance", "confidence", "session", "source", "tags")


def draft_from(entry: Entry, **fields: Any) -> Draft:
    """Return the statement that an entry was, with other values of some fields."""
    return Draft(**{name: getattr(entry, name) for name in _STATED} | fields)


def clean_entry(entry: Entry) -> Entry:
    """Return an entry whose words are cleaned like those of a draft, or raise if it is not a statement."""
    draft = draft_from(entry, type=type_of(entry.type)).clean()
    return replace(entry, **{name: getattr(draft, name) for name in _STATED})


def _check_range(name: str, value: float, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadArgument(f"`{name}` must be from {least} to {most}, not {value}.", name)


def _name(text: str | None) -> str | None:
    return clean_name(_CONTROLS.sub("", text))[:500] if text else text


def _tag(text: str) -> str:
    plain = unicodedata.normalize("NFKC", _CONTROLS.sub("", redact(without_private(text[:MAX_CHARS]))))
    return plain.strip().casefold()[:64]
