"""Where a text may be cut without breaking a character or a word."""

from __future__ import annotations

import unicodedata


def is_border(text: str, at: int) -> bool:
    """Whether a cut here divides no word; between Chinese characters it may."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if is_joined(text, at):
        return False
    return not (before.isalnum() and after.isalnum()) or before >= "\u2e80" or after >= "\u2e80"


def is_joined(text: str, at: int) -> bool:
    """Whether the character here belongs to the one before: an accent, a vowel sign, a part of one emoji."""
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
    """Whether the cut divides a flag, which is two letters of their own alphabet."""
    before = at
    while before > 0 and "\U0001f1e6" <= text[before - 1] <= "\U0001f1ff":
        before -= 1
    return "\U0001f1e6" <= text[at] <= "\U0001f1ff" and (at - before) % 2 == 1


def last_border(text: str, at: int, earliest: int) -> int:
    """The last place to cut at or before ``at``: between words after ``earliest``, else between characters."""
    if at >= len(text):
        return len(text)
    cut = at
    while cut > earliest and not is_border(text, cut):
        cut -= 1
    if not is_border(text, cut):
        cut = at
        while cut > earliest and is_joined(text, cut):
            cut -= 1
    return cut or at
