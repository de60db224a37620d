"""The changes of entries by time, and the weekly letter."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from memoriter import Memory
from memoriter.errors import EditConflict, NotFound
from memoriter.extensions.letter.deleted import clean_up, list_deleted, remove_note, restore_note
from memoriter.extensions.letter.writing import as_markdown, list_changes, write_letter
from memoriter.tools.table import OPERATIONS, call
from memoriter.tools.tool import Access
from memoriter.tools.toolbox import Toolbox


@pytest.fixture
def memory(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    (tmp_path / "workspace").mkdir()
    overrides = {"embedding.provider": "none"} | getattr(request, "param", {})
    with Memory.open(tmp_path / "workspace", home=tmp_path / "home", overrides=overrides) as opened:
        yield opened


def as_caller(access: Access, memory: Memory, operation: str, arguments: dict[str, object]) -> dict[str, Any]:
    """Call an operation with this access."""
    return Toolbox(memory, tools=OPERATIONS, access=access).call(operation, arguments)


def test_an_empty_memory_has_a_letter_and_no_changes(memory: Memory) -> None:
    assert list_changes(memory) == []
    assert "## Learned (0)\n\nNothing." in as_markdown(write_letter(memory))


@pytest.mark.parametrize("memory", [{"entries.approval": "agent"}], indirect=True)
def test_to_forget_a_memory_is_listed_as_that_and_not_as_a_rejection(memory: Memory) -> None:
    tea = memory.remember("Tea at four").entry
    coffee = memory.remember("Coffee at nine", trust="agent").entry
    assert tea
    assert coffee
    assert coffee.state == "staged"
    memory.entries.forget(tea.id)
    memory.entries.reject(coffee.id)

    def named(kind: str) -> list[str]:
        found = call(memory, "changes.list", {"kind": kind})["changes"]
        return [event["before"] for one in found for event in one["events"]]

    assert (named("forget"), named("reject")) == (["Tea at four"], ["Coffee at nine"])
    history = call(memory, "entries.get", {"id": tea.id})["history"]
    assert [event["kind"] for event in history] == ["add", "forget"]


def test_changes_are_listed_newest_first_with_before_and_after_and_who(memory: Memory) -> None:
    tea = memory.remember("Tea at four").entry
    assert tea
    memory.entries.update(tea.id, text="Tea at five")
    memory.remember("The office has a green door", trust="agent")
    listed = call(memory, "changes.list", {})["changes"]
    assert [
        [(event["kind"], event["by"], event.get("before"), event.get("after")) for event in one["events"]]
        for one in listed
    ] == [
        [("add", "agent", None, "The office has a green door")],
        [("update", "owner", "Tea at four", "Tea at five")],
        [("add", "owner", None, "Tea at four")],
    ]
    assert [one["newest"] for one in listed] == [True, True, False]
    assert [
        len(call(memory, "changes.list", {name: value})["changes"])
        for name, value in (("by", "agent"), ("kind", "update"), ("until", 1), ("limit", 2))
    ] == [1, 1, 0, 2]
    following = call(memory, "changes.list", {"limit": 2})["next"]
    assert len(call(memory, "changes.list", {"limit": 2, "before": following})["changes"]) == 1


def test_the_letter_tells_what_was_learned_changed_and_retired(memory: Memory) -> None:
    tea = memory.remember("Tea at four").entry
    gone = memory.remember("The gate squeaks").entry
    assert tea
    assert gone
    memory.forget(gone.id)
    letter = write_letter(memory)
    assert [entry.text for entry in letter.learned] == ["Tea at four"]
    assert [entry.text for entry in letter.retired] == ["The gate squeaks"]
    written = as_markdown(letter)
    assert "## Learned (1)\n\n- Tea at four\n" in written
    assert "## Retired (1)\n\n- The gate squeaks\n" in written


def test_the_letter_of_a_busy_week_lists_some_and_counts_all(memory: Memory) -> None:
    memory.entries.import_(json.dumps([f"House {number} has a green door" for number in range(30)]))
    letter = call(memory, "letter.get", {})
    assert (len(letter["learned"]), letter["learnedTotal"]) == (20, 30)
    assert "## Learned (30)" in letter["markdown"]
    assert "- and 10 more" in letter["markdown"]


def test_changes_that_an_import_brings_stand_on_their_own_day(memory: Memory) -> None:
    memory.remember("Tea at four")
    now = time.time()
    for number in (9, 3, 6):
        at = now - number * 86_400
        entry = {"id": str(uuid.uuid4()), "text": f"House {number}", "created_at": at, "updated_at": at}
        first = {"seq": 1, "change": 1, "at": at, "kind": "add", "by": "owner", "note": ""}
        line = {"entry": entry, "history": [{**first, "entry_id": entry["id"], "after": entry}]}
        memory.entries.import_(json.dumps(line))
    pages, before = list[float](), None
    while True:
        page = call(memory, "changes.list", {"limit": 2, **({"before": before} if before else {})})
        pages += [change["at"] for change in page["changes"]]
        before = page["next"]
        if not before:
            break
    assert len(pages) == len(set(pages)) == 4
    assert pages == sorted(pages, reverse=True)


def test_a_deleted_note_is_listed_with_the_changes_and_restored(memory: Memory) -> None:
    note = memory.notes.put("memory/people/ana.md", "# Ana\n\nLikes rain.\r\n", version=None)
    removed = as_caller("admin", memory, "notes.remove", {"path": note.path, "version": note.version})
    assert removed["path"] == note.path
    with pytest.raises(NotFound):
        memory.notes.text(note.path)
    (listed,) = as_caller("admin", memory, "changes.list", {})["deleted"]
    assert (listed["id"], listed["path"]) == (removed["id"], note.path)
    assert as_caller("read", memory, "changes.list", {})["deleted"] == []
    restored = as_caller("admin", memory, "notes.restore", {"id": removed["id"]})
    assert (restored["text"], restored["version"]) == (note.text, note.version)
    assert as_caller("admin", memory, "changes.list", {})["deleted"] == []
    assert not list((memory.settings.agent_folder / "deleted").iterdir())


def test_a_note_that_changed_meanwhile_is_not_deleted_and_a_taken_place_is_not_overwritten(
    memory: Memory,
) -> None:
    note = memory.notes.put("memory/ana.md", "# Ana\n", version=None)
    assert note.version
    newer = memory.notes.put("memory/ana.md", "# Ana\n\nMoved.\n", version=note.version)
    with pytest.raises(EditConflict):
        remove_note(memory, "memory/ana.md", version=note.version)
    assert list_deleted(memory) == []
    assert newer.version
    removed = remove_note(memory, "memory/ana.md", version=newer.version)
    memory.notes.put("memory/ana.md", "# Another\n", version=None)
    with pytest.raises(EditConflict):
        restore_note(memory, removed.id)
    assert memory.notes.text("memory/ana.md").text == "# Another\n"


def test_an_erasure_deletes_the_deleted_notes_that_say_it(memory: Memory) -> None:
    entry = memory.remember("The safe is behind the mirror").entry
    assert entry
    for name, text in (("house", "the safe is behind the mirror."), ("garden", "The gate squeaks.")):
        note = memory.notes.put(f"memory/{name}.md", f"# {name}\n\n- {text}\n", version=None)
        assert note.version
        remove_note(memory, note.path, version=note.version)
    memory.erase(entry.id)
    assert [note.path for note in list_deleted(memory)] == ["memory/garden.md"]
    assert not any(
        b"behind the mirror" in file.read_bytes()
        for file in memory.settings.home.rglob("*")
        if file.is_file()
    )


def a_session(memory: Memory, name: str, *said: str) -> Path:
    """Write a transcript of the agent, as programs write it that escape every other alphabet."""
    file = memory.settings.agent_folder / "sessions" / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"type": "message", "message": {"role": "user", "content": text}} for text in said]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return file


def test_a_deleted_session_is_listed_with_the_changes_and_restored(memory: Memory) -> None:
    file = a_session(memory, "家/cat", "豆包睡在窗台上", "Doubao eats at seven")
    path, before = "sessions/家/cat.jsonl", file.read_bytes()
    memory.sync()
    memory.recall("when does Doubao eat?", session="cat")
    trial = as_caller("admin", memory, "notes.remove", {"path": path, "dryRun": True})
    assert (trial["id"], trial["lines"], trial["recalls"], file.exists()) == ("", 2, 1, True)
    removed = as_caller("admin", memory, "notes.remove", {"path": path})
    assert (removed["path"], removed["session"], file.exists()) == (path, "cat", False)
    assert memory.search("Doubao eats at seven").hits == ()
    (listed,) = as_caller("admin", memory, "changes.list", {})["deleted"]
    assert (listed["id"], listed["path"]) == (removed["id"], path)
    as_caller("admin", memory, "notes.restore", {"id": removed["id"]})
    assert file.read_bytes() == before
    assert as_caller("admin", memory, "changes.list", {})["deleted"] == []
    assert [hit.path for hit in memory.search("Doubao eats at seven")] == [path]


def test_a_session_that_began_again_is_not_overwritten(memory: Memory) -> None:
    removed = remove_note(memory, f"sessions/{a_session(memory, 'cat', 'Tea at four').name}")
    newer = a_session(memory, "cat", "Tea at five").read_bytes()
    with pytest.raises(EditConflict):
        restore_note(memory, removed.id)
    assert (memory.settings.agent_folder / "sessions/cat.jsonl").read_bytes() == newer
    assert len(list_deleted(memory)) == 1


def test_a_session_of_another_program_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "workspace").mkdir()
    file = tmp_path / "program/chat.jsonl"
    file.write_text('{"type": "user", "message": {"role": "user", "content": "Tea at four"}}\n', "utf-8")
    overrides = {"embedding.provider": "none", "sessions.paths": [str(tmp_path / "program")]}
    with Memory.open(tmp_path / "workspace", home=tmp_path / "home", overrides=overrides) as memory:
        for path in ("sessions/chat.jsonl", "sessions/none.jsonl", "sessions/../program/chat.jsonl"):
            with pytest.raises(NotFound) as error:
                remove_note(memory, path)
            assert ("memoriter only reads" in str(error.value)) == (path == "sessions/chat.jsonl")
    assert file.exists()


def test_an_erasure_deletes_the_deleted_sessions_that_say_it(memory: Memory) -> None:
    entry = memory.remember("保险柜在“镜子”后面").entry
    assert entry
    for name, text in (("house", '"对了，\n保险柜在“镜子”后面。"'), ("garden", "The gate squeaks.")):
        remove_note(memory, f"sessions/{a_session(memory, name, text).name}")
    memory.erase(entry.id)
    assert [note.path for note in list_deleted(memory)] == ["sessions/garden.jsonl"]


def test_a_deleted_note_is_kept_for_the_retention_time(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = memory.notes.put("memory/ana.md", "# Ana\n", version=None)
    assert note.version
    remove_note(memory, note.path, version=note.version)
    later = time.time() + (memory.settings.cleanup.retention_days + 1) * 86_400
    monkeypatch.setattr("memoriter.extensions.letter.deleted.time.time", lambda: later)
    assert list_deleted(memory) == []
    clean_up(memory)
    assert not list((memory.settings.agent_folder / "deleted").iterdir())
