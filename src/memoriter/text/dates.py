"""Normalise dates, so that "2月8日", "8 Feb" and "2026-02-08" match.

A date becomes tokens that start with "@": one for the day of a year, the month of a year, the day of any year, the
month, and the year, as far as they are given. Words never become such tokens. Relative dates such as "last week" are
handled by ``search.when``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time

from memoriter.errors import BadArgument

_NAMES = "jan january|feb february|mar march|apr april|may|jun june|jul july|aug august|sep sept september"
_NAMES += "|oct october|nov november|dec december"
_MONTHS = {name: number for number, names in enumerate(_NAMES.split("|"), 1) for name in names.split()}

_YEAR = r"(?:19|20)\d\d"
_MONTH = rf"(?:{'|'.join(_MONTHS)})\b\.?"
# A month without a day counts only if its name is not also another word. "in May" and "since March" count too.
_ALONE = "january|february|april|june|july|august|september|october|november|december"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?![\w:])"

# A quick check of lower-case text that avoids the slower search in most texts. Each alternative starts with a letter,
# so the regex engine can skip other characters.
_QUICK_CHECK = re.compile(
    r"(?:j(?:an(?:uary)?|une?|uly?)|feb(?:ruary)?|ma(?:r(?:ch)?|y)|apr(?:il)?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
# The same for ASCII text without a digit, where only a month on its own can be a date.
_QUICK_NAMES = tuple(_ALONE.split("|"))
_QUICK_CHECK_OF_NAMES = re.compile(r"(?:in|since|until|during|early|late|mid)[\s-]+(?:may|march)")
_IN_WORDS = re.compile(
    rf"""
    (?<![\w@/.-]) (?:
      (?P<d1>{_DAY})(?:\s+of)?[\s-]+(?P<n1>{_MONTH})(?:,?[\s-]+(?P<y1>{_YEAR})(?!\w))?
    | (?P<n2>{_MONTH})[\s-]+(?P<d2>{_DAY})(?:,?[\s-]+(?P<y2>{_YEAR})(?!\w))?
    | (?P<n3>{_MONTH}),?[\s-]+(?P<y3>{_YEAR})(?!\w)
    | (?P<n4>{_ALONE})(?!\w)
    | (?:in|since|until|during|early|late|mid)[\s-]+(?P<n5>may|march)(?!\w|,?[\s-]+\d)
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Chinese numerals: years by digits (二〇二六), months and days by value (十二, 廿三, 三十一).
_FIGURES = {"〇": 0, "○": 0, "零": 0} | {
    figure: number for number, figure in enumerate("一二三四五六七八九", 1)
}
_ONE_TO_NINE = "[一二三四五六七八九]"
_ZH_YEAR = rf"{_YEAR}|(?:一九|二[〇○零])[{''.join(_FIGURES)}]{{2}}"
_ZH_MONTH = rf"\d{{1,2}}|十[一二]?|{_ONE_TO_NINE}"
_ZH_DAY = rf"\d{{1,2}}|(?:[二三]?十|廿|卅){_ONE_TO_NINE}?|{_ONE_TO_NINE}"
_QUICK_CHECK_IN_CHINESE = re.compile(rf"[\d十{''.join(_FIGURES)}]\s?[年月]")
_IN_CHINESE = re.compile(
    rf"""
    (?<![\d〇○零一二三四五六七八九十第周週期拜])(?:
      (?P<y1>{_ZH_YEAR})\s?年(?:\s?(?P<m1>{_ZH_MONTH})\s?月(?:份|\s?(?P<d1>{_ZH_DAY})\s?[日号號])?)?
    | (?P<m2>{_ZH_MONTH})\s?月(?:份|\s?(?P<d2>{_ZH_DAY})\s?[日号號])?
    )
    """,
    re.VERBOSE,
)
_IN_FIGURES = re.compile(
    r"""
    (?P<y1>[12](?<![\w@./:+-][12])[09]\d\d)
    (?: ([-/.])(?P<m1>\d{1,2})(?:\2(?P<d1>\d{1,2}))?(?!\d|[-/.]\d) | (?![\w:/+-]|\.\d) )
    """,
    re.VERBOSE,
)


def date_tokens(iso: str) -> list[str]:
    """Return the tokens of a date in the form "YYYY-MM-DD".

    >>> date_tokens("2026-02-08")
    ['@2026-02-08', '@2026-02', '@02-08', '@02', '@2026']
    """
    year, month, day = iso.split("-")
    return _tokens(int(year), int(month), int(day))


def take_dates(text: str, tokens: list[str]) -> str:
    """Remove dates from a text and add their tokens to ``tokens``.

    Numeric dates also stay in the text, because "2026-02-08.md" is also a name and 2026 also a number.
    """

    def take(match: re.Match[str]) -> str:
        stated = _date_tokens(match)
        tokens.extend(stated)
        return " " if stated else match[0]

    if text.isascii() and not has_digit(text):
        return _IN_WORDS.sub(take, text) if _names_a_month(text.lower()) else text
    for form in _forms_in(text):
        text = form.sub(take, text)
    for match in _IN_FIGURES.finditer(text):
        tokens.extend(_date_tokens(match))
    return text


def has_digit(text: str) -> bool:
    """Return whether a text contains one of the digits 0 to 9. A pattern takes ten times as long."""
    return any(map(text.__contains__, "0123456789"))


def _names_a_month(lower: str) -> bool:
    """Return whether a lower-case text without a digit may contain a month on its own."""
    return any(name in lower for name in _QUICK_NAMES) or (
        ("may" in lower or "march" in lower) and _QUICK_CHECK_OF_NAMES.search(lower) is not None
    )


def find_dates(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the start, end and tokens of each date in a text."""
    for form in (*_forms_in(text), _IN_FIGURES):
        yield from ((match.start(), match.end(), _date_tokens(match)) for match in form.finditer(text))


def _forms_in(text: str) -> Iterator[re.Pattern[str]]:
    """Yield the patterns with words that may match. They are tried before numeric dates because they are longer."""
    if _QUICK_CHECK.search(text.lower()):
        yield _IN_WORDS
    if ("月" in text or "年" in text) and _QUICK_CHECK_IN_CHINESE.search(text):
        yield _IN_CHINESE


def _date_tokens(match: re.Match[str]) -> list[str]:
    """Return the tokens of a date. Impossible dates such as 2026-13-45 or the year 1099 have none."""
    parts = {name[0]: text for name, text in match.groupdict().items() if text}
    year = read_number(parts.get("y", "0"))
    month = read_number(parts.get("m", "0")) or _MONTHS.get(parts.get("n", "").rstrip(".").lower(), 0)
    day = read_number(parts.get("d", "0").rstrip("stndrhSTNDRH"))
    impossible = (year and not 1900 <= year < 2100) or month > 12 or day > 31 or ("m" in parts and not month)
    return [] if impossible or ("d" in parts and not day) else _tokens(year, month, day)


def read_number(figures: str) -> int:
    """Parse a number in Arabic or Chinese numerals, by digits (二〇二六) or by value up to 39 (廿三)."""
    if figures.isdecimal():
        return int(figures)
    tens, ten, rest = figures.replace("廿", "二十").replace("卅", "三十").rpartition("十")
    if ten:
        return 10 * _FIGURES.get(tens, 1) + _FIGURES.get(rest, 0)
    return int("".join(str(_FIGURES[figure]) for figure in rest))


def _tokens(year: int, month: int, day: int) -> list[str]:
    """Return one token for each part that is given. 0 means not given."""
    stated = (
        (year and month and day, f"@{year:04}-{month:02}-{day:02}"),
        (year and month, f"@{year:04}-{month:02}"),
        (month and day, f"@{month:02}-{day:02}"),
        (month, f"@{month:02}"),
        (year, f"@{year:04}"),
    )
    return [token for known, token in stated if known]


def local_day(seconds: float | None = None) -> date:
    """Return the day of a time, or today, in the calendar of this machine."""
    at = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return at.astimezone().date()


def end_of_day(day: date) -> float:
    """Return the last moment of a day in the calendar of this machine, in seconds since the epoch."""
    return datetime.combine(day, time.max).astimezone().timestamp()


def read_day(text: str) -> date:
    """Return the day of a search of an earlier time, or raise `BadArgument`."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadArgument(f"`as_of` must be a day such as 2026-03-01, not {text[:40]!r}.", "as_of") from None
