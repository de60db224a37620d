"""Traditional and simplified Chinese brought to one form, so that 備份資料庫 and 备份资料库 meet.

By single characters and for tokens alone: 乾, 幹 and 干 become one, which no reader would accept and no search minds.
What is shown stays as it was written. Words that differ from place to place (軟體, 软件) are not brought together.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_TABLE = Path(__file__).with_name("variants.txt")


def folded(text: str) -> str:
    """The text with every character in the form under which its variants meet; as long as before.

    >>> folded("備份資料庫"), folded("备份资料库")
    ('备份资料库', '备份资料库')
    """
    forms, others = _forms()
    return text if others.isdisjoint(text) else text.translate(forms)


def simplified(text: str) -> str:
    """The text in simplified characters, if it is written in traditional ones: for a model that has read few of them.

    著 or 覆 alone, which stand in simplified text too, do not tell; and a text with kana is Japanese.

    >>> simplified("備份的覆蓋範圍"), simplified("著名的覆盖范围")
    ('备份的复盖范围', '著名的覆盖范围')
    """
    if _KANA.search(text):
        return text
    forms, others = _forms()
    found = "".join(others.intersection(text))
    in_both = found.encode("gb2312", "ignore").decode("gb2312")
    return text.translate(forms) if found != in_both else text


@cache
def _forms() -> tuple[dict[int, str], frozenset[str]]:
    """The form of each character that has another, and those characters. Read when Chinese is first met: some 2 ms."""
    lines = [line for line in _TABLE.read_text("utf-8").splitlines() if not line.startswith("#")]
    forms = {ord(other): line[0] for line in lines for other in line[1:]}
    return forms, frozenset(map(chr, forms))
