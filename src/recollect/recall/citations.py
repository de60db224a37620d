"""Who is shown the places of the hits, and how they are written.

In a direct chat a place helps the one who asks; in a group or channel it is noise, and it tells bystanders how the
owner's notes are laid out.
"""

from __future__ import annotations

import re
from dataclasses import replace

from recollect.recall.session_keys import SessionKey
from recollect.records import CitationMode, Hit


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
