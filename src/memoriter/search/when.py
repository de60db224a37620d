"""The days that a query or a statement means by "yesterday", "last spring", 上个月 or 去年十月.

Reads expressions relative to a day, in English and Chinese. Weeks start on Monday, seasons are those of the northern
half of the earth. ``memoriter.text`` reads absolute dates. "Yesterday" in a statement is relative to the day on which
it was said. A statement that looks ahead to a day is a plan, until the day has passed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from itertools import chain, islice

from memoriter.records import Entry, EntryType, Hit
from memoriter.text.dates import find_dates, local_day, read_number
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
_HOURS = r"(?:\s(?:morning|afternoon|evening|night)\b|[早晚]上|[上中下]午)?"
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_COUNTS |= {"eight": 8, "nine": 9, "ten": 10}
#: The first month of each season. Winter ends in the year after.
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_SEASONS |= {"春": 3, "夏": 6, "秋": 9, "冬": 12}
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
          | (?P<season>{"|".join(name for name in _SEASONS if name.isascii())})
          )
        | {whole}(?P<ago>\d{{1,3}}|an?|{figures})\s(?P<of>day|week|month|year)s?\sago
        | {verbs}(?:last|past)\s(?P<past>\d{{1,3}}|{figures})\s(?P<length>day|week|month|year)s?
        )\b{_HOURS}""",
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
        rf"""(?:
          (?P<day>大?{word["前"]}天|大?{word["后"]}天(?!性)|{word["前"]}[日晚]|昨[天日晚夜]
            |{word["今"]}[天日晚早晨]|{word["明"]}[天日晚早])
        | (?P<shift>(?<!加){word["上"]}上|{word["上"]}|这|{word["本"]}|{word["下"]}下?)一?个?(?:
            (?P<unit>周|星期|礼拜)(?![围边]|期(?![末中间]))(?:
              (?P<weekday>[二三四五六]|一(?![起直些共般定])|日(?![志报期程常])|天(?!气))(?![次个天])|(?P<weekend>末)
            )?
          | (?P<moon>月)(?![亮光球饼])(?:份?的?(?P<on>{figure})[日号])?
          )
        | (?P<year>(?:{word["前"]}|{word["去"]}|{word["今"]}|{word["明"]})年)
          (?:的?(?P<month>{figure})月(?:份?的?(?P<date>{figure})[日号])?|的?(?P<season>[春夏秋冬])[天季])?
        | (?<![\d.,月第百千万一二三四五六七八九十两])(?P<ago>{figure})(?!月)个?(?P<of>{unit})[之以]?前
        | (?:最近|过去|{word["近"]})(?P<past>{figure})个?(?P<length>{unit})
        ){_HOURS}""",
        re.VERBOSE,
    )


def named_days(text: str, today: date) -> list[Span]:
    """Return the days that a query names relative to today.

    >>> named_days("what did Mia say yesterday?", date(2026, 3, 5))
    [(datetime.date(2026, 3, 4), datetime.date(2026, 3, 4))]
    """
    folded = fold_variants(" ".join(text.lower().split()))
    return list(dict.fromkeys(span for *_, span in _relative(folded, today)))


def _relative(folded: str, day: date) -> Iterator[tuple[int, int, Span]]:
    """Yield the place and the days of each expression relative to a day."""
    if not any(hint in folded for hint in _HINTS):
        return
    found: Iterable[re.Match[str]] = _english().finditer(folded)
    if not folded.isascii():
        found = chain(found, _chinese().finditer(folded))
    for match in islice(found, _MAX_EXPRESSIONS):
        groups = {name: part for name, part in match.groupdict().items() if part}
        with contextlib.suppress(OverflowError, ValueError):  # 去年二月三十日, or a day before the year 1
            yield match.start(), match.end(), _span(groups, day)


