"""Who is shown the places of the hits, and how they are written.

In a direct chat a place helps the one who asks; in a group or channel it is noise, and it tells bystanders how the
owner's notes are laid out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from memoriter.records import Answer, CitationMode, Hit
from memoriter.sessions.scope import SessionKey
from memoriter.text.measure import is_joined, last_boundary


def shows_citations(mode: CitationMode, session_key: str | None = None) -> bool:
    """Whether answers to this session carry citations. No session key means the owner's own terminal or program."""
    if mode != "auto":
        return mode == "on"
    return session_key is None or SessionKey.parse(session_key).chat_type not in ("group", "channel")


def source_line(hit: Hit) -> str:
    """What stands under a snippet: ``Source: memory/2026-02-08.md#L10-L25``, or nothing where places are not shown."""
    return f"\n\nSource: {hit.citation}" if hit.citation else ""


def with_source(hit: Hit) -> Hit:
    """The hit with its place written under its snippet."""
    return replace(hit, snippet=hit.snippet.strip() + source_line(hit))


_CITATION = re.compile(r"(?P<path>.+)#L(?P<first>[1-9]\d{0,8})(?:-L?(?P<last>[1-9]\d{0,8}))?")


def cited_place(citation: str) -> tuple[str, int, int] | None:
    """Path, first line and number of lines of a citation; None for anything else."""
    found = _CITATION.fullmatch(citation)
    if not found:
        return None
    first = int(found["first"])
    return found["path"], first, max(1, int(found["last"] or first) - first + 1)


ELLIPSIS = "…"
#: A hit shortened to less than this says nothing; it is left out.
LEAST_CHARS = 24


def for_prompt(answer: Answer, max_chars: int) -> Answer:
    """The answer with places under its snippets, all snippets together at most ``max_chars`` long."""
    return replace(answer, hits=tuple(fitted(answer.hits, max_chars)))


def fitted(hits: Iterable[Hit], max_chars: int) -> Iterable[Hit]:
    """The hits that fit, with their places; the last one perhaps shortened."""
    left = max_chars
    for hit in hits:
        whole = with_source(hit)
        if len(whole.snippet) > left:
            short = shortened(hit.snippet.strip(), left - len(source_line(hit)))
            if short:
                yield with_source(replace(hit, snippet=short))
            return
        yield whole
        left -= len(whole.snippet)


def shortened(text: str, max_chars: int) -> str:
    """The beginning of the text, marked as cut; nothing when so little room is not worth it."""
    if len(text) <= max_chars:
        return text
    if max_chars < LEAST_CHARS:
        return ""
    room = max_chars - len(ELLIPSIS)
    cut = last_boundary(text, room, room // 2)
    while 0 < cut < len(text) and is_joined(text, cut):
        cut -= 1  # a character may be longer than half the room
    return text[:cut].rstrip() + ELLIPSIS if cut else ""
