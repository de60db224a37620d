"""What agents and imports can and cannot do to the memory of the owner."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from lab.evals.recalled_blocks import read_back
from memoriter import Memory
from memoriter.records import Imported
from memoriter.tools.toolbox import Toolbox

TEA = "I prefer green tea over coffee."
KEY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture
def memory(open_memory: Any) -> Memory:
    memory: Memory = open_memory()
    return memory


def said(memory: Memory, text: str) -> list[str]:
    return [done.action for done in memory.capture_messages([{"role": "user", "content": text}], session="s")]


# ---- forgetting ---------------------------------------------------------------------------------------------------


def test_an_agent_hides_an_entry_of_the_owner_and_only_the_owner_erases_it(memory: Memory) -> None:
    entry = memory.entries.add(TEA).entry
    assert entry is not None
    for asked in ({"memoryId": entry.id}, {"memoryId": entry.id}):
        receipt = Toolbox(memory).call("memory_forget", asked)
        assert receipt["forgotten"] == []
        (waits,) = receipt["notCovered"]
        assert waits == (
            "entries of the owner, which only the owner may erase. They are hidden and wait for the owner's decision "
            f"(`memoriter staged`): {entry.id}"
        )
    assert memory.entries.search(TEA).hits == ()
    assert memory.entries.get(entry.id).text == TEA
    memory.entries.approve(entry.id)
    assert [one.text for one in memory.entries.list()] == [TEA]
    assert memory.entries.erase(entry.id).forgotten == (entry.id,)


def test_an_agent_cannot_make_the_memory_refuse_the_words_of_the_owner(memory: Memory) -> None:
    toolbox = Toolbox(memory)
    stored = toolbox.call("memory_store", {"text": TEA})["memory"]["id"]
    assert toolbox.call("memory_forget", {"memoryId": stored})["forgotten"] == [stored]
    assert said(memory, TEA) == ["added"]


def test_what_the_owner_forgot_stays_forgotten(memory: Memory) -> None:
    entry = memory.entries.add(TEA).entry
    assert entry is not None
    memory.entries.erase(entry.id)
    assert said(memory, TEA) == ["refused"]


# ---- labels -------------------------------------------------------------------------------------------------------


def test_the_block_says_whose_words_each_line_is(memory: Memory) -> None:
    memory.entries.add("I brew green tea at 80 degrees.")
    memory.entries.add("The green tea shop opens at nine.", trust="agent")
    memory.entries.import_(json.dumps([{"memory": "Green tea is stored in the blue tin."}]))
    recalled = memory.recall("What do we know about green tea?")
    _, lines = read_back(recalled.text)
    assert sorted((line.text, line.whose) for line in lines) == [
        ("Green tea is stored in the blue tin.", "imported"),
        ("I brew green tea at 80 degrees.", "owner"),
        ("The green tea shop opens at nine.", "agent"),
    ]
    assert 'agent", "The green tea shop' in recalled.text
    assert "unless labelled" in recalled.text


def test_a_block_of_the_owners_words_costs_nothing_more(memory: Memory) -> None:
    memory.entries.add(TEA)
    assert "labelled" not in memory.recall("Which tea do I prefer?").text


# ---- notes that wait ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("approval", ["agent", "all"])
@pytest.mark.parametrize("category", [None, "places"])
def test_a_note_of_an_agent_waits_for_approval(open_memory: Any, approval: str, category: str | None) -> None:
    memory = open_memory(entries__approval=approval, retrieval__min_confidence=0)
    text = "The heron nests behind the old mill."
    saved = Toolbox(memory).call("memory_save", {"content": text, "title": "Heron", "category": category})
    assert saved["note"] == "The note waits for the owner's approval and does not enter a prompt until then."
    memory.sync()
    assert memory.recall("Where does the heron nest?").text == ""
    assert memory.notes.pending() == (saved["path"],)
    memory.notes.approve(saved["path"])
    memory.sync()
    assert memory.notes.pending() == ()
    assert "old mill" in memory.recall("Where does the heron nest?").text


# ---- secrets ------------------------------------------------------------------------------------------------------


def test_the_ledger_keeps_no_secrets_and_no_private_spans(memory: Memory) -> None:
    memory.entries.add("I deploy with the green script every Monday.")
    recalled = memory.recall(f"How do I deploy with the green script? {KEY} <private>PIN 4711</private>")
    assert recalled.id
    recall = memory.entries.get_recall(recalled.id)
    assert recall.query == "How do I deploy with the green script? [redacted github token]"


def test_tags_are_redacted(memory: Memory) -> None:
    entry = memory.entries.add(TEA, tags=(KEY, "tea")).entry
    assert entry is not None
    assert entry.tags == ("[redacted github token]", "tea")


# ---- import -------------------------------------------------------------------------------------------------------


def line(**fields: object) -> str:
    entry = {"id": str(uuid.uuid4()), "text": TEA, "type": "user_preference", "trust": "owner", **fields}
    return json.dumps({"format": "memoriter entries 1"}) + "\n" + json.dumps({"entry": entry, "history": []})


@pytest.mark.requirement("X16")
def test_an_import_of_an_agent_consists_of_statements_of_that_agent(memory: Memory) -> None:
    data = line(
        importance=4.0,
        repetitions=9999,
        session="secret-session",
        source="owner",
        created_at=1.0,
        expires_at=253_402_300_000.0,
        related=["x"],
    )
    assert Toolbox(memory).call("memory", {"action": "import", "data": data})["added"] == 1
    (entry,) = memory.entries.list(states=())
    kept = (entry.trust, entry.repetitions, entry.session, entry.source, entry.related)
    assert kept == ("agent", 1, None, "import", ())
    assert entry.created_at > 1e9
    assert entry.expires_at is not None
    assert entry.expires_at < entry.created_at + 11 * 365 * 86_400


def test_an_agent_imports_neither_doubles_nor_rejections(memory: Memory) -> None:
    memory.entries.add(TEA)
    toolbox = Toolbox(memory)
    assert toolbox.call("memory", {"action": "import", "data": line()})["already"] == 1
    assert (
        toolbox.call("memory", {"action": "import", "data": line(text="No", state="rejected")})["added"] == 0
    )
    assert [(one.text, one.trust, one.state) for one in memory.entries.list(states=())] == [
        (TEA, "owner", "active")
    ]


def test_every_import_is_cleaned(memory: Memory) -> None:
    text = f"The key is {KEY} <private>PIN</private> o\x1bk\x00"
    imported = memory.entries.import_(line(text=text, tags=[KEY]))
    assert (imported.added, imported.already, imported.refused) == (1, 0, 0)
    assert imported.preview == ("The key is [redacted github token]  ok",)
    (entry,) = memory.entries.list()
    assert (entry.text, entry.tags) == (
        "The key is [redacted github token]  ok",
        ("[redacted github token]",),
    )
    with pytest.raises(Exception, match=r"Nothing was imported\. Line 2: .*2000"):
        memory.entries.import_(line(text="x" * 200_000))


def test_an_import_does_not_bring_back_what_was_forgotten(memory: Memory, tmp_path: Path) -> None:
    entry = memory.entries.add(TEA).entry
    assert entry is not None
    exported = "\n".join(memory.entries.export())
    memory.entries.erase(entry.id)
    assert memory.entries.import_(exported) == Imported(0, 0, 1)
    assert memory.entries.list(states=()) == []
