"""The date leg: does the note belong to the day that the query names?

"What happened on 8 May?" shares no meaning with what happened, and its date is a weak keyword among others. So a
query that names a day, a month or a year gives a part of the score to notes of that time. Others pay nothing for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recollect.text import date_tokens


def date_leg(terms: Sequence[str], dates: Mapping[int, str]) -> dict[int, float]:
    """For each dated row, the share of the query's dates that its day agrees with."""
    asked = {term for term in terms if term.startswith("@")}
    if not asked:
        return {}
    shares = {day: len(asked & set(date_tokens(day))) / len(asked) for day in set(dates.values())}
    return {row: shares[day] for row, day in dates.items() if shares[day]}
