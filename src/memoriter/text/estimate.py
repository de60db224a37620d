"""How long a text is for a model, without asking one.

Four Latin letters make about a token, a Chinese, Japanese or Korean character or an emoji one of its own, two
letters of other scripts one. Close enough to fill a budget; not what a provider bills.
"""

from __future__ import annotations

import re

from memoriter.text.tokens import CJK, PICTURES

_WIDE = re.compile(f"[{CJK}{PICTURES}\\u3000-\\u303f\\uff00-\\uffef]+")


def width(text: str) -> int:
    """The length in Latin letters, quarters of a token: the unit in which chunks are measured."""
    if text.isascii():
        return len(text)
    wide = len(text) - len(_WIDE.sub("", text))
    latin = len(text.encode("ascii", "ignore"))
    return latin + 4 * wide + 2 * (len(text) - wide - latin)


def estimate_tokens(text: str) -> int:
    """About how many tokens a model makes of the text; never less for more text.

    >>> estimate_tokens("a backup of the database"), estimate_tokens("数据库备份")
    (6, 5)
    """
    return (width(text) + 3) // 4
