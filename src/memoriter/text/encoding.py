"""Text as bytes and as file names."""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import NamedTuple

from memoriter.errors import SourceError

_WORD = re.compile(r"[^\W_]+")
_MARKS = (  # the longer first: UTF-32's little-endian mark begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 2000  #: characters that decide a guess
# The commonest characters of simplified and of traditional writing: a wrong guess hits hardly any of them.
_COMMON = {
    "gb18030": frozenset(
        "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年，。、：！？"
    ),
    "big5": frozenset(
        "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年，。、：！？"
    ),
}


class Decoded(NamedTuple):
    text: str
    note: str | None = None


def decode(data: bytes) -> Decoded:
    """The text of a file; a few bytes cut off at its end are no reason to doubt the encoding."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            note = None if encoding == "utf-8" else f"read as {encoding[:6].upper()}"
            return Decoded(_whole_characters(data[len(mark) :], encoding, "replace"), note)
    if b"\0" in data:
        raise SourceError("It is not text: it contains NUL bytes.")
    try:
        return Decoded(_whole_characters(data, "utf-8"))
    except UnicodeDecodeError:
        return _damaged_utf8(data) or _guessed(data)


def _whole_characters(data: bytes, encoding: str, errors: str = "strict") -> str:
    """The text without an unfinished character at the end, where a long file was cut."""
    return codecs.getincrementaldecoder(encoding)(errors).decode(data)


def _damaged_utf8(data: bytes) -> Decoded | None:
    """UTF-8 with a few bad bytes; ``None`` when most of what is not ASCII is bad, for it is something else then."""
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = len(text) - len(text.encode("ascii", "ignore")) - bad
    if bad * 10 > good:
        return None
    return Decoded(
        text, f"read as UTF-8, though {bad} of its characters {'is' if bad == 1 else 'are'} damaged"
    )


def _guessed(data: bytes) -> Decoded:
    chinese = max(_COMMON, key=lambda encoding: _likeness(data, encoding))
    if _likeness(data, chinese) > 0.5:
        return Decoded(_whole_characters(data, chinese, "replace"), f"not UTF-8; read as {chinese}")
    encoding = "latin-1" if any(byte in data for byte in b"\x81\x8d\x8f\x90\x9d") else "cp1252"
    return Decoded(data.decode(encoding), f"not UTF-8; read as {encoding}")


def _likeness(data: bytes, encoding: str) -> float:
    """How much the bytes look like Chinese in this encoding: its everyday characters, and above all the commonest."""
    try:
        text = _whole_characters(data, encoding)
    except UnicodeDecodeError:
        return 0.0
    foreign = [character for character in text if not character.isascii()][:_SAMPLE]
    if not foreign:
        return 0.0
    everyday = sum(_is_everyday(character, encoding) for character in foreign)
    common = sum(character in _COMMON[encoding] for character in foreign)
    return (everyday + 4 * common) / len(foreign)


def _is_everyday(character: str, encoding: str) -> bool:
    """Whether it lies in the part of the code for frequent characters and punctuation."""
    first, second = (character.encode(encoding, "replace") + b"\0")[:2]
    if encoding == "big5":
        return 0xA4 <= first <= 0xC6 or 0xA1 <= first <= 0xA3
    return second >= 0xA1 and (0xB0 <= first <= 0xD7 or 0xA1 <= first <= 0xA3)


def encodable(text: str) -> str:
    """The text with a question mark for each lone surrogate: half an emoji, or a byte that was no UTF-8.

    >>> encodable("tea \\ud83d, at nine")
    'tea ?, at nine'
    """
    return text.encode("utf-8", "replace").decode()


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
