"""File names made from titles."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")


def slug(text: str, *, limit: int = 40) -> str:
    """The words of a text in small letters, joined by "-"; at most ``limit`` characters, cut between words if possible.

    >>> slug("Backups: nightly, at 03:00!"), slug("数据库备份：每晚三点")
    ('backups-nightly-at-03-00', '数据库备份-每晚三点')
    """
    kept: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        room = limit - len("-".join([*kept, ""]))
        if len(word) > room and (kept or room <= 0):
            break
        kept.append(word[:room])
    return "-".join(kept) or "note"
