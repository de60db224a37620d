"""A statement that was said, logged and summarised enters a prompt once, without markup."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.evals.recalled_blocks import read_back
from memoriter import Memory
from memoriter.recall.inject import Candidate, is_said
from memoriter.recall.render import NOTES, Line
from memoriter.records import Trust

OpenMemory = Callable[..., Memory]
#: Every line that is found may enter, so that only repetitions decide.
ALL = {"retrieval__min_confidence": 0}
Note = Callable[[str, str], Path]


def recalled_lines(memory: Memory, query: str) -> list[str]:
    text = memory.recall(query).text
    return [line.text for line in read_back(text)[1]] if text else []


def candidate(text: str, trust: Trust = "owner") -> Candidate:
    return Candidate(Line("", NOTES, text), "note", "memory/a.md", 0.5, (), trust=trust)


def reasons(memory: Memory, query: str) -> dict[str, str]:
    recall = memory.entries.get_recall(memory.recall(query).id)
    return {one.ref.partition("#")[0]: one.reason for one in recall.considered if not one.entered}


def test_a_note_that_repeats_an_entry_is_left_out(open_memory: OpenMemory, note: Note) -> None:
    note("memory/log.md", "### Decisions\n\n- We decided to keep the backups in Porto.\n")
    note("memory/more.md", "We decided to keep the backups in Porto, until the lease ends in May.\n")
    memory = open_memory(**ALL)
    memory.entries.add("We decided to keep the backups in Porto", "decision")
    query = "We decided to keep the backups in Porto"
    assert sorted(recalled_lines(memory, query)) == [
        "We decided to keep the backups in Porto",
        "We decided to keep the backups in Porto, until the lease ends in May.",
    ]
    assert reasons(memory, query) == {"memory/log.md": "another line says the same"}


def test_a_word_that_reverses_the_meaning_makes_another_statement(
    open_memory: OpenMemory, note: Note
) -> None:
    note("memory/a.md", "The backups do not stay in Porto.\n")
    note("memory/b.md", "备份不放在波尔图。\n")
    memory = open_memory(**ALL)
    memory.entries.add("The backups stay in Porto, and do so for good", "fact")
    memory.entries.add("备份放在波尔图", "fact")
    assert "The backups do not stay in Porto." in recalled_lines(memory, "Do the backups stay in Porto?")
    assert "备份不放在波尔图。" in recalled_lines(memory, "备份放在波尔图吗？")


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("Anna manages Bob.", "Bob manages Anna."),
        ("Deploy on Friday.", "Never deploy on Friday, the on-call person is off"),
        ("Deploy on Friday.", "If Bo agrees, deploy on Friday."),
        ("- meet Bo on 3", "meet Al on 3, meet Bo on 5"),
        ("用茶", "不用茶"),
        ("不要买苹果", "苹果公司的股票要买，不过香蕉不买；果子也不要"),
        ("备份放在波尔图。备份在三点。", "备份放在波尔图。"),
    ],
)
def test_the_same_words_are_not_the_same_statement(line: str, other: str) -> None:
    assert not is_said(candidate(line), [candidate(other)])
    assert not is_said(candidate(other), [candidate(line)]) or line.startswith("备份")


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("Deploy on Friday.", "deploy on friday"),
        ("## 10:32 Deploying\n\n- 10:32 Deploy on Friday!", "Deploy on Friday"),
        ("- Deploy on Friday.\n- Call Bo.", "Call Bo. We met at nine. Deploy on Friday."),
        ("## 10:32 Deploying\n\nIt began with: Deploy on Friday.", "Deploy on Friday."),
        ("- 备份放在波尔图", "租约到五月。备份放在波尔图。"),
        ("备份放在波尔图。", "备份放在波尔图"),
    ],
)
def test_a_statement_that_another_line_contains_is_a_repetition(line: str, other: str) -> None:
    assert is_said(candidate(line), [candidate(other)])


def test_a_candidate_is_not_hidden_by_a_less_trusted_one() -> None:
    mine, agents = candidate("Deploy on Friday."), candidate("Deploy on Friday.", trust="agent")
    assert not is_said(mine, [agents])
    assert is_said(agents, [mine])
    assert is_said(agents, [agents])


def test_an_entry_enters_beside_a_note_that_says_more(open_memory: OpenMemory, note: Note) -> None:
    note("memory/a.md", "The backups stay in Porto until May.\n")
    memory = open_memory(**ALL)
    memory.entries.add("The backups stay in Porto", "fact")
    assert len(recalled_lines(memory, "The backups stay in Porto until May")) == 2


def test_markers_for_programs_are_removed(open_memory: OpenMemory, note: Note) -> None:
    front = '---\ntitle: "The heron"\ndate: "2026-02-08"\ntrust: "agent"\n---\n'
    note("memory/a.md", f"{front}\n# The heron\n\nThe heron stands in the marsh.\n")
    note("memory/b.md", "The heron is back. <!-- memoriter: flush 1 of 461264e0a681f15f8d549299 -->\n")
    note("memory/c.md", front.replace("The heron", "The heron and its marsh, where it stands"))
    lines = recalled_lines(open_memory(**ALL), "heron marsh")
    assert "The heron is back." in lines
    assert any(line.endswith("The heron stands in the marsh.") for line in lines)
    assert not any("---" in line or "memoriter:" in line or "trust" in line for line in lines)
