"""Text that can be written as UTF-8: a Python string may hold half a character, a file may not."""

from __future__ import annotations


def encodable(text: str) -> str:
    """The text with a question mark for each lone surrogate: half an emoji, or a byte that was no UTF-8.

    >>> encodable("tea \\ud83d, at nine")
    'tea ?, at nine'
    """
    return text.encode("utf-8", "replace").decode()
