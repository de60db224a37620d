"""Who is shown the places of the hits.

In a direct chat a place helps the one who asks; in a group or channel it is noise, and it tells bystanders how the
owner's notes are laid out. Session keys name the kind of chat, as in ``agent:main:telegram:group:42``.
"""

from __future__ import annotations

from recollect.records import CitationMode

_SHARED = {"group", "channel"}


def shows_citations(mode: CitationMode, session_key: str | None = None) -> bool:
    """Whether answers to this session carry citations. No session key means the owner's own terminal or program."""
    if mode != "auto":
        return mode == "on"
    return session_key is None or _SHARED.isdisjoint(session_key.lower().split(":"))
