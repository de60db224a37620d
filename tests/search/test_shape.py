"""The shape of an answer: hits of several files, neighbours joined, and headings above lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memoriter import Memory
from memoriter.records import Chunk, Part
from memoriter.search import shape
from memoriter.search.rank import Scored
from memoriter.search.shape import Place

OpenMemory = Callable[..., Memory]


def scored(*rows: int) -> list[Scored]:
    """Return rows with falling scores."""
    return [Scored(row, (Part("vector", 0.9, 1, 0.9 - n / 1000),)) for n, row in enumerate(rows)]


def files(**rows: range) -> dict[int, Chunk]:
    """Return one line per chunk in each of the files."""
    return {
        row: Chunk(f"{row}", name, "memory", line, line, f"line {line} of {name}")
        for name, numbers in rows.items()
        for line, row in enumerate(numbers, 1)
    }


CHUNKS = files(a=range(10, 40), b=range(50, 60), c=range(70, 80))
NEAR = {row: [row - 1, row, row + 1] for row in CHUNKS}


def rows_of(items: list[Scored]) -> list[int]:
    return [item.rowid for item in items]


def test_after_two_hits_of_a_file_the_best_of_the_others_come_first() -> None:
    order = shape.spread(scored(10, 12, 14, 16, 50, 18, 70, 52), CHUNKS, NEAR, 2)
    assert rows_of(order) == [10, 12, 50, 70, 14, 16, 18, 52]


def test_a_file_alone_keeps_its_order() -> None:
    assert rows_of(shape.spread(scored(20, 10, 30, 14), CHUNKS, NEAR, 2)) == [20, 10, 30, 14]


def test_a_much_weaker_hit_of_another_file_does_not_come_first() -> None:
    weak = Scored(50, (Part("vector", 0.1, 1, 0.1),))
    assert rows_of(shape.spread([*scored(10, 12, 14), weak], CHUNKS, NEAR, 2)) == [10, 12, 14, 50]


def test_neighbours_are_one_hit_and_leave_room_for_others() -> None:
    places = shape.join_neighbours(scored(12, 50, 13, 11, 70), CHUNKS, NEAR, 3)
    assert [(place.best.rowid, place.rows) for place in places] == [
        (12, (11, 12, 13)),
        (50, (50,)),
        (70, (70,)),
    ]


def test_neighbours_that_would_make_a_long_hit_stay_separate() -> None:
    places = shape.join_neighbours(scored(12, 13), CHUNKS, NEAR, 3, 5)
    assert [place.rows for place in places] == [(12,), (13,)]


@given(st.lists(st.sampled_from(sorted(CHUNKS)), unique=True), st.integers(0, 8), st.integers(1, 4))
def test_an_answer_is_full_and_has_each_chunk_at_most_once(
    rows: list[int], limit: int, per_file: int
) -> None:
    order = shape.spread(scored(*rows), CHUNKS, NEAR, per_file)
    assert sorted(rows_of(order)) == sorted(rows)
    places = shape.join_neighbours(order, CHUNKS, NEAR, limit)
    shown = [row for place in places for row in place.rows]
    assert len(shown) == len(set(shown))
    assert len(places) == limit or set(shown) == set(rows) or limit == 0
    for place in places:
        assert len({CHUNKS[row].path for row in place.rows}) == 1
        assert list(place.rows) == list(range(place.rows[0], place.rows[-1] + 1))


@given(st.lists(st.integers(0, 30), unique=True), st.sets(st.integers(0, 30)), st.integers(0, 8))
def test_rows_that_must_be_kept_are_in_the_answer(order: list[int], kept: set[int], limit: int) -> None:
    items = scored(*order)
    places = [Place(item, (item.rowid,)) for item in items[:limit]]
    chosen = shape.keep(places, items[limit:], lambda row: row in kept)
    assert len(chosen) == min(limit, len(order))
    wanted = [row for row in order if row in kept][:limit]
    assert [place.best.rowid for place in chosen if place.best.rowid in kept] == wanted


# ---- true lines -----------------------------------------------------------------------------------------------

GARDEN = """# Garden

## Tomatoes

- The tomatoes on the balcony are watered every second evening.

- The tomatoes were planted in the first week of May this year.
- Three of the tomatoes are yellow and come from the neighbour.

## Tools

- The ladder is lent to Anna until the end of the summer.
"""


def test_a_joined_hit_has_exactly_the_lines_that_it_cites(
    open_memory: OpenMemory, note: Callable[[str, str], Path]
) -> None:
    note("memory/garden.md", GARDEN)
    memory = open_memory()
    (hit, *_) = memory.search("tomatoes").hits
    assert hit.snippet.count("tomatoes") == 3
    lines = memory.read(hit.path, hit.start_line, hit.end_line - hit.start_line + 1).text
    assert lines.strip() == hit.snippet
    assert hit.citation == f"memory/garden.md#L{hit.start_line}-L{hit.end_line}"


def test_an_edited_line_stays_in_its_place_among_its_neighbours(
    open_memory: OpenMemory, note: Callable[[str, str], Path]
) -> None:
    """An edited line gets its vector in a new row, behind the rows of the lines that follow it."""
    note("memory/garden.md", GARDEN)
    memory = open_memory()
    memory.search("tomatoes")
    note("memory/garden.md", GARDEN.replace("first week of May", "second week of April"))
    (hit, *_) = memory.search("tomatoes").hits
    assert hit.snippet.count("tomatoes") == 3
    lines = memory.read(hit.path, hit.start_line, hit.end_line - hit.start_line + 1).text
    assert lines.strip() == hit.snippet
    starts = [chunk.start_line for chunk in memory.notes.chunks("memory/garden.md")]
    assert starts == sorted(starts)


def test_a_hit_names_the_headings_above_it(open_memory: OpenMemory, note: Callable[[str, str], Path]) -> None:
    ladder = "It is made of aluminium, and it is four metres long when extended. " * 4
    note("memory/garden.md", f"{GARDEN}\n{ladder}\n")
    (hit,) = open_memory().search("aluminium metres", max_results=1).hits
    assert (hit.heading, hit.snippet) == ("Garden > Tools", ladder.strip())


@given(st.integers(40, 400), st.integers(0, 60), st.integers(20, 400))
def test_joined_chunks_are_the_lines_of_the_file(count: int, overlap: int, tokens: int) -> None:
    from memoriter.notes.chunking import chunk_markdown
    from memoriter.records import Document

    lines = [f"sentence number {n} of a long text" if n % 7 else "" for n in range(count)]
    document = Document("memory/long.md", "memory", "\n".join(lines), "", 0, 0)
    chunks = dict(enumerate(chunk_markdown(document, tokens=tokens, overlap=overlap, target=tokens)))
    whole = shape.joined(range(len(chunks)), chunks)
    assert whole.text == "\n".join(lines[whole.start_line - 1 : whole.end_line])
