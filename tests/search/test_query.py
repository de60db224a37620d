"""`Query`: one value for a search request, from `Memory.search` down to the engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memoriter import Memory
from memoriter.records import Query


def test_keyword_arguments_replace_fields_of_a_query_unless_they_are_none() -> None:
    query = Query("heron", max_results=3, source="memory")
    assert Query.of(query, max_results=1, source=None) == Query("heron", max_results=1, source="memory")
    assert Query.of("heron", min_score=0.0) == Query("heron", min_score=0.0)


def test_a_search_takes_a_text_or_a_query(
    open_memory: Callable[[], Memory], note: Callable[[str, str], Path]
) -> None:
    note("memory/a.md", "The heron stands in the river.\n")
    note("memory/work/b.md", "The heron flies.\n")
    memory = open_memory()
    query = Query("heron", path_prefix="memory/work/")
    assert memory.search(query).hits == memory.search("heron", path_prefix="memory/work/").hits
    assert [hit.path for hit in memory.search(query).hits] == ["memory/work/b.md"]
    assert memory.search(query, max_results=0).hits == ()


def test_a_question_behind_a_long_text_is_answered(
    open_memory: Callable[[], Memory], note: Callable[[str, str], Path]
) -> None:
    note("memory/a.md", "The heron stands in the river.\n")
    note("memory/b.md", "The lamp is green.\n")
    pasted = "lorem ipsum " * 2_000
    assert [hit.path for hit in open_memory().search(f"{pasted} heron?").hits] == ["memory/a.md"]
