"""Forgetting reaches what lists do not show: undone statements, the ledger, temporary files, words of deleted notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.soak.bytescan import holders
from memoriter import Memory
from memoriter.errors import EditConflict
from memoriter.records import Selection
from memoriter.testing import HashEmbedder

MARK = "quokkazebra42"


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    (tmp_path / "workspace/memory").mkdir(parents=True)
    overrides = {"search.rerank": False}
    opened = Memory.open(
        tmp_path / "workspace", home=tmp_path / "home", embedder=HashEmbedder(), overrides=overrides
    )
    yield opened
    opened.close()


def left(tmp_path: Path) -> list[str]:
    return [*holders(tmp_path / "home", MARK), *holders(tmp_path / "workspace", MARK)]


def test_an_undone_statement_is_listed_and_forgotten_by_time(memory: Memory, tmp_path: Path) -> None:
    entry = memory.remember(f"The codename is {MARK}").entry
    memory.entries.undo()
    assert [one.id for one in memory.entries.undone()] == [entry.id]
    assert (memory.entries.list(states=()), left(tmp_path) != []) == ([], True)
    assert memory.erase(Selection(since=0)).forgotten == (entry.id,)
    assert (memory.entries.undone(), left(tmp_path)) == ([], [])


def test_an_undone_statement_is_forgotten_by_its_words(memory: Memory, tmp_path: Path) -> None:
    memory.remember("The heron stands in the water")
    memory.remember(f"The codename is {MARK}")
    memory.entries.undo()
    assert len(memory.erase(Selection(query=f"the codename is {MARK}")).forgotten) == 1
    assert left(tmp_path) == []


def test_forgetting_an_entry_covers_an_undone_statement_that_had_replaced_it(
    memory: Memory, tmp_path: Path
) -> None:
    old = memory.remember("The codename is heron").entry
    memory.entries.supersede(old.id, f"The codename is {MARK}")
    memory.entries.undo()
    assert len(memory.erase(old.id).forgotten) == 2
    assert left(tmp_path) == []


def test_forgetting_the_newer_of_two_puts_the_older_in_force_again(memory: Memory, tmp_path: Path) -> None:
    old = memory.remember("The kettle is in the blue cupboard", "fact").entry
    new = memory.entries.supersede(old.id, f"The kettle is on the {MARK}").entry
    memory.erase(new.id)
    assert [(one.id, one.superseded_by) for one in memory.entries.list()] == [(old.id, None)]
    assert [hit.entry.id for hit in memory.entries.search("blue cupboard").hits] == [old.id]
    assert memory.entries.history(old.id)[-1].kind == "restore"
    assert [event.kind for event in memory.entries.undo(old.id)[0]] == ["add"]
    with pytest.raises(EditConflict, match="cannot be restored"):
        memory.entries.undo(new.id)
    assert left(tmp_path) == []


def test_the_ledger_keeps_no_distinctive_word_of_a_forgotten_entry(memory: Memory, tmp_path: Path) -> None:
    log = tmp_path / "workspace/memory/2026-02-08.md"
    log.write_text(f"- The codename is {MARK}\n")
    memory.remember("The heron stands in the water")
    memory.recall(f"which {MARK} do we use?", session="one")  # before the entry exists
    memory.recall("where does the heron stand?", session="three")
    entry = memory.remember(f"The codename is {MARK}").entry
    memory.recall(f"what is the codename {MARK.upper()}?", session="two")
    assert left(tmp_path) != []
    receipt = memory.erase(entry.id)
    assert left(tmp_path) == []
    assert [at.path for at in receipt.note_lines] == ["memory/2026-02-08.md"]
    queries = {one.session: one.query for one in memory.entries.recalls().recalls}
    assert queries == {"one": "", "two": "", "three": "where does the heron stand?"}


def test_forgetting_a_session_clears_its_name_in_the_ledger(memory: Memory) -> None:
    memory.remember("The heron stands in the water", session="secret-session")
    memory.recall("where does the heron stand?", session="secret-session")
    memory.erase(Selection(session="secret-session"))
    assert [(one.session, one.query) for one in memory.entries.recalls().recalls] == [(None, "")]


def test_temporary_files_of_killed_writers_are_deleted(memory: Memory, tmp_path: Path) -> None:
    notes = tmp_path / "workspace/memory"
    (notes / "people").mkdir()
    for folder in (notes, notes / "people"):
        (folder / ".2026-02-08.md.4711-3.tmp").write_text(f"- The codename is {MARK}\n")
    (notes / "mine.tmp").write_text("not a file of memoriter")
    entry = memory.remember(f"The codename is {MARK}").entry
    memory.erase(entry.id)
    assert left(tmp_path) == []
    assert (notes / "mine.tmp").exists()


def test_words_of_deleted_notes_leave_the_index(memory: Memory, tmp_path: Path) -> None:
    notes = tmp_path / "workspace/memory"
    for number in range(5):
        (notes / f"{number}.md").write_text(f"Note {number} about herons.\n")
    (notes / "secret.md").write_text(f"The codename is {MARK}.\n")
    memory.sync()
    (notes / "secret.md").unlink()
    memory.sync(verify=True)
    assert left(tmp_path) == []
