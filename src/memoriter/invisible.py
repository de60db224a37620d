r"""Invisible characters, drawn visibly.

Bidirectional controls reorder what a person reads: `Refunds up to \u202e0005\u202c euros` reads as 5000. Zero-width
characters and tags hide text. Text of others is therefore shown with a mark in place of each: `⟦RLO⟧0005⟦PDF⟧ euros`.
`static/invisible.js` of the page follows the same rules.
"""

from __future__ import annotations

import re

#: Abbreviations from the Unicode standard. Other characters are named by their code point.
NAMES = {
    0x00AD: "SHY", 0x034F: "CGJ", 0x061C: "ALM", 0x180E: "MVS",
    0x200B: "ZWSP", 0x200C: "ZWNJ", 0x200D: "ZWJ", 0x200E: "LRM", 0x200F: "RLM",
    0x2028: "LS", 0x2029: "PS", 0x202A: "LRE", 0x202B: "RLE", 0x202C: "PDF", 0x202D: "LRO", 0x202E: "RLO",
    0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xFEFF: "BOM",
}  # fmt: skip
#: Names in one mark. More are counted, so that a thousand characters do not fill the screen.
MAX_NAMES = 4

_LETTER = (
    "\u0590-\u08ff\u0900-\u0dff\u1000-\u109f\ufb1d-\ufefc"  # scripts that join letters with ZWJ and ZWNJ
)
_EMOJI = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_INVISIBLE = re.compile(
    "(?:"
    f"(?<![{_LETTER}])[\u200c\u200d](?![{_EMOJI}])|(?<![{_LETTER}{_EMOJI}\ufe0f])[\u200c\u200d]"  # not a join
    f"|(?<![{_EMOJI}0-9#*])[\ufe00-\ufe0f]"  # not the choice between a text and an emoji
    "|[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    ")+"
)


def reveal(text: str) -> str:
    r"""Return the text with a mark in place of invisible characters.

    >>> reveal("\u202e0005\u202c euros")
    '⟦RLO⟧0005⟦PDF⟧ euros'
    """
    return _INVISIBLE.sub(lambda match: f"⟦{_named(match[0])}⟧", text)


def invisible(text: str) -> list[str]:
    r"""Return the names of the invisible characters in a text, each once.

    >>> invisible("a\u200bb\u200b\u202e")
    ['ZWSP', 'RLO']
    """
    found = (char for run in _INVISIBLE.findall(text) for char in run)
    return list(dict.fromkeys(map(_name, found)))


def escape_json(text: str) -> str:
    """Return JSON in which invisible characters are escaped. It means the same."""
    return _INVISIBLE.sub(_escaped, text)


def _named(run: str) -> str:
    names = [_name(char) for char in run[:MAX_NAMES]]
    return " ".join(names if len(run) <= MAX_NAMES else [*names, f"+{len(run) - MAX_NAMES}"])


def _name(char: str) -> str:
    return NAMES.get(ord(char)) or f"U+{ord(char):04X}"


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
