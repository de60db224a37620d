"""Names of the regions of the map: the words that the entries of a region share and others do not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoriter.entries.regions import GRID, MAX_REGIONS, name_regions
from memoriter.records import Entry, Point


def point(text: str, x: float, y: float) -> Point:
    return Point(Entry(id=f"{text}{x}{y}", text=text, type="fact"), x, y)


def test_a_region_is_named_by_the_words_that_only_its_entries_share() -> None:
    ferries = [
        point(f"The ferry to island {name} leaves early", -0.9, -0.9) for name in ("Faial", "Pico", "Corvo")
    ]
    funds = [point(f"每个月定投{name}，金额固定", 0.9, 0.9) for name in ("指数", "黄金", "债券", "红利")]
    regions = name_regions([*ferries, *funds])
    assert [(one.entries, one.x, one.y) for one in regions] == [(4, 0.9, 0.9), (3, -0.9, -0.9)]
    chinese, english = (one.name.split(" · ") for one in regions)
    assert set(english) <= {"ferry", "island", "leaves", "early"}
    assert len(english) == len(chinese) == 2
    assert not set(chinese[0]) & set(chinese[1])


def test_few_entries_have_no_region() -> None:
    assert name_regions([]) == ()
    assert name_regions([point("The ferry leaves early", 0, 0), point("The ferry is late", 0, 0)]) == ()


COORDINATE = st.floats(-1, 1, allow_nan=False)


@given(st.lists(st.tuples(st.text(max_size=12), COORDINATE, COORDINATE), max_size=40))
def test_any_texts_have_regions_with_different_names(given_points: list[tuple[str, float, float]]) -> None:
    regions = name_regions([point(*one) for one in given_points])
    words = [word for region in regions for word in region.name.split(" · ")]
    assert len(regions) <= min(MAX_REGIONS, GRID * GRID)
    assert all(word.strip() for word in words)
    assert sum(region.entries for region in regions) <= len(given_points)
    assert all(-1 <= axis <= 1 for region in regions for axis in (region.x, region.y))
