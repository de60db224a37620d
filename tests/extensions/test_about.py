"""Everything about one thing: found without a model, corrected and forgotten in all its places."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoriter import Memory
from memoriter.entries.collection import context_of
from memoriter.errors import EditConflict
from memoriter.extensions.about.changing import Place, change, undo
from memoriter.extensions.about.gathering import About, list_things
from memoriter.extensions.about.names import aliases_in, find_names
from memoriter.tools.table import OPERATIONS, call
from memoriter.tools.tool import ACCESS
from memoriter.tools.toolbox import Toolbox


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "memory" / "cat.md").write_text(
        "# Cat\n\n- Doubao eats at seven\n- The vet is in Porto\n", "utf-8"
    )
    sessions = home / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    turns = [("user", "Doubao sleeps on the desk"), ("assistant", "Good to know.")]
    lines = [{"type": "message", "message": {"role": role, "content": text}} for role, text in turns]
    (sessions / "talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with Memory.open(workspace, home=home, overrides={"embedding.provider": "none"}) as opened:
        yield opened


def gathered(memory: Memory, name: str) -> About:
    return memory.about(name)  # type: ignore[attr-defined, no-any-return]


def test_a_thing_is_gathered_from_entries_notes_and_conversations(memory: Memory) -> None:
    memory.remember("Doubao (豆包) is a grey cat")
    memory.remember("豆包不吃鸡肉")
    memory.remember("The office is in Lisbon")
    found = gathered(memory, "doubao")
    assert found.aliases == ("豆包",)
    assert [entry.text for entry in found.entries] == ["豆包不吃鸡肉", "Doubao (豆包) is a grey cat"]
    assert [(line.path, line.line, line.text) for line in found.notes] == [
        ("memory/cat.md", 3, "- Doubao eats at seven")
    ]
    assert [(line.path, line.line, line.role, line.text) for line in found.conversations] == [
        ("sessions/talk.jsonl", 1, "user", "Doubao sleeps on the desk")
    ]
    assert [event.kind for event in found.changes] == ["add", "add"]
    assert gathered(memory, "nothing like it").places == 0


def test_names_recur_in_both_languages() -> None:
    texts = [
        "Priya leads Project Atlas",
        "Ask Priya about the budget of Project Atlas",
        "The ferry is late. Nothing helps",
        "豆包不吃鸡肉",
        "带豆包去看医生",
        "医生说豆包很健康",
        "Works with the team",
    ]
    assert dict(find_names(texts)) == {"Priya": 2, "Project Atlas": 2, "豆包": 3}
    joined = ["“red house” is also called “Rotes Haus”.", "“豆包”又叫“Doubao”。"]
    assert list(aliases_in(joined)) == [("red house", "Rotes Haus"), ("豆包", "Doubao")]
    assert list(aliases_in(["Doubao (豆包) is a cat", "Bob (on call)", "Ann is also called Annie"])) == [
        ("Doubao", "豆包"),
        ("Ann", "Annie"),
    ]


def test_a_chinese_name_that_begins_every_sentence_is_a_thing() -> None:
    assert dict(find_names(["小满对花生过敏", "小满的生日是五月", "小满想学法语"])) == {"小满": 3}
    assert dict(find_names(["修好了", "修好了", "修好了"])) == {}  # the same words, and nothing beside them


def test_neither_a_word_that_is_a_whole_sentence_nor_a_share_is_a_thing() -> None:
    said = ["Noted. Shall we?", "Noted.", "Thanks! It is Priya", "Thanks! Priya called", "Sure.", "Sure."]
    assert dict(find_names([*said, "占百分之五", "百分之十以下", "约百分之三十"])) == {"Priya": 2}


def test_things_are_listed_by_frequency_with_their_other_names(memory: Memory) -> None:
    memory.remember("Doubao (豆包) is a grey cat", tags=("pets",))
    memory.remember("We asked Priya about Doubao", tags=("pets",))
    things = {thing.name: (thing.kind, thing.count, thing.aliases) for thing in list_things(memory)}
    assert things["Doubao"] == ("name", 4, ["豆包"])
    assert things["pets"] == ("tag", 2, [])


def test_only_the_owner_sees_a_recurring_secret_of_notes_among_the_things(memory: Memory) -> None:
    note = memory.settings.workspace / "memory" / "keys.md"
    note.write_text("Router password: Kestrelmoon99\n\nDoor password: Kestrelmoon99\n", "utf-8")
    seen = {
        access: [
            thing["name"]
            for thing in Toolbox(memory, tools=OPERATIONS, access=access).call("about.list")["things"]
        ]
        for access in ACCESS
    }
    assert {access: "Kestrelmoon99" in names for access, names in seen.items()} == {
        "read": False,
        "write": False,
        "admin": True,
    }


def test_a_thing_is_corrected_everywhere_and_the_change_is_undone_as_a_whole(memory: Memory) -> None:
    grey = memory.remember("Doubao is a grey cat").entry
    old = memory.remember("Doubao hates rain").entry
    assert grey
    assert old
    note = memory.settings.workspace / "memory" / "cat.md"
    before = note.read_text("utf-8")
    done = change(
        memory,
        [
            Place(ref=grey.id, text=grey.text, new="Dudu is a grey cat"),
            Place(ref=old.id, text=old.text),
            Place(ref="memory/cat.md", text="- Doubao eats at seven", new="- Dudu eats at seven", line=3),
            Place(
                ref="sessions/talk.jsonl",
                text="Doubao sleeps on the desk",
                new="Dudu sleeps on the desk",
                line=1,
            ),
        ],
    )
    assert gathered(memory, "Doubao").places == 0
    assert gathered(memory, "Dudu").places == 3
    undo(memory, done.entry, done.seq, done.files)
    assert note.read_text("utf-8") == before
    found = gathered(memory, "Doubao")
    assert {entry.text for entry in found.entries} == {"Doubao is a grey cat", "Doubao hates rain"}
    assert found.places == 4


def test_nothing_is_changed_if_one_place_says_something_else(memory: Memory) -> None:
    grey = memory.remember("Doubao is a grey cat").entry
    assert grey
    places = [
        Place(ref=grey.id, text=grey.text),
        Place(ref="memory/cat.md", text="- Doubao eats at six", line=3),
    ]
    with pytest.raises(EditConflict, match="says something else by now"):
        change(memory, places)
    assert [entry.text for entry in gathered(memory, "Doubao").entries] == ["Doubao is a grey cat"]


def test_forgetting_everywhere_returns_a_receipt_with_what_remains(memory: Memory) -> None:
    grey = memory.remember("Doubao is a grey cat").entry
    assert grey
    receipt = call(
        memory,
        "about.change",
        {
            "name": "Doubao",
            "places": [
                {"ref": grey.id, "text": grey.text},
                {"ref": "memory/cat.md", "line": 3, "text": "- Doubao eats at seven"},
            ],
        },
    )
    assert (receipt["forgotten"], receipt["remains"]) == (2, ["sessions/talk.jsonl#L1"])
    text = (memory.settings.workspace / "memory" / "cat.md").read_text("utf-8")
    assert text == "# Cat\n\n- The vet is in Porto\n"


def test_a_sentence_leads_to_the_recall_that_it_came_from(memory: Memory) -> None:
    memory.remember("Refunds need approval above 200 euros")
    memory.remember("The ferry leaves at nine")
    call(memory, "recall", {"query": "refunds approval 200 euros"}, session="billing")
    call(memory, "recall", {"query": "ferry leaves nine"}, session="harbour")
    sources = call(memory, "recalls.why", {"sentence": "You need an approval, as it is above 200 euros."})[
        "sources"
    ]
    assert sources[0]["line"]["text"] == "Refunds need approval above 200 euros"
    assert (sources[0]["recall"]["session"], sources[0]["entry"]["source"]) == ("billing", None)
    assert call(memory, "recalls.why", {"sentence": "zebra"}) == {"sources": [], "disabled": False}


def test_a_score_does_not_tell_whether_a_guessed_password_is_right(memory: Memory) -> None:
    entry = memory.remember("The router is in the attic").entry
    assert entry is not None
    call(memory, "recall", {"query": "router attic"})
    recall = memory.entries.get_recall()
    old = "The router in the attic has the password: tr0ub4dor9x"  # of an earlier version with fewer rules
    line = replace(recall.considered[0], text=old)
    context_of(memory.entries).add_recall(replace(recall, id="0" * 32, considered=(line,)), [])
    asked = ("router attic password: tr0ub4dor9x", "router attic password: tr0ub4dor8y")
    right, wrong = (call(memory, "recalls.why", {"sentence": one})["sources"] for one in asked)
    assert [one["score"] for one in right] == [one["score"] for one in wrong]
