"""The days that a query or a turn means by "yesterday", "last Wednesday", 上个月 or 去年十月.

Reads expressions relative to a day, in English and Chinese. Weeks start on Monday. ``memoriter.text`` reads absolute
dates. Notes are not read this way, because "yesterday" in a note is relative to the day on which it was written.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from itertools import chain, islice

from memoriter.text.dates import find_dates, read_number
from memoriter.text.tokens import fold_variants

#: First and last day.
Span = tuple[date, date]

#: The fewest days of a month and of a year.
_MIN_MONTH_DAYS, _MIN_YEAR_DAYS = 28, 365
#: Further expressions of a query are ignored.
_MAX_EXPRESSIONS = 8
#: The index has no dates before this year.
_FIRST_YEAR = 1900

_DISTANCES = """
    -3 大前天
    -2 the_day_before_yesterday day_before_yesterday 前天 前日 前晚
    -1 yesterday last_night 昨天 昨日 昨晚 昨夜
    0 today tonight this_morning 今天 今日 今晚 今早 今晨
    1 tomorrow 明天 明日 明晚 明早
    2 the_day_after_tomorrow day_after_tomorrow 后天
    3 大后天
"""
_DAYS = {
    name.replace("_", " "): int(distance)
    for distance, *names in map(str.split, _DISTANCES.strip().splitlines())
    for name in names
}
_SHIFTS = {"last": -1, "this": 0, "next": 1, "上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
_YEARS = {"前年": -2, "去年": -1, "今年": 0, "明年": 1}
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTHS = ["january", "february", "march", "april", "may", "june"]
_MONTHS += ["july", "august", "september", "october", "november", "december"]
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_COUNTS |= {"eight": 8, "nine": 9, "ten": 10}
_LENGTHS = {"day": 1, "week": 7, "month": 31, "year": 366}
_UNITS = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year"}

# A quick check that spares most queries the patterns below, which take some milliseconds to compile.
_HINTS = (
    "ago",
    "last",
    "next",
    "past",
    "this",
    "today",
    "tonight",
    "tomorrow",
    "yesterday",
    *"天日晚夜早晨周期拜月年",
)


# Characters before which the key ends another word: 说明|日志, 当前|日期, 一下|周报, 版本|周期, 附近|一日游.
_ENDING = {
    "前": "目当以之从提此先",
    "后": "以之今然最雨",
    "今": "如",
    "明": "说发证表声透文注标阐",
    "去": "过",
    "上": "早晚以马网线路",
    "下": "一以线如地",
    "本": "日版脚成样文基资剧副课原根",
    "近": "附将接临靠",
}


@cache
def _english() -> re.Pattern[str]:
    """Compile the English pattern. The surrounding words exclude "this may fail" and "will last two days"."""
    figures = "|".join(name for name in _COUNTS if name not in ("a", "an"))
    verbs = "".join(rf"(?<!\b{verb}\s)" for verb in ("will", "would", "should", "could", "can", "must"))
    # "Twenty-two", "twenty two", "2.5", "1,000" and "half a" end with another number.
    whole = r"(?<![-.,])(?<!twenty\s)(?<!thirty\s)(?<!half\s)"
    return re.compile(
        rf"""\b(?:
          (?P<day>{"|".join(re.escape(name) for name in _DAYS if name.isascii())})
        | (?!this\smay\s[a-z])(?P<shift>last|this|next)\s(?:
            (?P<unit>week|month|year)|(?P<weekend>weekend)
          | (?P<weekday>{"|".join(_WEEKDAYS)})|(?P<month>{"|".join(_MONTHS)})
          )
        | {whole}(?P<ago>\d{{1,3}}|an?|{figures})\s(?P<of>day|week|month|year)s?\sago
        | {verbs}(?:last|past)\s(?P<past>\d{{1,3}}|{figures})\s(?P<length>day|week|month|year)s?
        )\b""",
        re.VERBOSE,
    )


@cache
def _chinese() -> re.Pattern[str]:
    """Compile the Chinese pattern. The surrounding characters exclude 以后天天, 日本周边 and 2024年前."""
    # By value: 两三天 is two or three days, not 23.
    figure = r"\d{1,3}|[二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九两]"
    unit = "|".join(_UNITS)
    word = {first: f"(?<![{others}]){first}" for first, others in _ENDING.items()}
    return re.compile(
        rf"""
          (?P<day>大?{word["前"]}天|大?{word["后"]}天(?!性)|{word["前"]}[日晚]|昨[天日晚夜]
            |{word["今"]}[天日晚早晨]|{word["明"]}[天日晚早])
        | (?P<shift>(?<!加){word["上"]}上|{word["上"]}|这|{word["本"]}|{word["下"]}下?)一?个?(?:
            (?P<unit>周|星期|礼拜)(?![围边]|期(?![末中间]))(?:
              (?P<weekday>[二三四五六]|一(?![起直些共般定])|日(?![志报期程常])|天(?!气))(?![次个天])|(?P<weekend>末)
            )?
          | (?P<moon>月)(?![亮光球饼])(?:份?的?(?P<on>{figure})[日号])?
          )
        | (?P<year>(?:{word["前"]}|{word["去"]}|{word["今"]}|{word["明"]})年)
          (?:的?(?P<month>{figure})月(?:份?的?(?P<date>{figure})[日号])?)?
        | (?<![\d.,月第百千万一二三四五六七八九十两])(?P<ago>{figure})(?!月)个?(?P<of>{unit})[之以]?前
        | (?:最近|过去|{word["近"]})(?P<past>{figure})个?(?P<length>{unit})
        """,
        re.VERBOSE,
    )


def named_days(text: str, today: date) -> list[Span]:
    """Return the days that a query names relative to today.

    >>> named_days("what did Mia say yesterday?", date(2026, 3, 5))
    [(datetime.date(2026, 3, 4), datetime.date(2026, 3, 4))]
    """
    text = " ".join(text.lower().split())
    if not any(hint in text for hint in _HINTS):
        return []
    found = _english().finditer(text)
    if not text.isascii():
        found = chain(found, _chinese().finditer(fold_variants(text)))
    spans = []
    for match in islice(found, _MAX_EXPRESSIONS):
        groups = {name: part for name, part in match.groupdict().items() if part}
        try:
            spans.append(_span(groups, today))
        except (OverflowError, ValueError):  # 去年二月三十日, or a day before the year 1
            continue
    return list(dict.fromkeys(spans))


# A weekday alone is a date only if something happens on it once: "the demo is on Saturday", not "we deploy on Tuesday".
_WEEKDAY = re.compile(rf"\b(?:on|by|until|before|after|this|coming) ({'|'.join(_WEEKDAYS)})\b(?!')")
_WEEKDAY_ZH = re.compile(r"(?<![每上下这本个到至])(?:周|星期|礼拜)([一二三四五六日天])(?![次个天到至、和])")
_HABIT = re.compile(
    r"\b(?:every|each|always|usually|often|never|\w+days)\b"
    r"|^(?:we|i|they) (?!will|am|are|have|need|must|want|met|saw|went|had|was|were|\w+ed\b)"
    r"|每|总是|通常|一般|都|从不|永远|^(?!.*(?:要|会|将|去|来|准备|打算|约|前|交|了|得|需))(?=.*[\u3400-\u9fff])"
)
_PAST = re.compile(r"\b(?:was|were|had|met|saw|went|came|got|gave|took|bought|\w+ed)\b|了|过")
_DATED = re.compile(r"\s?[（(]\d{4}")


def add_dates(text: str, day: date) -> str:
    """Return a statement with the dates of the days that it names relative to the day on which it was made.

    >>> add_dates("The demo is on Saturday", date(2026, 11, 15))
    'The demo is on Saturday (2026-11-21)'
    """
    lowered = text.lower()
    if len(lowered) != len(text):
        return text
    folded = fold_variants(lowered)
    found = dict[int, Span]()
    for match in islice(chain(_english().finditer(lowered), _chinese().finditer(folded)), _MAX_EXPRESSIONS):
        groups = {name: part for name, part in match.groupdict().items() if part}
        with contextlib.suppress(OverflowError, ValueError):
            found[match.end()] = _span(groups, day)
    if not _HABIT.search(folded) and not any(find_dates(text)):
        for match in chain(_WEEKDAY.finditer(lowered), _WEEKDAY_ZH.finditer(folded)):
            found.setdefault(match.end(), _day(_nearest(match[1], day, past=bool(_PAST.search(folded)))))
    for end in sorted(found, reverse=True):
        if not _DATED.match(text, end):
            text = text[:end] + _in_brackets(found[end], chinese=not text[end - 1].isascii()) + text[end:]
    return text


def _nearest(name: str, day: date, *, past: bool) -> date:
    """Return the next such weekday after a day, or the last one before it."""
    number = _WEEKDAYS.index(name) if name in _WEEKDAYS else "一二三四五六日".find(name) % 7
    ahead = (number - day.weekday() - 1) % 7 + 1
    return day + timedelta(ahead - 7 if past and ahead < 7 else -7 if past else ahead)


def _in_brackets(span: Span, *, chinese: bool) -> str:
    first, last = span
    if first == last:
        named = f"{first}"
    elif first.day == 1 and (last + timedelta(1)).day == 1 and first.month in (last.month, last.month - 11):
        named = f"{first:%Y-%m}" if first.month == last.month else f"{first:%Y}"
    else:
        named = f"{first} 至 {last}" if chinese else f"{first} to {last}"
    return f"（{named}）" if chinese else f" ({named})"


def date_tokens_of(span: Span) -> list[str]:
    """Return the tokens of these days in the index. Long spans are months or years."""
    first, last = span
    days = (last - first).days + 1
    if days >= _MIN_YEAR_DAYS:
        return [f"@{year:04}" for year in range(min(max(first.year, _FIRST_YEAR), last.year), last.year + 1)]
    form = "%Y-%m-%d" if days < _MIN_MONTH_DAYS else "%Y-%m"
    return list(dict.fromkeys(f"@{first + timedelta(number):{form}}" for number in range(days)))


def _span(groups: Mapping[str, str], today: date) -> Span:
    """Return the days of one expression from the groups of its match."""
    if "day" in groups:
        return _day(today + timedelta(_DAYS[groups["day"]]))
    if "shift" in groups:
        return _shift(groups, today, _SHIFTS[groups["shift"]])
    if "year" in groups:
        year = today.year + _YEARS[groups["year"]]
        if "month" not in groups:
            return date(year, 1, 1), date(year, 12, 31)
        return _in_month(year, _count(groups["month"]), groups.get("date"))
    if "ago" in groups:
        return _distant(today, -_count(groups["ago"]), _UNITS.get(groups["of"], groups["of"]))
    length = _LENGTHS[_UNITS.get(groups["length"], groups["length"])]
    return today - timedelta(_count(groups["past"]) * length), today


def _shift(groups: Mapping[str, str], today: date, shift: int) -> Span:
    """Return the last, this or next week, month or year, or a day or month of it."""
    if "moon" in groups:
        first = _distant(today, shift, "month")[0]
        return _in_month(first.year, first.month, groups.get("on"))
    if name := groups.get("month"):  # the last May is the one before this month, in whichever year
        month = _MONTHS.index(name) + 1
        passed = (month < today.month) - (month > today.month)
        return _in_month(today.year + (shift if shift * passed >= 0 else 0), month)
    monday = today + timedelta(7 * shift - today.weekday())
    if name := groups.get("weekday"):
        if name in _WEEKDAYS and shift < 0:
            # "Last Friday" is the one before today, 上周五 that of the previous week.
            return _day(today - timedelta((today.weekday() - _WEEKDAYS.index(name) - 1) % 7 + 1))
        number = _WEEKDAYS.index(name) if name in _WEEKDAYS else "一二三四五六日".find(name) % 7
        return _day(monday + timedelta(number))
    if "weekend" in groups:
        return monday + timedelta(5), monday + timedelta(6)
    return _distant(today, shift, _UNITS.get(groups["unit"], groups["unit"]))


def _distant(today: date, distance: int, unit: str) -> Span:
    """Return the whole day, week, month or year at this distance."""
    if unit == "day":
        return _day(today + timedelta(distance))
    if unit == "week":
        monday = today + timedelta(7 * distance - today.weekday())
        return monday, monday + timedelta(6)
    if unit == "month":
        years, month = divmod(today.month - 1 + distance, 12)
        return _in_month(today.year + years, month + 1)
    return date(today.year + distance, 1, 1), date(today.year + distance, 12, 31)


def _day(day: date) -> Span:
    return day, day


def _in_month(year: int, month: int, day: str | None = None) -> Span:
    if day:
        return _day(date(year, month, _count(day)))
    first = date(year, month, 1)
    return first, (first + timedelta(31)).replace(day=1) - timedelta(1)


def _count(figures: str) -> int:
    return _COUNTS[figures] if figures in _COUNTS else read_number(figures.replace("两", "二"))
