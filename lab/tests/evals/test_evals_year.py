"""The simulated year: what is said, and that the truth of each day is known."""

from __future__ import annotations

from lab.evals import year
from lab.evals.plots import Series, lines


def test_three_people_say_4000_statements_in_a_year() -> None:
    lives = [year.person(number, 1.0) for number in range(3)]
    assert sum(len(said) for said, _ in lives) in range(3_999, 4_002)
    for said, pairs in lives:
        assert [one.day for one in said] == sorted(one.day for one in said)
        assert len({pair["topic"] for pair in pairs}) == len(pairs)


def test_nothing_is_repeated_that_is_not_in_force() -> None:
    said, pairs = year.person(2, 0.5)
    for pair in pairs:
        first, second = pair["days"]
        for name, start, end in (("earlier", first, second), ("later", second, year.DAYS)):
            days = [one.day for one in said if one.text == pair[name]["text"]]
            assert min(days) == start
            assert max(days) <= end


def test_a_memory_that_lives_a_small_part_of_a_year_has_figures_for_each_month() -> None:
    months = list(year.live(0, 0.01, tidied=True))
    assert len(months) == 12
    last = months[-1]
    assert last.counts["asked"] == 4
    assert 4 <= last.entries <= 13
    assert last.counts["in force recalled"] >= 3
    assert len(list(year.table("tidied", months))) == 14


def test_lines_are_drawn_over_months() -> None:
    plot = lines([Series("one", [0.0, 100.0]), Series("two", [50.0, 50.0])], x="month", y="%")
    assert plot.count("<polyline") == 2
