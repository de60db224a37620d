"""`memoriter tidy` on the command line and in the resident process."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tidy_samples import arrive, entry

from memoriter import Memory
from memoriter.background import cancellable
from memoriter.cli import execute
from memoriter.errors import Cancelled
from memoriter.extensions.tidy.running import nightly
from memoriter.resident.service import OpenMemories

OpenMemory = Callable[..., Memory]


# ---- the resident process ----------------------------------------------------------------------------------------


def test_the_resident_process_tidies_once_a_day_unless_it_is_switched_off(
    open_memory: OpenMemory, workspace: Path, tmp_path: Path
) -> None:
    memory = open_memory()
    arrive(memory, entry(1, "I live in Berlin", days=9), entry(2, "I live in Munich", days=3))
    places = {"embedding.provider": "none", "search.rerank": False}
    off = Memory.open(workspace, home=tmp_path / "state", overrides={**places, "tidy.nightly": False})
    on = Memory.open(workspace, home=tmp_path / "state", overrides=places)
    memories = OpenMemories()
    memories.get(off.settings)
    memories.do_chores()
    assert len(memory.entries.list()) == 2
    memories.get(on.settings)
    memories.do_chores()
    assert [one.text for one in memory.entries.list()] == ["I live in Munich"]
    arrive(memory, entry(3, "I live in Oslo", days=1))
    memories.do_chores()
    assert len(memory.entries.list()) == 2, "a second run on the same day"
    memories.trim(0)
    on.close()
    off.close()


def test_a_run_that_is_cancelled_changes_nothing(open_memory: OpenMemory) -> None:
    memory = open_memory()
    arrive(memory, entry(1, "I live in Berlin", days=9), entry(2, "I live in Munich", days=3))
    stop = threading.Event()
    stop.set()
    with cancellable(stop), pytest.raises(Cancelled):
        nightly(memory)
    assert len(memory.entries.list()) == 2


# ---- the command line --------------------------------------------------------------------------------------------


@pytest.fixture
def run(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")
    monkeypatch.setenv("MEMORITER_SEARCH__RERANK", "false")

    def run_(*words: str) -> str:
        line = [f"--workspace={workspace}", f"--home={tmp_path / 'state'}", *words]
        assert execute(line) == 0, capsys.readouterr()
        return capsys.readouterr().out

    return run_


def test_the_command_says_what_it_did_and_how_to_undo_it(
    open_memory: OpenMemory, run: Callable[..., str]
) -> None:
    memory = open_memory()
    assert run("tidy") == "Nothing to change in 0 entries.\n"
    assert run("tidy", "history") == "No run yet.\n"
    arrive(memory, entry(1, "I live in Berlin", days=9), entry(2, "I live in Munich", days=3))
    step = "  replaced 00000001: I live in Berlin\n    both state where a person lives\n"
    assert run("tidy", "--dry-run") == f"Would change 1 of 2 entries:\n{step}"
    assert len(memory.entries.list()) == 2
    did = run("tidy")
    assert did == f"Changed 1 of 2 entries (change 3):\n{step}`memoriter undo 00000001` reverts all of it.\n"
    assert run("tidy") == "Nothing to change in 1 entry.\n"
    assert "supersede 00000001: I live in Berlin" in run("tidy", "history")
    run("undo", "00000001")
    (found,) = json.loads(run("tidy", "history", "--json"))["runs"]
    assert (found["change"], found["undone"], len(found["events"])) == (3, True, 1)
    assert len(memory.entries.list()) == 2


def test_json_has_the_entries_before_and_after_and_proposes_what_to_forget(
    open_memory: OpenMemory, run: Callable[..., str]
) -> None:
    memory = open_memory()
    memory.entries.import_(json.dumps([{"memory": "hello there"}, {"memory": "The attic is dry in June"}]))
    arrive(memory, entry(1, "I live in Berlin", days=9), entry(2, "I live in Munich", days=3))
    result = json.loads(run("tidy", "--json"))
    (step,) = result["steps"]
    assert (step["kind"], [(one["before"]["state"], one["after"]["state"]) for one in step["edits"]]) == (
        "replaced",
        [("active", "superseded")],
    )
    (junk,) = result["proposed"]
    assert (junk["kind"], junk["texts"]) == ("junk", ["hello there"])
    assert junk["fix"] == f"memoriter forget {junk['ids'][0]}"
    assert (result["changed"], result["left"], result["waiting"]) == (1, 0, 0)
    assert "hello there" in {one.text for one in memory.entries.list()}
