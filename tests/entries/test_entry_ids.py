"""An entry is accepted by the id that an answer showed: in full, as a citation, as a path, or by a unique prefix."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from memoriter import Memory
from memoriter.cli.app import app
from memoriter.errors import NotFound
from memoriter.records import referenced_id
from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox

TEXT = "The heron nests in the marsh"
FORMS: dict[str, Callable[[str], str]] = {
    "id": lambda id_: id_,
    "citation": lambda id_: f"entry:{id_}",
    "path": lambda id_: f"entries/{id_}",
    "prefix": lambda id_: id_[:8],
    "cited prefix": lambda id_: f"entry:{id_[:6]}",
    "upper case": lambda id_: f" Entry:{id_.upper()} ",
}


@pytest.fixture
def memory(open_memory) -> Memory:
    return open_memory()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_python_accepts_every_form_of_an_id(memory: Memory, form: Callable[[str], str]) -> None:
    entry = memory.remember(TEXT).entry
    recalled = memory.recall(TEXT)
    named = form(entry.id)
    assert memory.entries.get(named).text == TEXT
    assert [event.kind for event in memory.entries.history(named)] == ["add"]
    assert memory.entries.detail(named).entry.id == entry.id
    assert (memory.read(named).path, memory.read(named).text) == (f"entries/{entry.id}", TEXT)
    assert memory.entries._context.complete_ids(named.strip(), limit=5) == [entry.id]
    assert memory.entries.get_recall(named).id == recalled.id
    assert memory.entries.recalls(entry=named).total == 1
    assert memory.entries.update(named, importance=4).importance == 4
    assert memory.erase(named).forgotten == (entry.id,)


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_tools_accept_every_form_of_an_id(memory: Memory, form: Callable[[str], str]) -> None:
    toolbox = Toolbox(memory, tools=OPERATIONS, access="admin")
    id_ = toolbox.call("memory_store", {"text": TEXT})["memory"]["id"]
    assert toolbox.call("memory_get", {"path": form(id_)})["text"] == TEXT
    assert toolbox.call("entries.get", {"id": form(id_)})["entry"]["id"] == id_
    assert toolbox.call("memory_forget", {"memoryId": form(id_)})["forgotten"] == [id_]
    again = toolbox.call("memory_store", {"text": "Standup is at nine"})["memory"]["id"]
    assert toolbox.call("memory", {"action": "delete", "id": form(again)})["forgotten"] == [again]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_command_line_accepts_every_form_of_an_id(
    form: Callable[[str], str], workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")

    def run(*words: str) -> str:
        (tmp_path / "home").mkdir(exist_ok=True)
        line = ["--workspace", str(workspace), "--home", str(tmp_path / "home"), *words]
        result = CliRunner().invoke(app, line)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    id_ = json.loads(run("add", TEXT, "--json"))["entry"]["id"]
    run("call", "recall", json.dumps({"messages": [{"role": "user", "content": TEXT}]}))
    assert json.loads(run("get", form(id_), "--json"))["text"] == TEXT
    assert len(json.loads(run("history", form(id_), "--json"))["history"]) == 1
    assert json.loads(run("why", form(id_), "--json"))["considered"][0]["ref"] == id_
    assert json.loads(run("forget", form(id_), "--yes", "--json"))["forgotten"] == [id_]


def test_an_ambiguous_prefix_lists_the_candidates(memory: Memory) -> None:
    ids = sorted(
        memory.remember(f"Heron number {number} nests in marsh {number}").entry.id for number in range(17)
    )
    first = next(one[0] for one, two in itertools.pairwise(ids) if one[0] == two[0])
    candidates = [id_ for id_ in ids if id_[0] == first]
    shown = ", ".join(candidates[:5]) + (", …" if len(candidates) > 5 else "")
    expected = f"More than one entry starts with 'entry:{first}': {shown}. Give more of its id."
    with pytest.raises(NotFound) as error:
        memory.entries.get(f"entry:{first}")
    assert str(error.value) == expected
    assert Toolbox(memory).call("memory_forget", {"memoryId": f"entry:{first}"})["error"] == expected


def test_an_unknown_id_is_one_sentence(memory: Memory) -> None:
    with pytest.raises(NotFound, match=r"^There is no entry 'entry:ffff0000'\.$"):
        memory.read("entry:ffff0000")
    memory.remember(TEXT)
    for named in ("entry:", "entry:ffff0000", "entries/ffff0000"):
        assert Toolbox(memory).call("memory_get", {"path": named})["error"] == f"There is no entry {named!r}."


def test_why_explains_the_newest_recall_when_no_id_is_given(memory: Memory) -> None:
    with pytest.raises(NotFound, match=r"^Nothing has been recalled yet\.$"):
        memory.entries.get_recall()
    entry = memory.remember(TEXT).entry
    with pytest.raises(NotFound, match=f"^The entry {entry.id} has not entered a prompt yet.$"):
        memory.entries.get_recall(f"entry:{entry.id}")
    memory.recall(TEXT)
    newest = memory.recall("Where does the heron nest?")
    assert memory.entries.get_recall().id == newest.id


@given(st.text(max_size=40))
def test_a_path_is_never_taken_for_an_id(text: str) -> None:
    assert referenced_id(f"memory/{text}.md") is None
    assert referenced_id(f"entry:{text}") in (text, text.rstrip())
