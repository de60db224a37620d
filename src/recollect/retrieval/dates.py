"""The date leg: does the note belong to the day that the query names?

"What happened on 8 May?" shares no meaning with what happened, and its date is a weak keyword among others. So a
query that names a day, a month or a year, by its date or as "yesterday" (``when``), gives a part of the score to notes
of that time. Others pay nothing for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from recollect.retrieval.when import Span
from recollect.text import date_tokens


@dataclass(frozen=True, slots=True)
class Time:
    """Days that a query names by their distance from today, and the rows whose text or headings name them too."""

    span: Span
    rows: Collection[int] = ()

    def agrees(self, row: int, day: str | None) -> bool:
        """Whether the row's note is of these days; of a note without a day, what it says counts."""
        return self.span[0].isoformat() <= day <= self.span[1].isoformat() if day else row in self.rows


def date_leg(terms: Sequence[str], dates: Mapping[int, str], times: Sequence[Time] = ()) -> dict[int, float]:
    """For each row, the share of the query's dates that it agrees with; without one where that is nothing."""
    asked = {term for term in terms if term.startswith("@")}
    if not asked and not times:
        return {}
    agreeing = {day: len(asked & _stated(day)) for day in set(dates.values())} if asked else {}
    counts = {row: agreeing.get(day, 0) for row, day in dates.items()}
    for time in times:
        for row in {*dates, *time.rows}:
            counts[row] = counts.get(row, 0) + time.agrees(row, dates.get(row))
    return {row: count / (len(asked) + len(times)) for row, count in counts.items() if count}


@lru_cache(maxsize=4096)
def _stated(day: str) -> frozenset[str]:
    """What a note's day states; kept, since every query with a date meets the same days again."""
    return frozenset(date_tokens(day))
