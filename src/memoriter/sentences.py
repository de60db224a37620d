"""Sentences with a code: notes, reasons and errors that the web page shows in the reader's language.

`sentence` makes one. It is an ordinary string, in English, that also carries its code and its arguments. Tools return
both, so a client can translate by code instead of reading English. `pack` and `unpack` store a sentence in a database
without losing the code. `sentences.txt` has all texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoriter.errors import message_of


def _read_table() -> dict[str, str]:
    lines = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()
    pairs = (line.partition(": ") for line in lines if line and not line.startswith("#"))
    return {code: text for code, _, text in pairs}


SENTENCES: Mapping[str, str] = _read_table()
"""The English text of every code."""


class Sentence(str):
    """A string with the code and the arguments it was made from."""

    code: str
    details: Mapping[str, Any]

    def __new__(cls, text: str, code: str = "", details: Mapping[str, Any] | None = None) -> Sentence:
        """Make a sentence; use `sentence` unless the text is not in the table."""
        made = super().__new__(cls, text)
        made.code = code
        made.details = details or {}
        return made


def sentence(code: str, **details: object) -> Sentence:
    """Return the sentence with this code. An argument may itself be a sentence, or an error.

    If ``n`` is 1, the sentence is in the singular, where the table has one:

    >>> sentence("check.entries", n=1), sentence("check.entries", n=2)
    ('1 entry', '2 entries')
    """
    plain = {name: _plain(value) for name, value in details.items()}
    shown = {name: value["text"] if isinstance(value, dict) else value for name, value in plain.items()}
    text = SENTENCES.get(f"{code}.one", SENTENCES[code]) if details.get("n") == 1 else SENTENCES[code]
    return Sentence(text.format(**shown), code, plain)


def _plain(value: object) -> Any:
    """Return an argument as JSON data."""
    if isinstance(value, Sentence):
        return {"text": str(value), "code": value.code, "details": dict(value.details)}
    if isinstance(value, Exception):
        return _plain(message_of(value))
    return value if isinstance(value, int | float | dict) else str(value)


def join(*parts: str | None) -> str | None:
    """Join sentences into one string that still knows the code of each; None if there are none."""
    texts = [part for part in parts if part]
    if len(texts) < 2:
        return texts[0] if texts else None
    return Sentence(" ".join(texts), "all", {"parts": [_plain(part) for part in texts]})


def pack(text: str) -> str:
    """Return a sentence as one string for a database column."""
    if not isinstance(text, Sentence) or text.code not in SENTENCES:
        return str(text)
    return json.dumps({"code": text.code, "details": dict(text.details)}, ensure_ascii=False)


def unpack(text: str) -> str:
    """Return the sentence that `pack` made a string of; other text is returned as it is."""
    if not text.startswith('{"code": '):
        return text
    stored = json.loads(text)
    return sentence(stored["code"], **stored["details"])


def codes(data: object) -> dict[str, dict[str, Any]]:
    """Return the code and the arguments of every sentence in a result, by its text."""
    return {
        str(found): {"code": found.code, "details": dict(found.details)}
        for found in _sentences(data)
        if found.code
    }


def _sentences(data: object) -> Iterator[Sentence]:
    if isinstance(data, Sentence):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _sentences(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _sentences(value)
