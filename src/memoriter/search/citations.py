"""Citations of hits: which sessions see them, how they are written, and how hits fit into a prompt.

In a direct chat a citation helps the owner. In a group or channel it is noise, and it reveals the names of the
owner's files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from memoriter.records import Answer, CitationMode, Hit
from memoriter.sessions.scope import SessionKey
from memoriter.text.measure import is_joined, last_boundary


def shows_citations(mode: CitationMode, session: str | None = None) -> bool:
    """Return whether answers to this session have citations.

    No session key means the owner's terminal or program.
    """
    if mode != "auto":
        return mode == "on"
    return session is None or SessionKey.parse(session).chat_type not in ("group", "channel")


def source_line(hit: Hit) -> str:
    """Return the line below a snippet, ``Source: memory/2026-02-08.md#L10-L25``, or nothing without a citation."""
    return f"\n\nSource: {hit.citation}" if hit.citation else ""


def with_source(hit: Hit) -> Hit:
    """Return the hit with its citation below its snippet."""
    return replace(hit, snippet=hit.snippet.strip() + source_line(hit))


_CITATION = re.compile(r"(?P<path>.+)#L(?P<first>[1-9]\d{0,8})(?:-L?(?P<last>[1-9]\d{0,8}))?")


def parse_citation(citation: str) -> tuple[str, int, int] | None:
    """Return path, first line and number of lines of a citation, or None for any other text."""
    found = _CITATION.fullmatch(citation)
    if not found:
        return None
    first = int(found["first"])
    return found["path"], first, max(1, int(found["last"] or first) - first + 1)


ELLIPSIS = "…"
#: A hit that would be shortened to less than this is left out.
MIN_CHARS = 24


def for_prompt(answer: Answer, max_chars: int) -> Answer:
    """Return the answer with citations below its snippets, all snippets together at most ``max_chars`` long."""
    return replace(answer, hits=tuple(fit(answer.hits, max_chars)))


def fit(hits: Iterable[Hit], max_chars: int) -> Iterable[Hit]:
    """Yield the hits that fit, with their citations. The last one may be shortened."""
    left = max_chars
    for hit in hits:
        whole = with_source(hit)
        if len(whole.snippet) > left:
            short = shorten(hit.snippet.strip(), left - len(source_line(hit)))
            if short:
                yield with_source(replace(hit, snippet=short))
            return
        yield whole
        left -= len(whole.snippet)


def shorten(text: str, max_chars: int) -> str:
    """Return the start of the text with an ellipsis, or nothing if there is too little room."""
    if len(text) <= max_chars:
        return text
    if max_chars < MIN_CHARS:
        return ""
    room = max_chars - len(ELLIPSIS)
    cut = last_boundary(text, room, room // 2)
    while 0 < cut < len(text) and is_joined(text, cut):
        cut -= 1  # never inside a combined character
    return text[:cut].rstrip() + ELLIPSIS if cut else ""
