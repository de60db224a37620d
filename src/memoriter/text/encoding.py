"""Decode files, and make text safe for UTF-8 and for file names."""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import NamedTuple

from memoriter.errors import SourceError

_WORD = re.compile(r"[^\W_]+")
# Byte order marks. UTF-32 comes before UTF-16, because its little-endian mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Characters that are used to guess an encoding.
_SAMPLE_CHARS = 2000
# The most common characters of simplified and traditional Chinese. With a wrong encoding, hardly any of them appear.
_COMMON = {
    "gb18030": frozenset(
        "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年，。、：！？"
    ),
    "big5": frozenset(
        "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年，。、：！？"
    ),
}


class Decoded(NamedTuple):
    """A decoded text, and a note if the encoding was not plain UTF-8."""

    text: str
    note: str | None = None


def decode(data: bytes, *, is_cut: bool = False) -> Decoded:
    """Decode the bytes of a file. An incomplete character at the end is left out and does not change the encoding.

    ``is_cut``: these bytes are only the start of the file, so an incomplete character is not damage.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            note = None if encoding == "utf-8" else f"It was read as {encoding[:6].upper()}."
            return Decoded(_whole_characters(data[len(mark) :], encoding, "replace"), note)
    if b"\0" in data:
        raise SourceError("Not a text file: it contains NUL bytes.")
    try:
        text = _whole_characters(data, "utf-8")
        is_whole = is_cut or len(text.encode()) == len(data)
        return Decoded(text, None if is_whole else _damaged_characters(1))
    except UnicodeDecodeError:
        return _damaged_utf8(data) or _guess(data)


def _whole_characters(data: bytes, encoding: str, errors: str = "strict") -> str:
    """Decode, without an incomplete character at the end of a truncated file."""
    return codecs.getincrementaldecoder(encoding)(errors).decode(data)


def _damaged_utf8(data: bytes) -> Decoded | None:
    """Decode UTF-8 with a few invalid bytes. Return None if too many are invalid for UTF-8."""
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = len(text) - len(text.encode("ascii", "ignore")) - bad
    if bad * 10 > good:
        return None
    return Decoded(text, _damaged_characters(bad))


def _damaged_characters(number: int) -> str:
    return f"It was read as UTF-8, with {number} damaged {'character' if number == 1 else 'characters'}."


def _guess(data: bytes) -> Decoded:
    chinese = max(_COMMON, key=lambda encoding: _likeness(data, encoding))
    if _likeness(data, chinese) > 0.5:
        return Decoded(_whole_characters(data, chinese, "replace"), f"Not UTF-8. It was read as {chinese}.")
    encoding = "latin-1" if any(byte in data for byte in b"\x81\x8d\x8f\x90\x9d") else "cp1252"
    return Decoded(data.decode(encoding), f"Not UTF-8. It was read as {encoding}.")


def _likeness(data: bytes, encoding: str) -> float:
    """Rate how much the bytes look like Chinese in this encoding, by the frequency of its characters."""
    try:
        text = _whole_characters(data, encoding)
    except UnicodeDecodeError:
        return 0.0
    foreign = [character for character in text if not character.isascii()][:_SAMPLE_CHARS]
    if not foreign:
        return 0.0
    everyday = sum(_is_everyday(character, encoding) for character in foreign)
    common = sum(character in _COMMON[encoding] for character in foreign)
    return (everyday + 4 * common) / len(foreign)


def _is_everyday(character: str, encoding: str) -> bool:
    """Return whether the encoding has this character among the frequent ones and punctuation."""
    first, second = (character.encode(encoding, "replace") + b"\0")[:2]
    if encoding == "big5":
        return 0xA4 <= first <= 0xC6 or 0xA1 <= first <= 0xA3
    return second >= 0xA1 and (0xB0 <= first <= 0xD7 or 0xA1 <= first <= 0xA3)


def encodable(text: str) -> str:
    """Replace lone surrogates with question marks, so that the text can be encoded as UTF-8.

    >>> encodable("tea \\ud83d, at nine")
    'tea ?, at nine'
    """
    return text.encode("utf-8", "replace").decode()


def slug(text: str, *, limit: int = 40) -> str:
    """Return the words of a text in lower case, joined by "-", for a file name of at most ``limit`` characters.

    >>> slug("Backups: nightly, at 03:00!"), slug("数据库备份：每晚三点")
    ('backups-nightly-at-03-00', '数据库备份-每晚三点')
    """
    kept: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        room = limit - len("-".join([*kept, ""]))
        if len(word) > room and (kept or room <= 0):
            break
        cut = min(room, len(word))
        while 0 < cut < len(word) and word[cut - 1].isdigit() and word[cut].isdigit():
            cut -= 1  # never inside a number
        kept.append(word[: cut or room])
    return "-".join(kept) or "note"
