"""What a line is: the one count of lines behind every citation."""

from __future__ import annotations

import re

_BREAK = re.compile(r"\r\n|\n|\r")


def split_lines(text: str) -> list[str]:
    r"""The lines as an editor counts them, without their ends: broken at \n, \r\n and \r, and nowhere else.

    ``str.splitlines`` also breaks at form feeds and other separators that editors show inside a line.

    >>> split_lines("one\r\ntwo\rthree\x0cstill three\n")
    ['one', 'two', 'three\x0cstill three']
    """
    lines = _BREAK.split(text) if "\r" in text else text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines
