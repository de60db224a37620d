"""Cut a snippet from a chunk that shows why it was found: a window around the densest matches.

Terms come from ``query_terms`` and are located in the text as it is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from memoriter.text.dates import find_dates
from memoriter.text.measure import is_boundary, last_boundary
from memoriter.text.tokens import find_words

_SENTENCE_END = re.compile(r"\n+|[。！？；]+[”’」』）]*|[.!?]+[\"')]*(?=\s)")
_ELLIPSIS = "…"


class _Match(NamedTuple):
    start: int
    end: int
    term: str


def snippet(text: str, terms: Collection[str], max_chars: int) -> str:
    """Return at most ``max_chars`` around the terms, with "…" at the cuts. Without a match, return the start."""
    text = text.strip()
    if len(text) <= max_chars:
        return text
    room = max_chars - 2 * len(_ELLIPSIS)
    if room < 1:
        return _ELLIPSIS[: max(0, max_chars)]
    start, end = _window(text, sorted(_matches(text, frozenset(terms))), room)
    head = _ELLIPSIS if start else ""
    tail = _ELLIPSIS if end < len(text) else ""
    return f"{head}{text[start:end].strip()}{tail}"


def _matches(text: str, terms: frozenset[str]) -> Iterator[_Match]:
    for start, end, tokens in find_words(text):
        yield from (_Match(start, end, token) for token in tokens if token in terms)
    if any(term[0] == "@" for term in terms):
        for start, end, stated in find_dates(text):
            yield from (_Match(start, end, token) for token in stated if token in terms)


def _window(text: str, matches: list[_Match], room: int) -> tuple[int, int]:
    """Choose a window with the best matches in its first third, so that the text after them is visible."""
    first, last = _densest(matches, room)
    start = min(first - max(0, room - (last - first)) // 3, len(text) - room)
    start = _begin(text, start, max(first, 0)) if start > 0 else 0
    return start, last_boundary(text, start + room, max(last, start + room // 2))


def _densest(matches: list[_Match], room: int) -> tuple[int, int]:
    """Return the span within ``room`` with the most different terms, and then the most matches."""
    best, span = (0, 0), (0, 0)
    seen: Counter[str] = Counter()
    left = 0
    for right, match in enumerate(matches):
        seen[match.term] += 1
        while left < right and match.end - matches[left].start > room:
            seen[matches[left].term] -= 1
            left += 1
        worth = (sum(1 for count in seen.values() if count), right - left)
        if worth > best:
            best, span = worth, (matches[left].start, match.end)
    return span


def _begin(text: str, at: int, latest: int) -> int:
    """Return the start of a sentence, or else of a word, between ``at`` and ``latest``."""
    for sentence in _SENTENCE_END.finditer(text, max(0, at - 2), latest):
        if sentence.end() >= at:
            return sentence.end()
    while at < latest and not is_boundary(text, at):
        at += 1
    return at
