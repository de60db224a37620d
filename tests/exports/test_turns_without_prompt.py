"""What an import says of turns that never enter a prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoriter import Memory
from memoriter.cli.app import app
from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox


def test_an_import_says_how_many_turns_enter_no_prompt_and_why(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")
    said = [
        {"type": "user", "message": {"role": "user", "content": "I prefer the blue tram."}},
        {"type": "user", "message": {"role": "user", "content": "Look:\n> I prefer the red bus."}},
        {"type": "user", "message": {"role": "user", "content": "I walk along the canal every day. " * 40}},
        {"type": "user", "message": {"role": "user", "name": "mallory", "content": "I prefer taxis."}},
        {"type": "assistant", "message": {"role": "assistant", "content": "You prefer taxis."}},
    ]
    transcript = tmp_path / "claude" / "projects" / "trams" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("".join(f"{json.dumps(one)}\n" for one in said))
    line = ["--workspace", str(memory.settings.workspace), "--home", str(memory.settings.home), "import"]
    line += ["claude-code", str(tmp_path / "claude")]
    planned = CliRunner().invoke(app, [*line, "--dry-run", "--json"])
    assert json.loads(planned.stdout)["turns"] == {}
    first = CliRunner().invoke(app, line)
    reasons = (
        "1 with pasted text, 1 of more than about 100 words, 1 of other people, "
        "1 of the agent after text from outside"
    )
    assert first.stdout.splitlines()[1:] == [
        "notes: none",
        "sessions: 1 new",
        "entries: 0 new, 0 unchanged",
        f"Of 5 turns, these are never added to a prompt: {reasons}.",
    ]
    with transcript.open("a") as file:
        file.write(
            json.dumps({"type": "user", "message": {"role": "user", "content": "I cycle, too."}}) + "\n"
        )
    again = json.loads(CliRunner().invoke(app, [*line, "--json"]).stdout)
    assert again["turns"] == {"total": 6, "pasted": 1, "long": 1, "others": 1, "relayed": 1}


def test_the_page_learns_how_many_turns_of_an_import_enter_no_prompt(memory: Memory) -> None:
    said = {
        "content": {"parts": ["Fwd: I prefer the red bus.\n> I prefer taxis."]},
        "author": {"role": "user"},
    }
    mapping = {"q1": {"id": "q1", "parent": None, "children": [], "message": {"id": "q1", **said}}}
    data = json.dumps([{"id": "c1", "title": "Trams", "mapping": mapping, "current_node": "q1"}])
    result = Toolbox(memory, tools=OPERATIONS, access="admin").call("entries.import", {"data": data})
    assert result["sessions"]["turns"] == {"total": 1, "pasted": 1}
