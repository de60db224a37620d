"""Any text is a safe query."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoriter import Memory

HOSTILE = [
    "",
    " ",
    '"',
    "a OR",
    "NEAR(",
    "col:x",
    "-x",
    "(" * 2000,
    "\0",
    "x\0y",
    "💥" * 50,
    "* ^ + {}",
    "AND OR NOT",
    "title:heron",
    "' OR 1=1 --",
    "word " * 10_000,
    "a" * 1_000_000,
    "数" * 100_000,
    "\ud800",
    "的了吗",
]


def assert_safe(memory: Memory, query: str) -> None:
    """Check that a search answers completely, from the one note, with scores between 0 and 1."""
    answer = memory.search(query, min_score=0)
    assert answer.degraded is None
    assert [hit.path for hit in answer] in ([], ["memory/a.md"])
    assert all(0 <= hit.score <= 1 for hit in answer)


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_any_string_is_a_safe_query(query, note, open_memory) -> None:
    note("memory/a.md", "The heron stands in the water.")
    memory = open_memory()
    assert_safe(memory, query)
    assert [hit.path for hit in memory.search("heron")] == ["memory/a.md"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=300))
def test_no_text_makes_a_search_fail(query, shared_memory: Memory) -> None:
    assert_safe(shared_memory, query)


@pytest.fixture
def shared_memory(note, open_memory) -> Memory:
    note("memory/a.md", "The heron stands in the water. 数据库备份")
    memory = open_memory(search__sync_before=False)
    memory.sync()
    return memory
