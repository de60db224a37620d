"""What was valid on an earlier day, and plans whose days have passed."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest

from memoriter import Memory
from memoriter.errors import BadArgument
from memoriter.records import Turn
from memoriter.tools.table import call


def at(day: str) -> float:
    return datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=UTC).timestamp()


def say(memory: Memory, day: str, text: str) -> str:
    """Capture a sentence of the owner that was said on a day."""
    (done,) = memory.capture([Turn("user", text, 1, at(day))], session=day)
    assert done.entry is not None
    return done.entry.id


def imported(memory: Memory, day: str, text: str) -> None:
    memory.entries.import_(json.dumps([{"text": text, "created_at": at(day)}]))


def test_a_captured_statement_is_valid_since_it_was_said(open_memory: Any) -> None:
    memory: Memory = open_memory()
    entry = memory.entries.get(say(memory, "2025-02-03", "I live in Berlin."))
    assert (entry.created_at, entry.valid_from, entry.day) == (
        at("2025-02-03"),
        at("2025-02-03"),
        "2025-02-03",
    )
    assert entry.valid_until(None) == entry.expires_at


@pytest.mark.parametrize(
    ("first", "second", "query", "past"),
    [
        (
            "I live in Berlin.",
            "I live in Munich now, no longer in Berlin.",
            "where do I live",
            "where did I live in {year}?",
        ),
        ("我喜欢喝咖啡。", "我不再喝咖啡。", "我喝咖啡吗", "{year}年我喝咖啡吗？"),
    ],
)
def test_a_search_of_an_earlier_day_answers_with_what_was_valid_then(
    open_memory: Any, first: str, second: str, query: str, past: str
) -> None:
    memory: Memory = open_memory(embedding__provider="local", search__rerank=True)
    old, new = say(memory, "2024-02-03", first), say(memory, "2025-05-01", second)
    assert memory.entries.get(old).superseded_by == new
    assert memory.entries.get(old).valid_until(memory.entries.get(new)) == at("2025-05-01")

    assert call(memory, "entries.get", {"id": old})["validUntil"] == at("2025-05-01")

    def found(**arguments: Any) -> list[tuple[str, str | None]]:
        return [(hit.path, hit.superseded_by) for hit in memory.search(query, **arguments).hits]

    assert found() == [(f"entries/{new}", None)]
    assert found(as_of="2025-04-30") == [(f"entries/{old}", f"entry:{new}")]
    assert found(as_of=date(2025, 5, 1)) == [(f"entries/{new}", None)]
    assert found(as_of="2024-02-02") == []
    assert memory.search(past.format(year=2024)).hits[0].path == f"entries/{old}"
    lines = memory.recall(past.format(year=2024)).lines
    assert lines[0].text == memory.entries.get(old).text
    assert lines[0].date.startswith("2024-02-03 to ")
    assert [line.text for line in memory.recall(query).lines] == [memory.entries.get(new).text]


def test_a_search_of_an_earlier_day_finds_no_note_that_is_newer_or_has_no_date(
    open_memory: Any, note: Any
) -> None:
    note("memory/2024-03-01.md", "# Log\n\n- The studio router is a Fritzbox.\n")
    note("memory/2025-08-01.md", "# Log\n\n- The studio router is a Mikrotik.\n")
    note("MEMORY.md", "The studio router stands behind the shelf.\n")
    memory: Memory = open_memory()

    def paths(query: str, **arguments: Any) -> list[str]:
        return [hit.path for hit in memory.search(query, min_score=0.0, **arguments).hits]

    assert paths("studio router", as_of="2025-07-31") == ["memory/2024-03-01.md"]
    assert set(paths("studio router", as_of="2025-08-01")) == {"memory/2024-03-01.md", "memory/2025-08-01.md"}
    assert paths("studio router", as_of="2023-01-01") == []
    assert paths("which studio router did we have in March 2024?")[0] == "memory/2024-03-01.md"


def test_a_day_that_is_not_a_day_is_refused_with_one_sentence(open_memory: Any) -> None:
    memory: Memory = open_memory()
    with pytest.raises(BadArgument, match=r"`as_of` must be a day such as 2026-03-01, not 'spring'\."):
        memory.search("router", as_of="spring")


@pytest.mark.parametrize(
    ("plan", "query", "past"),
    [
        ("I am going to Singapore in July.", "Singapore trip", "Where did I plan to go before, Singapore?"),
        ("七月我要去新加坡出差。", "新加坡出差", "我以前打算去新加坡出差吗"),
    ],
)
def test_a_plan_whose_days_have_passed_is_labelled_and_not_recalled(
    open_memory: Any, plan: str, query: str, past: str
) -> None:
    memory: Memory = open_memory(embedding__provider="local", search__rerank=True)
    imported(memory, "2025-05-02", plan)
    (hit,) = memory.search(query).hits
    assert (hit.snippet, hit.planned) == (plan, "2025-07")
    assert memory.recall(query).text == ""
    (line,) = memory.recall(past).lines
    assert (line.text, line.date) == (plan, "2025-07 (planned)")


def test_a_plan_ahead_is_recalled(open_memory: Any) -> None:
    memory: Memory = open_memory()
    memory.remember("The launch party is on 2099-07-01 in the harbour hall")
    (hit,) = memory.search("launch party").hits
    assert hit.planned is None
    assert [line.date for line in memory.recall("launch party").lines] == [""]


def test_a_past_plan_in_a_note_is_labelled(open_memory: Any, note: Any) -> None:
    note("memory/2025-05-02.md", "The ferry to Bergen is booked for 2025-06-10.\n")
    memory: Memory = open_memory()
    (hit,) = memory.search("ferry to Bergen").hits
    assert hit.planned == "2025-06-10"
    assert memory.recall("ferry to Bergen").text == ""
