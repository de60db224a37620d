"""Staged entries: stored but not found, approved, rejected, undone and exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.soak.bytescan import holders
from memoriter.entries import Draft, Entries, EntryOptions
from memoriter.errors import NotFound, WriteError
from memoriter.records import Entry, Selection, Turn
from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox

DAY = 86_400.0


@pytest.fixture
def careful(open_: Any) -> Entries:
    """Entries whose owner approves what agents store."""
    return open_(options=EntryOptions(approval="agent"))  # type: ignore[no-any-return]


def stored(entries: Entries, text: str, **more: Any) -> Entry:
    done = entries.add_draft(Draft(text, "fact", trust="agent", **more), actor="agent")
    assert done.action == "staged", done
    assert done.entry is not None
    return done.entry


def staged(entries: Entries) -> list[str]:
    return [entry.text for entry in entries.page(states=("staged",)).entries]


def test_entries_of_an_agent_are_staged_and_not_found(careful: Entries) -> None:
    entry = stored(careful, "The deploy key is kept in the vault 密钥")
    assert (entry.state, staged(careful)) == ("staged", ["The deploy key is kept in the vault 密钥"])
    assert careful.search("deploy key vault 密钥", threshold=0).hits == ()
    assert careful.list() == []
    assert careful.stats().total == 0
    assert [event.kind for event in careful.history(entry.id)] == ["stage"]
    assert careful.add_draft(Draft("I drink tea", "fact")).action == "added"


@pytest.mark.parametrize(
    ("approval", "trust", "on_purpose", "action"),
    [
        ("none", "agent", True, "added"),
        ("none", "untrusted", False, "added"),
        ("agent", "owner", False, "added"),
        ("agent", "agent", True, "staged"),
        ("agent", "untrusted", True, "staged"),
        ("all", "owner", True, "added"),
        ("all", "owner", False, "staged"),
        ("all", "agent", True, "staged"),
    ],
)
def test_which_statements_need_approval(
    open_: Any, approval: Any, trust: Any, on_purpose: bool, action: str
) -> None:
    entries = open_(options=EntryOptions(approval=approval))
    done = entries.add_draft(Draft("Herons nest in the marsh", "fact", trust=trust, on_purpose=on_purpose))
    assert done.action == action


def test_captures_are_staged_if_everything_needs_approval(open_memory: Any) -> None:
    memory = open_memory(entries__approval="all")
    turn = Turn("user", "I prefer dark mode in every editor.", 1)
    (done,) = memory.capture([turn], session="s1")
    assert done.action == "staged"
    assert memory.search("dark mode editor", source="entries").hits == ()
    assert memory.recall("dark mode editor").text == ""
    (approved,) = memory.entries.approve([done.entry.id])
    assert approved.action == "added"
    assert "dark mode" in memory.recall("dark mode editor").text


@pytest.mark.parametrize("approval", ["none", "agent"])
def test_captures_for_other_callers_have_the_trust_of_an_agent(open_memory: Any, approval: str) -> None:
    memory = open_memory(entries__approval=approval)

    def captured(access: Any, tea: str) -> tuple[str, str]:
        said = {"messages": [{"role": "user", "content": f"I prefer {tea} tea."}], "session": access}
        (done,) = Toolbox(memory, tools=OPERATIONS, access=access).call("capture", said)["remembered"]
        return done["action"], done["memory"]["trust"]

    assert captured("admin", "green") == ("added", "owner")
    assert captured("write", "cheap") == ("added" if approval == "none" else "staged", "agent")


def test_the_same_statement_is_staged_once(careful: Entries) -> None:
    first = stored(careful, "The deploy key is in the vault")
    again = stored(careful, "the deploy key is in the vault!")
    assert (again.id, again.repetitions) == (first.id, 2)
    careful.approve([first.id])
    known = careful.add_draft(Draft("The deploy key is in the vault", trust="agent"))
    assert (known.action, careful.get(first.id).repetitions) == ("repeated", 2)


def test_approving_activates_an_entry_and_can_be_undone(careful: Entries, clock: Any) -> None:
    entry = stored(careful, "The deploy key is in the vault", importance=4)
    clock.at += 10 * DAY
    (done,) = careful.approve([entry.id[:8]])
    assert (done.action, done.entry.id, done.entry.state) == ("added", entry.id, "active")
    assert done.entry.trust == "agent"
    assert done.entry.expires_at == done.entry.updated_at + 365 * DAY
    assert [hit.entry.id for hit in careful.search("deploy key vault").hits] == [entry.id]
    careful.undo(entry.id)
    assert careful.get(entry.id).state == "staged"
    assert careful.search("deploy key vault", threshold=0).hits == ()
    careful.redo(entry.id)
    assert careful.get(entry.id).state == "active"


def test_approving_a_statement_known_meanwhile_counts_it(careful: Entries) -> None:
    entry = stored(careful, "The deploy key is in the vault")
    own = careful.add_draft(Draft("The deploy key is in the vault!", "fact", trust="untrusted")).entry
    assert own is not None
    assert own.id == entry.id
    mine = careful.add_draft(Draft("The deploy key is in the vault", "fact")).entry
    assert mine is not None
    (done,) = careful.approve([entry.id])
    assert (done.action, done.entry.id) == ("repeated", mine.id)
    assert (careful.get(entry.id).state, careful.get(entry.id).superseded_by) == ("superseded", mine.id)
    assert len(careful.list()) == 1
    careful.undo(entry.id)
    assert careful.get(entry.id).state == "staged"
    assert careful.get(mine.id).repetitions == 1


def test_approving_merges_and_supersedes_like_adding(careful: Entries) -> None:
    old = careful.add_draft(Draft("The codename is quokka", "fact", trust="agent"), actor="agent").entry
    assert old is not None
    careful.approve([old.id])
    more = stored(careful, "The codename is quokka since spring")
    (merged,) = careful.approve([more.id])
    assert (merged.action, merged.replaced, merged.entry.id) == ("merged", old.id, more.id)
    assert careful.get(old.id).superseded_by == more.id
    other = careful.add_draft(Draft("Something else entirely", "fact", trust="agent"), replaces=more.id).entry
    assert other is not None
    (ended,) = careful.approve([other.id])
    assert (ended.action, ended.replaced) == ("superseded", more.id)
    assert careful.get(other.id).related == (more.id,)


def test_an_approved_statement_of_an_agent_never_replaces_the_owners(careful: Entries) -> None:
    mine = careful.add_draft(Draft("The codename is quokka", "fact")).entry
    assert mine is not None
    theirs = stored(careful, "The codename is quokka since spring")
    (done,) = careful.approve([theirs.id])
    assert (done.action, careful.get(mine.id).state) == ("added", "active")


def test_a_rejected_entry_is_hidden_not_staged_again_and_later_erased(
    careful: Entries, clock: Any, tmp_path: Path
) -> None:
    entry = stored(careful, "The zebra quokka42 is on fire")
    (gone,) = careful.reject([entry.id])
    assert (gone.state, staged(careful)) == ("rejected", [])
    again = careful.add_draft(Draft("the zebra quokka42 is on fire", trust="agent"))
    assert (again.action, again.note) == ("refused", "the owner has rejected this")
    careful.undo(entry.id)
    assert staged(careful) == ["The zebra quokka42 is on fire"]
    careful.reject([entry.id])
    careful.cleanup()
    purged = []
    for _ in range(5):
        clock.at += 7 * DAY
        purged.append(careful.cleanup().purged)
    assert purged == [0, 0, 0, 0, 1]
    assert holders(tmp_path / "agent", "quokka42") == []
    later = careful.add_draft(Draft("The zebra quokka42 is on fire", trust="agent", on_purpose=False))
    assert later.action == "refused"


def test_only_staged_entries_can_be_approved_or_rejected(careful: Entries) -> None:
    mine = careful.add_draft(Draft("I drink tea", "fact")).entry
    waits = stored(careful, "The deploy key is in the vault")
    assert mine is not None
    for act in (careful.approve, careful.reject):
        with pytest.raises(WriteError, match="is active"):
            act([waits.id, mine.id])
        with pytest.raises(NotFound):
            act(["ffffffff-no"])
    assert careful.get(waits.id).state == "staged"


def test_forgetting_covers_entries_in_every_state(careful: Entries, tmp_path: Path) -> None:
    secret = "The vault code is quokkazebra42"
    first = stored(careful, secret)
    careful.reject([stored(careful, "Rejected quokkazebra42 code of the vault").id])
    mine = careful.add_draft(Draft(secret, "fact")).entry
    assert mine is not None
    careful.erase(mine.id)
    with pytest.raises(NotFound):
        careful.get(first.id)
    careful.erase(Selection(since=0))
    assert holders(tmp_path / "agent", "quokkazebra42") == []


def test_forgetting_covers_staged_entries_absorbed_by_a_paraphrase(careful: Entries, tmp_path: Path) -> None:
    first = stored(careful, "The codename is quokkazebra42")
    careful.approve([first.id])
    other = stored(careful, "Our codename is quokkazebra42")
    (done,) = careful.approve([other.id])
    assert (done.action, done.entry.id) == ("repeated", first.id)
    assert set(careful.erase(first.id).forgotten) == {first.id, other.id}
    assert holders(tmp_path / "agent", "quokkazebra42") == []


def test_an_export_contains_staged_entries(careful: Entries, tmp_path: Path, clock: Any) -> None:
    from opened_entries import open_entries

    entry = stored(careful, "The deploy key is in the vault")
    lines = "\n".join(careful.export())
    other = open_entries(tmp_path / "other", clock=clock)
    try:
        assert other.import_(lines).added == 1
        assert (other.get(entry.id).state, other.search("deploy key", threshold=0).hits) == ("staged", ())
        assert other.approve([entry.id])[0].action == "added"
    finally:
        other.close()


def test_an_export_leaves_out_what_was_forgotten_or_rejected(careful: Entries) -> None:
    stay, hidden = careful.add("Anna leads the project"), careful.add("The codename is quokkazebra42")
    waiting = stored(careful, "The deploy key is in the vault")
    careful.forget(hidden.entry.id)
    careful.reject([waiting.id])
    exported = [json.loads(line) for line in careful.export()][1:]
    assert [line["entry"]["id"] for line in exported] == [stay.entry.id]
    everything = [json.loads(line) for line in careful.export(states=())][1:]
    assert len(everything) == 3


def test_imports_of_an_agent_are_staged_too(careful: Entries) -> None:
    careful.import_('[{"memory": "Anna leads the project"}]', trust="agent", actor="agent")
    assert staged(careful) == ["Anna leads the project"]
    careful.import_('[{"memory": "Bob leads the other"}]')
    assert [entry.text for entry in careful.list()] == ["Bob leads the other"]


def test_a_staged_entry_survives_the_process(careful: Entries, open_: Any) -> None:
    entry = stored(careful, "The deploy key is in the vault")
    careful.close()
    assert open_().get(entry.id).state == "staged"


def test_a_kill_right_after_the_approval_loses_nothing(
    careful: Entries, open_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = stored(careful, "The deploy key is in the vault")
    follow = careful._context.follower.try_follow

    def killed(vectors: Any = None, *, embed: bool = True) -> None:
        if vectors is not None:  # the change is on disk, but not yet in the derived index
            raise KeyboardInterrupt
        follow(embed=embed)

    monkeypatch.setattr(careful._context.follower, "try_follow", killed)
    with pytest.raises(KeyboardInterrupt):
        careful.approve([entry.id])
    careful.close()
    again = open_()
    assert again.get(entry.id).state == "active"
    assert [hit.entry.id for hit in again.search("deploy key vault").hits] == [entry.id]


def test_only_one_of_two_owners_approves(careful: Entries, open_: Any) -> None:
    entry = stored(careful, "The deploy key is in the vault")
    other = open_(options=EntryOptions(approval="agent"))
    other.reject([entry.id])
    with pytest.raises(WriteError, match="is rejected"):
        careful.approve([entry.id])
    assert careful.get(entry.id).state == "rejected"
