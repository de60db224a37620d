"""The keyword leg: concurrent writes, and chunks that it does not propose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memoriter import Memory
from memoriter.engines.builtin import BuiltinEngine
from memoriter.search.rank import keyword_leg
from memoriter.store import Filter, Index
from memoriter.text import query_terms


class Earlier:
    """An index whose total was read before its newest rows were added."""

    def __init__(self, index: Index) -> None:
        self.keyword, self.terms = index.keyword, index.terms

    def total(self) -> int:
        return 1


def test_a_term_may_occur_in_more_chunks_than_were_counted(
    open_memory: Callable[[], Memory], note: Callable[[str, str], Path]
) -> None:
    for number in range(4):
        note(f"memory/{number}.md", f"The tea of day {number}.\n")
    memory = open_memory()
    memory.sync()
    assert isinstance(memory._parts.engine, BuiltinEngine)
    leg = keyword_leg(Earlier(memory._parts.engine.index), ["tea"], limit=10, where=Filter())  # type: ignore[arg-type]
    assert len(leg.values) == 4
    assert all(0 < value <= 1 for value in leg.values.values())


def test_an_unproposed_chunk_may_contain_a_term_only_if_the_limit_was_reached(
    open_memory: Callable[[], Memory], note: Callable[[str, str], Path]
) -> None:
    for number in range(4):
        note(f"memory/{number}.md", f"The tea of day {number}.\n")
    note("memory/other.md", "A heron.\n")
    memory = open_memory()
    memory.sync()
    assert isinstance(memory._parts.engine, BuiltinEngine)
    index = memory._parts.engine.index
    rows = {path: index.stored_of(path)[0].rowid for path in index.files()}
    few, all_ = (keyword_leg(index, ["tea"], limit=limit, where=Filter()) for limit in (3, 10))
    assert [few.may_contain(row) for row in rows.values()] == [True] * 5
    assert {path for path, row in rows.items() if not all_.may_contain(row)} == {"memory/other.md"}


def test_words_that_a_paraphrase_shares_by_chance_count_less_than_their_share(
    open_memory: Callable[[], Memory], note: Callable[[str, str], Path]
) -> None:
    for number, line in enumerate(
        ("A red kettle.", "A red heron.", "The lake froze.", "Tea.", "Rain.", "Snow.")
    ):
        note(f"memory/{number}.md", f"{line}\n")
    memory = open_memory()
    memory.sync()
    assert isinstance(memory._parts.engine, BuiltinEngine)
    index = memory._parts.engine.index
    row = index.stored_of("memory/0.md")[0].rowid

    def per_share(query: str) -> float:
        leg = keyword_leg(index, query_terms(query), limit=10, where=Filter())
        return leg.evidence[row] / leg.coverage(query_terms("red kettle"))

    assert per_share("red kettle") > 0.9
    assert per_share("a kettle, red, that whistles when the water on the stove boils in the morning") < 0.5