# A weekday alone is a date only if something happens on it once: "the demo is on Saturday", not "we deploy on Tuesday".
_WEEKDAY = re.compile(rf"\b(?:on|by|until|before|after|this|coming) ({'|'.join(_WEEKDAYS)})\b(?!'){_HOURS}")
_WEEKDAY_ZH = re.compile(
    rf"(?<![每上下这本个到至])(?:周|星期|礼拜)([一二三四五六日天])(?![次个天到至、和]){_HOURS}"
)
_HABIT = re.compile(
    r"\b(?:every|each|always|usually|often|never|\w+days)\b"
    r"|^(?:we|i|they) (?!will|am|are|have|need|must|want|met|saw|went|had|was|were|\w+ed\b)"
    r"|每|总是|通常|一般|都|从不|永远|^(?!.*(?:要|会|将|去|来|准备|打算|约|前|交|了|得|需))(?=.*[\u3400-\u9fff])"
)
_PAST = re.compile(
    r"\b(?:was|were|did|had|met|saw|went|came|got|gave|took|bought|ran|made|left|lost|won|sold|broke|fell|flew)\b"
    r"|\w\w(?<!e)ed\b|了|过"
)
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
    found = {end: span for _, end, span in _relative(folded, day)}
    if not _HABIT.search(folded) and not any(find_dates(text)):
        for match in chain(_WEEKDAY.finditer(lowered), _WEEKDAY_ZH.finditer(folded)):
            found.setdefault(match.end(), _day(_nearest(match[1], day, past=bool(_PAST.search(folded)))))
    for end in sorted(found, reverse=True):
        if not _DATED.match(text, end):
            text = text[:end] + _in_brackets(found[end], chinese=not text[end - 1].isascii()) + text[end:]
    return text


# A statement about every year is not a plan, and one "from July on" becomes true on its day.
_RECURS = re.compile(r"\b(?:every|each|annual|yearly|birthday|anniversary)\b|每|生日|纪念日")
_SINCE = re.compile(r"\b(?:since|from|starting|beginning|as of|after)(?: on| in)? ?$|[从自]$")
_ONWARDS = re.compile(r" on(?:wards?)?\b|起|开始|之后|以后")
# A weekday, a month or a day without a year is the next one if the statement looks ahead.
_AHEAD = re.compile(
    r"\b(?:will|going|plan\w*|intend\w*|scheduled|booked|due|until|by|(?:am|are|is) \w+ing)\b|'(?:ll|m|re) "
    r"|[要将]|(?<!开)会(?!议)|打算|计划|准备|预[定计]|截止|出差"
)


def planned_for(text: str, said: date) -> Span | None:
    """Return the days that a statement looks ahead to from the day on which it was made; None if it does not.

    >>> planned_for("I am going to Singapore in July", date(2026, 5, 2))
    (datetime.date(2026, 7, 1), datetime.date(2026, 7, 31))
    """
    folded = fold_variants(text.lower())
    if len(folded) != len(text) or _RECURS.search(folded):
        return None
    found, is_past = [*_relative(folded, said), *_absolute(folded, said)], bool(_PAST.search(folded))
    if not found and not is_past and _AHEAD.search(folded) and not _HABIT.search(folded):
        weekdays = chain(_WEEKDAY.finditer(folded), _WEEKDAY_ZH.finditer(folded))
        found = [
            (match.start(), match.end(), _day(_nearest(match[1], said, past=False))) for match in weekdays
        ]
    for start, end, _ in found:
        if _SINCE.search(folded[max(0, start - 20) : start]) or _ONWARDS.match(folded, end):
            return None
    ahead = [span for *_, span in found if span[1] > said and (span[0] > said or not is_past)]
    return max(ahead, key=lambda span: span[1], default=None)


def past_plan(text: str, said: date | None, today: date) -> str | None:
    """Return the days that a text was planned for, if every line of it is a plan whose days have passed."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if said is None or not lines:
        return None
    spans = [planned_for(line, said) for line in lines]
    ended = [span for span in spans if span and span[1] < today]
    return name_days(max(ended)) if len(ended) == len(spans) else None


#: Types of entries that hold beyond a day that they name.
_LASTING: tuple[EntryType, ...] = ("technical_decision", "workflow", "skill")


def plan_of(entry: Entry) -> Span | None:
    """Return the days that an entry looks ahead to from the day on which it was said."""
    return None if entry.type in _LASTING else planned_for(entry.text, local_day(entry.created_at))


def ended_plan(entry: Entry, today: date) -> str | None:
    """Return the days that an entry was planned for, if they have passed."""
    span = plan_of(entry)
    return name_days(span) if span and span[1] < today else None


def label_plans(hits: Iterable[Hit], today: date) -> tuple[Hit, ...]:
    """Return the hits with the days of plans that have passed."""

    def planned(hit: Hit) -> str | None:
        if hit.entry is not None:
            return ended_plan(hit.entry.entry, today)
        return past_plan(hit.snippet, date.fromisoformat(hit.date) if hit.date else None, today)

    return tuple(replace(hit, planned=planned(hit)) for hit in hits)


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A question about a past month, season or year."""

    #: The last day that it is about.
    day: date
    #: The question without the words for the time.
    text: str


