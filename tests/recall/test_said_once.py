"""What was said, logged and summarised stands in many places; the prompt has room for it once, and for words only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from recollect import Memory
from recollect.recall.render import read_back

OpenMemory = Callable[..., Memory]
Note = Callable[[str, str], Path]


def told(memory: Memory, query: str) -> list[str]:
    text = memory.recall(query).text
    return [line.text for line in read_back(text)[1]] if text else []


def reasons(memory: Memory, query: str) -> dict[str, str]:
    recall = memory.injector.why(memory.recall(query).id)
    return {one.ref.partition("#")[0]: one.reason for one in recall.considered if not one.entered}


def test_a_note_that_says_what_an_entry_says_is_left_out(open_memory: OpenMemory, note: Note) -> None:
    note("memory/log.md", "### Decisions\n\n- We decided to keep the backups in Porto.\n")
    note("memory/more.md", "We decided to keep the backups in Porto, until the lease ends in May.\n")
    memory = open_memory()
    memory.keeper.add("We decided to keep the backups in Porto", "decision")
    query = "We decided to keep the backups in Porto"
    assert sorted(told(memory, query)) == [
        "We decided to keep the backups in Porto",
        "We decided to keep the backups in Porto, until the lease ends in May.",
    ]
    assert reasons(memory, query) == {"memory/log.md": "another line says just this"}


def test_a_small_word_that_turns_a_statement_round_is_another_statement(
    open_memory: OpenMemory, note: Note
) -> None:
    note("memory/a.md", "The backups do not stay in Porto.\n")
    note("memory/b.md", "备份不放在波尔图。\n")
    memory = open_memory()
    memory.keeper.add("The backups stay in Porto, and do so for good", "fact")
    memory.keeper.add("备份放在波尔图", "fact")
    assert "The backups do not stay in Porto." in told(memory, "Do the backups stay in Porto?")
    assert "备份不放在波尔图。" in told(memory, "备份放在波尔图吗？")


def test_an_entry_is_told_beside_a_note_that_says_more(open_memory: OpenMemory, note: Note) -> None:
    note("memory/a.md", "The backups stay in Porto until May.\n")
    memory = open_memory()
    memory.keeper.add("The backups stay in Porto", "fact")
    assert len(told(memory, "The backups stay in Porto until May")) == 2


def test_marks_for_programs_are_not_told(open_memory: OpenMemory, note: Note) -> None:
    front = '---\ntitle: "The heron"\ndate: "2026-02-08"\ntrust: "agent"\n---\n'
    note("memory/a.md", f"{front}\n# The heron\n\nThe heron stands in the marsh.\n")
    note("memory/b.md", "The heron is back. <!-- recollect: flush 1 of 461264e0a681f15f8d549299 -->\n")
    note("memory/c.md", front.replace("The heron", "The heron and its marsh, where it stands"))
    lines = told(open_memory(), "heron marsh")
    assert "The heron is back." in lines
    assert any(line.endswith("The heron stands in the marsh.") for line in lines)
    assert not any("---" in line or "recollect:" in line or "trust" in line for line in lines)
