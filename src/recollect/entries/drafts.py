"""A statement that somebody wants remembered, before it is judged: checked, cleaned, not yet an entry."""

from __future__ import annotations

import math
import re
import unicodedata
import uuid
from dataclasses import dataclass, replace

from recollect.entries.kinds import clamped, expiry, type_of
from recollect.errors import WriteError
from recollect.records import Entry, EntryType, Origin
from recollect.text.redaction import redact, without_private

MAX_CHARS = 2_000  #: of one entry; a memory is a statement, not a document
MAX_TAGS = 32
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be remembered, and how it came."""

    text: str
    type: EntryType = "other"
    category: str | None = None
    importance: float = 3.0
    confidence: float = 1.0
    origin: Origin = "owner"
    session: str | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    valid_from: float | None = None
    on_purpose: bool = True  #: somebody said "remember this"; False: it was noticed in passing

    def cleaned(self) -> Draft:
        """The draft without secrets, private spans and control characters; refuses what is no statement."""
        text = _CONTROLS.sub("", redact(without_private(self.text))).strip()
        if not any(char.isalnum() for char in text):
            raise WriteError("there is nothing to remember: the text holds no word")
        if len(text) > MAX_CHARS:
            raise WriteError(f"an entry has at most {MAX_CHARS} characters, this text has {len(text)}")
        if not (math.isfinite(self.importance) and math.isfinite(self.confidence)):
            raise WriteError("importance and confidence must be numbers")
        tags = tuple(dict.fromkeys(tag for tag in map(_tag, self.tags) if tag))
        if len(tags) > MAX_TAGS:
            raise WriteError(f"an entry has at most {MAX_TAGS} tags")
        return replace(
            self,
            text=text,
            type=type_of(self.type),
            importance=clamped(self.importance),
            confidence=min(1.0, max(0.0, self.confidence)),
            tags=tags,
        )

    def entry(self, at: float) -> Entry:
        """The entry that this draft becomes."""
        return Entry(
            id=str(uuid.uuid4()),
            text=self.text,
            type=self.type,
            category=self.category,
            importance=self.importance,
            confidence=self.confidence,
            origin=self.origin,
            session=self.session,
            source=self.source,
            created_at=at,
            updated_at=at,
            valid_from=at if self.valid_from is None else self.valid_from,
            expires_at=expiry(self.type, self.importance, at),
            tags=self.tags,
        )


def _tag(text: str) -> str:
    return unicodedata.normalize("NFKC", _CONTROLS.sub("", text)).strip().casefold()[:64]
