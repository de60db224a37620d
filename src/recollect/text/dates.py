"""Dates in words and figures, brought to one form, so that "2月8日", "8 Feb" and "2026-02-08" meet.

A date becomes tokens that begin with "@", one for each thing it states: a day in a year, a month in a year, a day
of any year, a month, a year. No word can become such a token, so dates and words never mix. Reckoning with time
("last week") is not done here.
"""

from __future__ import annotations

import re

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january",
            "feb february",
            "mar march",
            "apr april",
            "may",
            "jun june",
            "jul july",
            "aug august",
            "sep sept september",
            "oct october",
            "nov november",
            "dec december",
        ),
        start=1,
    )
    for name in names.split()
}

_YEAR = r"(?:19|20)\d\d"
_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
# Alone, a month counts only when its name is no other word; "in May" and "since March" are months as well.
_ALONE = "january|february|april|june|july|august|september|october|november|december"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?![\w:])"

# Each alternative begins with a figure or a month's name; the named groups say which parts a form states.
DATE = re.compile(
    rf"""
    (?<![\w@]) (?:
      (?P<iso>(?P<y1>{_YEAR})([-/.])(?P<m1>\d{{1,2}})(?:\3(?P<d1>\d{{1,2}}))?(?![\d]|[-/.]\d))
    | (?P<d3>{_DAY})(?:\s+of)?[\s-]+(?P<n3>{_MONTH})(?:,?[\s-]+(?P<y3>{_YEAR})(?!\w))?
    | (?P<n4>{_MONTH})[\s-]+(?P<d4>{_DAY})(?:,?[\s-]+(?P<y4>{_YEAR})(?!\w))?
    | (?P<n5>{_MONTH}),?[\s-]+(?P<y5>{_YEAR})(?!\w)
    | (?P<n6>{_ALONE})(?!\w)
    | (?:in|since|until|during|early|late|mid)[\s-]+(?P<n7>may|march)(?!\w|,?[\s-]+\d)
    )
    | (?<!\d)(?P<chinese>
        (?P<y2>{_YEAR})\s?年(?:\s?(?P<m2>\d{{1,2}})\s?月(?:份|\s?(?P<d2>\d{{1,2}})\s?[日号號])?)?
      | (?P<m8>\d{{1,2}})\s?月(?:份|\s?(?P<d8>\d{{1,2}})\s?[日号號])?
      )
    | (?<![\w@.:/+-])(?P<y9>{_YEAR})(?![\w:/+-]|\.\d)
    """,
    re.VERBOSE | re.IGNORECASE,
)


def date_tokens(iso: str) -> list[str]:
    """The tokens of a note's own day, "YYYY-MM-DD".

    >>> date_tokens("2026-02-08")
    ['@2026-02-08', '@2026-02', '@02-08', '@02', '@2026']
    """
    year, month, day = iso.split("-")
    return _tokens(int(year), int(month), int(day))


def tokens_of(match: re.Match[str]) -> list[str]:
    """What a match of ``DATE`` states; nothing when it is no day of a calendar, such as 2026-13-45."""
    stated = {name: text for name, text in match.groupdict().items() if text}
    year = next((int(text) for name, text in stated.items() if name[0] == "y"), None)
    day = next((int(re.sub(r"\D", "", text)) for name, text in stated.items() if name[0] == "d"), None)
    month = next((int(text) for name, text in stated.items() if name[0] == "m"), None)
    for name, text in stated.items():
        if name[0] == "n":
            month = _MONTHS[text.lower().rstrip(".")]
    if not 1 <= (month or 1) <= 12 or not 1 <= (day or 1) <= 31:
        return []
    return _tokens(year, month, day)


def _tokens(year: int | None, month: int | None, day: int | None) -> list[str]:
    tokens = []
    if year and month and day:
        tokens.append(f"@{year:04}-{month:02}-{day:02}")
    if year and month:
        tokens.append(f"@{year:04}-{month:02}")
    if month and day:
        tokens.append(f"@{month:02}-{day:02}")
    if month:
        tokens.append(f"@{month:02}")
    if year:
        tokens.append(f"@{year:04}")
    return tokens
