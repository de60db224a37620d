"""Fitting hits into the room that the prompt has for them.

Best first, each whole while there is room; the first that does not fit is shortened, and the rest is left out. A cut
falls between words, never inside a character, and a place is shown whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from recollect.recall.citations import source_line, with_source
from recollect.records import Answer, Hit
from recollect.text.borders import is_joined, last_border

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
    cut = last_border(text, room, room // 2)
    while 0 < cut < len(text) and is_joined(text, cut):
        cut -= 1  # a character may be longer than half the room
    return text[:cut].rstrip() + ELLIPSIS if cut else ""