def past_question(query: str, today: date) -> PastQuestion | None:
    """Return the past month, season or year that a question is about; None if it names none, or several.

    >>> past_question("What was my stack last spring?", date(2026, 11, 17))
    PastQuestion(day=datetime.date(2026, 5, 31), text='What was my stack ?')
    """
    folded = fold_variants(query.lower())
    found = {
        span: place for *place, span in (*_relative(folded, today), *_absolute(folded, today, ahead=False))
    }
    if len(found) != 1 or len(folded) != len(query):
        return None
    (((first, last), (start, end)),) = found.items()
    if (last - first).days + 1 < _MIN_MONTH_DAYS or last >= today:
        return None
    return PastQuestion(last, _BEFORE_TIME.sub("", query[:start]) + query[end:])


_BEFORE_TIME = re.compile(r"(?:\b(?:back )?(?:in|during|of|as of) )?$", re.IGNORECASE)
_PRESENT = re.compile(r"\b(?:am|is|are|do|does|ha(?:s|ve)|can|should|still|(?:wh\w+|how)'s)\b|还|仍|现在")
_IN_YEAR = re.compile(r"\b(?:in|during|of) \d$|年$")
_DATE = re.compile(r"@(?:(\d{4})-)?(\d\d)(?:-(\d\d))?")


def _absolute(folded: str, day: date, *, ahead: bool = True) -> Iterator[tuple[int, int, Span]]:
    """Yield the place and the days of each date. One without a year is the next one, or the one before.

    A year alone may be any number. It counts in a question about "in 2024" or 2024年. "Are we going in October?" is not
    about the past.
    """
    for start, end, tokens in find_dates(folded):
        if (
            not ahead
            and len(tokens) == 1
            and len(tokens[0]) > 4
            and _IN_YEAR.search(folded[:start] + folded[end - 1])
        ):
            yield start, end, (date(int(tokens[0][1:]), 1, 1), date(int(tokens[0][1:]), 12, 31))
        found = _DATE.fullmatch(tokens[0]) if tokens else None
        if found is None or not (found[1] or (_AHEAD.search(folded) if ahead else _may_be_past(folded))):
            continue
        years = [int(found[1])] if found[1] else [day.year - 1, day.year, day.year + 1]
        with contextlib.suppress(ValueError):  # 30 February
            spans = [_in_month(year, int(found[2]), found[3]) for year in years]
            if not found[1]:
                spans = [span for span in spans if (span[1] > day if ahead else span[0] <= day)]
            yield start, end, spans[0] if ahead else spans[-1]


def _may_be_past(folded: str) -> bool:
    return bool(_PAST.search(folded)) or not (_AHEAD.search(folded) or _PRESENT.search(folded))


def _nearest(name: str, day: date, *, past: bool) -> date:
    """Return the next such weekday after a day, or the last one before it."""
    number = _WEEKDAYS.index(name) if name in _WEEKDAYS else "一二三四五六日".find(name) % 7
    ahead = (number - day.weekday() - 1) % 7 + 1
    return day + timedelta(ahead - 7 if past and ahead < 7 else -7 if past else ahead)


def _in_brackets(span: Span, *, chinese: bool) -> str:
    named = name_days(span)
    return f"（{named.replace(' to ', ' 至 ')}）" if chinese else f" ({named})"


def name_days(span: Span) -> str:
    """Return days in figures: "2026-07-03", "2026-07", "2026", or two days with "to" between them."""
    first, last = span
    if first == last:
        return f"{first}"
    if first.day == 1 and (last + timedelta(1)).day == 1 and first.month in (last.month, last.month - 11):
        return f"{first:%Y-%m}" if first.month == last.month else f"{first:%Y}"
    return f"{first} to {last}"


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
        shift, season = _SHIFTS[groups["shift"]], groups.get("season")
        return _near_season(season, today, shift) if season else _shift(groups, today, shift)
    if "year" in groups:
        year = today.year + _YEARS[groups["year"]]
        return _in_year(groups, year)
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


def _in_year(groups: Mapping[str, str], year: int) -> Span:
    if season := groups.get("season"):
        return _season(year, season)
    if "month" not in groups:
        return date(year, 1, 1), date(year, 12, 31)
    return _in_month(year, _count(groups["month"]), groups.get("date"))


def _near_season(name: str, today: date, shift: int) -> Span:
    """Return the season that ended last, the one that is not over, or the next one that starts."""
    near = [_season(today.year + ahead, name) for ahead in (-2, -1, 0, 1)]
    if shift < 0:
        return max(one for one in near if one[1] < today)
    return min(one for one in near if (one[0] > today if shift else one[1] >= today))


def _season(year: int, name: str) -> Span:
    first = date(year, _SEASONS[name], 1)
    return first, _distant(first, 2, "month")[1]


def _count(figures: str) -> int:
    return _COUNTS[figures] if figures in _COUNTS else read_number(figures.replace("两", "二"))
