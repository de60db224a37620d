"""Measure text in tokens, split it into lines, find where it may be cut, and cut snippets."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from memoriter.text.dates import find_dates
from memoriter.text.tokens import CJK, PICTURES, find_words

_WIDE = re.compile(f"[{CJK}{PICTURES}\\u3000-\\u303f\\uff00-\\uffef]+")
_BREAK = re.compile(r"\r\n|\n|\r")


def width(text: str) -> int:
    """Return the length in quarters of a token, the unit in which chunks are measured.

    A Latin letter counts 1, a letter of another script 2, and a Chinese, Japanese or Korean character or an emoji 4.
    """
    if text.isascii():
        return len(text)
    wide = len(text) - len(_WIDE.sub("", text))
    latin = len(text.encode("ascii", "ignore"))
    return latin + 4 * wide + 2 * (len(text) - wide - latin)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text for a language model.

    >>> estimate_tokens("a backup of the database"), estimate_tokens("数据库备份")
    (6, 5)
    """
    return (width(text) + 3) // 4


def split_lines(text: str) -> list[str]:
    r"""Split a text into lines as editors count them: at \n, \r\n and \r only.

    ``str.splitlines`` also splits at form feeds and other separators that editors show inside a line.

    >>> split_lines("one\r\ntwo\rthree\x0cstill three\n")
    ['one', 'two', 'three\x0cstill three']
    """
    lines = _BREAK.split(text) if "\r" in text else text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def is_boundary(text: str, at: int) -> bool:
    """Return whether the text can be cut here without dividing a word. Chinese can be cut between characters."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if is_joined(text, at):
        return False
    return not (before.isalnum() and after.isalnum()) or before >= "\u2e80" or after >= "\u2e80"


_TOKEN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./:%+#-]*[A-Za-z0-9%+#])?|\s+|.", re.DOTALL)


def shorten_title(text: str, limit: int) -> str:
    """Return the start of a title that is at most ``limit`` wide: whole words, and no word without its number.

    >>> shorten_title("把订单库迁移到 Kubernetes 16 集群", 40)
    '把订单库迁移到'
    """
    if width(text) <= limit:
        return text
    kept, used = list[str](), 0
    for token in _TOKEN.findall(text):
        used += width(token)
        if used > limit:
            return _without_loose_word(kept, token) or text[: limit // 4]
        kept.append(token)
    return text


def _without_loose_word(kept: list[str], following: str) -> str:
    """Join the words. If a number follows, its word is removed: "Kubernetes" is not "Kubernetes 16"."""
    if following[0].isdigit():
        while kept and kept[-1].isspace():
            kept.pop()
        if kept and kept[-1].isascii():
            kept.pop()
    return "".join(kept).rstrip(" ,.;:，、；：")


def is_joined(text: str, at: int) -> bool:
    """Return whether this character belongs to the one before: an accent, a vowel sign, a part of an emoji."""
    after = text[at]
    if after.isascii():
        return False
    return (
        unicodedata.category(after) in ("Mn", "Mc", "Me", "Cs")
        or after in "\u200c\u200d"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or text[at - 1] == "\u200d"
        or _halves_flag(text, at)
    )


def _halves_flag(text: str, at: int) -> bool:
    """Return whether a cut divides a flag, which consists of two regional indicators."""
    before = at
    while before > 0 and "\U0001f1e6" <= text[before - 1] <= "\U0001f1ff":
        before -= 1
    return "\U0001f1e6" <= text[at] <= "\U0001f1ff" and (at - before) % 2 == 1


def last_boundary(text: str, at: int, earliest: int) -> int:
    """Return the last boundary at or before ``at``: between words after ``earliest``, or else between characters."""
    if at >= len(text):
        return len(text)
    cut = at
    while cut > earliest and not is_boundary(text, cut):
        cut -= 1
    if not is_boundary(text, cut):
        cut = at
        while cut > earliest and is_joined(text, cut):
            cut -= 1
    return cut or at


# ---- snippets -------------------------------------------------------------------------------------------------

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
