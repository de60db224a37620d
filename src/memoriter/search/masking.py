"""Secrets in notes, as agents see them: replaced by their kind.

A person may keep a password in a note and sees it on the page and on the command line. An agent sends what it reads to
a model, so it never sees it. Transcripts and entries need no masking: they are redacted before they are stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from memoriter.errors import MemoriterError
from memoriter.records import Answer, Hit
from memoriter.text.redaction import redact, redact_part

ReadWhole = Callable[[str], str]
"""Returns the whole text of a note by its path."""

#: A line of a key contains one. Without one, the whole note is not needed to recognise it.
_LONG_WORD = re.compile(r"[A-Za-z0-9+/=_-]{20}")


def mask_answer(answer: Answer, read_whole: ReadWhole) -> Answer:
    """Return the answer with the secrets in its notes replaced."""
    return replace(answer, hits=tuple(_mask_hit(hit, read_whole) for hit in answer.hits))


def _mask_hit(hit: Hit, read_whole: ReadWhole) -> Hit:
    if hit.source != "memory":
        return hit
    heading = hit.heading and mask(hit.heading, hit.path, read_whole)
    return replace(hit, snippet=mask(hit.snippet, hit.path, read_whole), heading=heading)


def mask(part: str, path: str, read_whole: ReadWhole) -> str:
    """Replace the secrets in a part of a note. A key of many lines is recognised in the whole note."""
    if _LONG_WORD.search(part):
        with suppress(MemoriterError):  # the note was removed since it was indexed
            return redact_part(part, read_whole(path))
    return redact(part)
