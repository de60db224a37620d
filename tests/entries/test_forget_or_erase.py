"""One meaning of `forget` at every interface: it hides and can be undone. `erase` erases and cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.soak.bytescan import holders
from memoriter.entries import Draft, Entries
from memoriter.errors import EditConflict, WriteError
from memoriter.files.platform import command_line
from memoriter.memory import Memory
from memoriter.records import Entry, Selection
from memoriter.sentences import sentence
from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox

TEXT = "The codename is quokkazebra42"
LOG = f"# Day\n\n- {TEXT}\n- something else\n"


def remember(memory: Memory, text: str = TEXT, **more: Any) -> Entry:
    entry = memory.entries.add(text, "fact", **more).entry
    assert entry is not None
    return entry


def owner(memory: Memory, operation: str, **arguments: Any) -> dict[str, Any]:
    return Toolbox(memory, tools=OPERATIONS).call(operation, arguments)


# ---- forget hides -------------------------------------------------------------------------------------------------


def by_python(memory: Memory, entry: Entry) -> None:
    assert memory.forget(entry.id).forgotten == (entry.id,)


def by_entries(memory: Memory, entry: Entry) -> None:
    assert memory.entries.forget(entry.id).forgotten == (entry.id,)


def by_operation(memory: Memory, entry: Entry) -> None:
    assert owner(memory, "entries.forget", id=entry.id)["forgotten"] == [entry.id]


@pytest.mark.parametrize("forget", [by_python, by_entries, by_operation])
def test_forget_hides_an_entry_until_it_is_undone_and_touches_no_note(
    open_memory: Any, note: Any, forget: Any
) -> None:
    log = note("memory/2026-02-08.md", LOG)
    memory = open_memory()
    entry = remember(memory)
    forget(memory, entry)
    assert (memory.entries.list(), memory.entries.get(entry.id).state) == ([], "rejected")
    assert memory.search(TEXT, source="entries").hits == ()
    assert log.read_text() == LOG
    memory.entries.undo()
    assert memory.entries.get(entry.id).state == "active"


@pytest.mark.parametrize(
    "asked",
    [("memory_forget", "memoryId", {}), ("memory", "id", {"action": "delete"})],
    ids=["forget", "memory"],
)
def test_an_agent_hides_what_agents_stored_and_the_owner_can_undo_it(open_memory: Any, asked: Any) -> None:
    tool, name, more = asked
    memory = open_memory()
    entry = remember(memory, trust="agent")
    assert Toolbox(memory).call(tool, {name: entry.id, **more})["forgotten"] == [entry.id]
    assert memory.entries.get(entry.id).state == "rejected"
    memory.entries.undo()
    assert memory.entries.list()[0].text == TEXT


def test_an_agent_can_erase_what_agents_stored_but_not_the_owners_words(open_memory: Any) -> None:
    memory = open_memory()
    agents, mine = remember(memory, trust="agent"), remember(memory, "I prefer tabs over spaces")
    toolbox = Toolbox(memory)
    assert toolbox.call("memory_forget", {"memoryId": agents.id, "erase": True})["forgotten"] == [agents.id]
    refused = toolbox.call("memory_forget", {"memoryId": mine.id, "erase": True})
    assert (refused["forgotten"], memory.entries.get(mine.id).state) == ([], "staged")
    assert [entry.id for entry in memory.entries.list(states=())] == [mine.id]


def test_a_receipt_of_hiding_names_the_notes_and_sessions_that_still_say_it(
    open_memory: Any, note: Any
) -> None:
    note("memory/2026-02-08.md", LOG)
    note("memory/people.md", f"# People\n\nAnna told me: {TEXT.lower()}, since spring.\n")
    memory = open_memory()
    memory.sync()
    receipt = memory.forget(remember(memory).id)
    assert receipt.note_lines == ()
    assert [path.partition("#")[0] for path in receipt.mentions] == [
        "memory/2026-02-08.md",
        "memory/people.md",
    ]
    assert receipt.covered == (sentence("forget.hidden"),)
    assert sentence("forget.kept", days="30") in receipt.not_covered


def test_a_receipt_for_a_query_names_the_notes_about_it_also_without_a_certain_match(
    open_memory: Any, note: Any
) -> None:
    note("memory/people.md", "# People\n\nQuokkazebra42 is what we call the harbour.\n")
    memory = open_memory()
    memory.sync()
    remember(memory)
    remember(memory, "The quokkazebra42 file is in the safe")
    receipt = memory.forget(Selection(query="quokkazebra42"), dry_run=True)
    assert (receipt.forgotten, len(receipt.candidates)) == ((), 2)
    assert [path.partition("#")[0] for path in receipt.mentions] == ["memory/people.md"]
    assert owner(memory, "entries.forget", query="quokkazebra42", dryRun=True)["mentions"] == [
        *receipt.mentions
    ]


# ---- erase erases -------------------------------------------------------------------------------------------------


def erase_by_python(memory: Memory, entry: Entry, dry_run: bool) -> list[tuple[str, int, str]]:
    return [(at.path, at.line, at.text) for at in memory.erase(entry.id, dry_run=dry_run).note_lines]


def erase_by_operation(memory: Memory, entry: Entry, dry_run: bool) -> list[tuple[str, int, str]]:
    found = owner(memory, "entries.erase", id=entry.id, dryRun=dry_run)["noteLines"]
    return [(at["path"], at["line"], at["text"]) for at in found]


@pytest.mark.parametrize("erase", [erase_by_python, erase_by_operation])
def test_erase_lists_the_lines_of_notes_first_and_then_removes_every_copy(
    open_memory: Any, note: Any, tmp_path: Path, erase: Any
) -> None:
    log = note("memory/2026-02-08.md", LOG)
    memory = open_memory()
    entry = remember(memory)
    lines = [("memory/2026-02-08.md", 3, f"- {TEXT}")]
    assert erase(memory, entry, True) == lines
    assert (log.read_text(), memory.entries.get(entry.id)) == (LOG, entry)
    assert erase(memory, entry, False) == lines
    assert log.read_text() == "# Day\n\n- something else\n"
    with pytest.raises(EditConflict, match="cannot be restored"):
        memory.entries.undo(entry.id)
    assert holders(tmp_path / "state", "quokkazebra42") == []


def test_what_must_be_named_in_exactly_one_way(open_memory: Any) -> None:
    memory = open_memory()
    for what in (Selection(), Selection(query="x", session="y"), Selection(id="x", since=1.0)):
        for ask in (memory.forget, memory.erase, memory.entries.forget, memory.entries.erase):
            with pytest.raises(WriteError, match="one way"):
                ask(what)


def test_erasing_by_a_query_finds_what_is_hidden(open_memory: Any, tmp_path: Path) -> None:
    memory = open_memory()
    entry = remember(memory)
    memory.forget(Selection(query=TEXT))
    assert memory.forget(Selection(query=TEXT)).forgotten == ()
    assert memory.erase(Selection(query="codename quokkazebra42"), dry_run=True).forgotten == (entry.id,)
    assert memory.erase(Selection(query=TEXT)).forgotten == (entry.id,)
    assert holders(tmp_path / "state", "quokkazebra42") == []


def test_erasing_by_words_that_several_hidden_entries_share_offers_them(open_memory: Any) -> None:
    memory = open_memory()
    ids = {remember(memory).id, remember(memory, "The quokkazebra42 file is in the safe").id}
    for id_ in ids:
        memory.forget(id_)
    receipt = memory.erase(Selection(query="quokkazebra42"))
    assert (receipt.forgotten, {hit.entry.id for hit in receipt.candidates}) == ((), ids)


@pytest.mark.parametrize("name", ["replaced-1", ".restoring"])
def test_a_receipt_of_erasing_names_the_copies_that_a_restore_put_aside(open_memory: Any, name: str) -> None:
    memory = open_memory()
    aside = memory.settings.home / name
    entry = remember(memory)
    assert not any("replaced" in text for text in memory.erase(entry.id, dry_run=True).not_covered)
    aside.mkdir()
    expected = sentence("forget.replaced", paths=str(aside), command=command_line(["rm", "-r", str(aside)]))
    assert expected in memory.erase(entry.id, dry_run=True).not_covered
    assert expected in memory.erase(entry.id).not_covered


# ---- what was forgotten stays so ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["forget", "erase"])
@pytest.mark.parametrize("approval", ["none", "agent"])
def test_an_agent_cannot_bring_back_what_the_owner_forgot_and_the_owner_can(
    open_memory: Any, how: str, approval: str
) -> None:
    memory = open_memory(**{"entries.approval": approval})
    getattr(memory, how)(remember(memory).id)
    for tool, asked in (
        ("memory_store", {"text": TEXT}),
        ("memory", {"action": "add", "content": TEXT}),
        ("memory", {"action": "import", "data": json.dumps([{"text": TEXT}])}),
    ):
        refused = Toolbox(memory).call(tool, asked)
        assert refused["note"] in (
            sentence("entry.forgotten_by_owner"),
            sentence("import.refused", n=1),
        )
        assert memory.entries.list() == []
    assert memory.entries.add(TEXT, "fact").action == "added"


@pytest.mark.parametrize("how", ["forget", "erase"])
def test_characters_that_cannot_be_seen_do_not_bring_back_what_the_owner_forgot(
    open_memory: Any, how: str
) -> None:
    memory = open_memory()
    getattr(memory, how)(remember(memory).id)
    for unseen in ("\u200b", "\u00ad", "\u2060", "\u202e", "\ufe0f", "\ufeff", "\U000e0041"):
        text = f"{TEXT[:3]}{unseen}{TEXT[3:]}"
        refused = Toolbox(memory).call("memory_store", {"text": text})
        assert refused["note"] == sentence("entry.forgotten_by_owner")
    assert memory.entries.list() == []


@pytest.mark.parametrize("how", ["forget", "erase"])
def test_an_agent_cannot_bring_it_back_as_a_statement_about_the_user(open_memory: Any, how: str) -> None:
    memory = open_memory()
    said = (
        "I rent a barn in Lund",
        "I have two goats",
        "I am a beekeeper",
        "My boat is called Otter",
        "我住在绍兴",
    )
    for text in said:
        getattr(memory, how)(memory.entries.add(text, "fact").entry.id)
    about = ("The user rents a barn in Lund.", "The user has two goats", "The user is a beekeeper")
    for text in (*about, "The user's boat is called Otter", "用户住在绍兴"):
        assert Toolbox(memory).call("memory_store", {"text": text})["note"] == sentence(
            "entry.forgotten_by_owner"
        )
    assert (
        Toolbox(memory).call("memory_store", {"text": "The user rents a barn in Ystad"})["action"] == "added"
    )


@pytest.mark.parametrize("how", ["forget", "erase"])
def test_contractions_do_not_bring_back_what_the_owner_forgot(open_memory: Any, how: str) -> None:
    memory = open_memory()
    for text in ("I'm a beekeeper", "I do not own a car", "We have two goats"):
        getattr(memory, how)(memory.entries.add(text, "fact").entry.id)
    refused = sentence("entry.forgotten_by_owner")
    for text in (
        *("I am a beekeeper", "The user is a beekeeper", "I’m a beekeeper."),
        *("I don't own a car", "We've two goats"),
    ):
        assert Toolbox(memory).call("memory_store", {"text": text})["note"] == refused
        line = json.dumps([{"text": text}])
        imported = Toolbox(memory).call("memory", {"action": "import", "data": line})
        assert imported["note"] == sentence("import.refused", n=1)
    assert memory.entries.list() == []


@pytest.mark.parametrize("how", ["forget", "erase"])
def test_an_agent_cannot_write_what_the_owner_forgot_into_a_note(open_memory: Any, how: str) -> None:
    memory = open_memory()
    getattr(memory, how)(remember(memory).id)
    for content in (TEXT, f"Notes of today.\n\n- {TEXT}\n- More."):
        saved = Toolbox(memory).call("memory_save", {"content": content})
        assert (saved["saved"], saved["error"]) == (
            False,
            f"Not saved: {sentence('entry.forgotten_by_owner')}.",
        )
    assert Toolbox(memory).call("memory_save", {"content": "Something else."})["saved"] is True
    memory.sync()
    assert memory.recall(TEXT).text == ""


def test_what_an_agent_hid_the_agent_can_store_and_the_owner_can_say_again(
    entries: Entries, clock: Any
) -> None:
    stored = entries.add(TEXT, "fact", trust="agent").entry
    assert stored is not None
    entries.forget(stored.id, actor="agent")
    for _ in range(8):  # the cleanup erases it after the retention time
        clock.at += 5 * 86_400
        entries.cleanup()
    assert entries.list(states=()) == []
    assert entries.add_draft(Draft(TEXT, "fact", on_purpose=False)).action == "added"
    entries.erase(entries.list()[0].id, actor="agent")


def test_undo_steps_past_an_erased_entry(entries: Entries) -> None:
    first = entries.add("I prefer tabs", "fact").entry
    erased = entries.add("The heron stands in the water", "fact").entry
    assert first is not None
    assert erased is not None
    entries.update(first.id, importance=5)
    entries.update(erased.id, importance=5)
    entries.erase(erased.id)
    events, now = entries.undo()
    assert ([event.entry_id for event in events], [one.importance for one in now]) == ([first.id], [3.0])
    with pytest.raises(EditConflict, match="cannot be restored"):
        entries.undo(erased.id)


def test_undo_steps_past_an_erased_entry_that_had_replaced_another(entries: Entries) -> None:
    entries.add("I prefer green tea", "fact")
    old = entries.add("We deploy with Ansible", "fact").entry
    assert old is not None
    new = entries.supersede(old.id, "We deploy with Nomad").entry
    assert new is not None
    entries.erase(new.id)
    assert entries.get(old.id).state == "active"
    events, _ = entries.undo()
    assert [(event.kind, event.entry_id) for event in events] == [("add", old.id)]
    assert [entry.text for entry in entries.list()] == ["I prefer green tea"]
