from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_memories import HOSTILE
from opened_entries import open_entries

from lab.evals.recalled_blocks import read_back
from memoriter.entries import Draft, Entries
from memoriter.errors import NotFound
from memoriter.recall.inject import Budget, Injector
from memoriter.recall.render import Line, render
from memoriter.records import Answer, Explanation, Hit
from memoriter.testing import HashEmbedder

DAY = 86_400.0
ALL = Budget(threshold=0.0, min_confidence=0.0, max_entries=200, characters=200_000, candidates=200)


class Clock:
    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        self.at += 1
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def entries(tmp_path: Path, clock: Clock) -> Iterator[Entries]:
    entries = open_entries(tmp_path / "agent", HashEmbedder(), clock=clock)
    yield entries
    entries.close()


@pytest.fixture
def injector(entries: Entries, clock: Clock) -> Injector:
    return Injector(entries, clock=clock)


def add(entries: Entries, text: str, **more: Any) -> str:
    entry = entries.add_draft(Draft(text, **more)).entry
    assert entry is not None
    return entry.id


def test_relevant_entries_enter_in_groups_with_ids_and_are_counted(
    entries: Entries, injector: Injector
) -> None:
    tea = add(entries, "I drink green tea every morning", type="user_preference", importance=4)
    add(entries, "The server is in Oslo", type="fact")
    done = injector.recall("what do I drink in the morning, tea?", session="s1")
    assert [line.ref for line in done.lines] == [f"entry:{tea}"]
    assert read_back(done.text) == (done.id, list(done.lines))
    entry = entries.get(tea)
    assert (entry.access_count, entry.last_accessed_at is not None) == (1, True)


@pytest.mark.requirement("X5")
def test_the_ledger_says_what_entered_a_prompt_and_why(entries: Entries, injector: Injector) -> None:
    first = add(entries, "I drink green tea every morning", importance=4)
    second = add(entries, "I drink tea with milk in Britain")
    done = injector.recall(
        "drink tea morning",
        budget=Budget(min_confidence=0.0, threshold=0.0, max_entries=1),
        session="s1",
        interface="hook",
    )
    recorded = entries.get_recall(done.id[:6])
    assert (recorded.id, recorded.session, recorded.interface, recorded.query) == (
        done.id,
        "s1",
        "hook",
        "drink tea morning",
    )
    assert (recorded.characters, recorded.tokens > 0) == (len(done.text), True)
    assert [(one.ref, one.entered) for one in recorded.considered] == [(first, True), (second, False)]
    assert recorded.considered[1].reason == "enough of this kind was added already"
    for one in recorded.considered:
        assert sum(part.contribution for part in one.parts) == pytest.approx(one.score)
    assert [head.id for head in entries.recalls(entry=first).recalls] == [done.id]
    with pytest.raises(NotFound):
        entries.get_recall("nonsense")


@pytest.mark.requirement("X6")
def test_expired_superseded_and_untrusted_never_enter(
    entries: Entries, injector: Injector, clock: Clock
) -> None:
    add(entries, "Tea is served at four", type="workflow", trust="agent")
    old = add(entries, "I live in Paris and drink tea", type="fact", importance=5)
    add(entries, "The tea room is closed", trust="untrusted", importance=5)
    entries.update(old, expires_at=clock.at + 5)
    clock.at += 91 * DAY
    add(entries, "Tea costs three euros", type="fact")
    assert [line.text for line in injector.recall("tea", budget=ALL).lines] == ["Tea costs three euros"]


def test_the_budget_of_characters_and_tokens_is_respected(entries: Entries, injector: Injector) -> None:
    for number in range(12):
        add(entries, f"Fact number {number} about the great heron: " + "word " * 20, type="fact")
    for budget in (
        Budget(threshold=0.0, characters=600),
        Budget(threshold=0.0, characters=4_000, tokens=120),
    ):
        done = injector.recall("great heron", budget=budget)
        assert 0 < len(done.text) <= budget.characters
        recorded = entries.get_recall(done.id)
        assert budget.tokens is None or recorded.tokens <= budget.tokens
        assert "no room was left" in {one.reason for one in recorded.considered}
    assert injector.recall("great heron", budget=Budget(threshold=0.0, characters=20)).text == ""


@pytest.mark.requirement("X6")
def test_notes_enter_with_citations_and_untrusted_ones_do_not(entries: Entries, clock: Clock) -> None:
    def hit(path: str, **more: Any) -> Hit:
        return Hit(
            path, 1, 2, 0.9, f"text of {path}", "memory", f"{path}#L1-L2", Explanation("weighted", ()), **more
        )

    def notes(query: str, limit: int) -> Answer:
        return Answer((hit("memory/a.md"), hit("sessions/b.jsonl", trust="untrusted")), "none", "")

    injector = Injector(entries, notes, clock=clock)
    done = injector.recall("anything at all")
    assert [(line.ref, line.group) for line in done.lines] == [("memory/a.md#L1-L2", "notes")]
    assert [one.entered for one in entries.get_recall(done.id).considered] == [True, False]
    assert [line.ref for line in injector.recall("anything at all", show_places=False).lines] == [""]


def test_an_old_preference_of_importance_five_is_in_the_brief(
    entries: Entries, injector: Injector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoriter.recall.inject.MAX_BRIEF_ENTRIES", 20)
    add(entries, "I am allergic to peanuts", type="user_preference", importance=5)
    here = add(
        entries, "The mail sender is written in Rust", type="technical_decision", importance=4, session="s1"
    )
    add(entries, "The shop is written in Go", type="technical_decision", importance=5, session="s2")
    for number in range(60):
        add(entries, f"Remark {number} on box {number * 37}", type="fact", importance=2, session="s3")
        add(
            entries,
            f"Choice {number} for box {number * 41}",
            type="technical_decision",
            importance=5,
            session="s2",
        )
    recorded = [line.text for line in injector.brief("mail", sessions=["s1"]).lines]
    assert recorded == ["I am allergic to peanuts", entries.get(here).text]


def test_a_hundred_hostile_memories(entries: Entries, injector: Injector) -> None:
    """Untrusted memories never enter, and the block always reads back exactly."""
    assert len(HOSTILE) == 100
    for text in HOSTILE:
        entries.add_draft(Draft(text, "fact", trust="untrusted"))
    for query in (*HOSTILE[::7], "instructions passwords 指令 密码 payments"):
        assert injector.recall(query, budget=ALL).text == ""
    for text in HOSTILE:
        entries.add_draft(Draft(text, "fact", trust="owner"))
    done = injector.recall("instructions passwords evil 指令 密码 payments 公司 tool", budget=ALL)
    assert len(done.lines) > 30
    assert read_back(done.text) == (done.id, list(done.lines))
    assert {line.text for line in done.lines} <= {entry.text for entry in entries.list()}
    everything = [Line(str(number), "fact", text) for number, text in enumerate(HOSTILE)]
    assert read_back(render(everything, "r1", "zh")) == ("r1", everything)


def test_a_broken_memory_does_not_break_the_agent(entries: Entries, injector: Injector) -> None:
    entries._context.store.close()
    done = injector.recall("anything")
    assert done.text == ""
    assert done.degraded


def test_recall_works_on_a_full_disk(entries: Entries, injector: Injector) -> None:
    tea = add(entries, "I drink green tea every morning", importance=4)
    with entries._context.store.database.write() as connection:
        connection.execute("pragma max_page_count = 1")  # the file cannot grow
    recorded = (injector.recall("what tea do I drink?") for _ in range(1000))
    done = next(one for one in recorded if one.degraded)  # the existing pages have some room
    assert ([line.ref for line in done.lines], done.id) == ([f"entry:{tea}"], "")
    assert "not in the ledger" in (done.degraded or "")
    assert injector.brief("tea").text
