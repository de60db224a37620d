"""Where OpenClaw keeps the notes of its agents: its settings and its home."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memoriter import Memory
from memoriter.extensions.openclaw.importing import import_openclaw

OpenMemory = Callable[..., Memory]


def settings(home: Path, agents: dict[str, object]) -> None:
    (home / "openclaw.json").write_text(json.dumps({"agents": agents}))


def notes(report: Any) -> list[str]:
    return sorted(str(step.source) for step in report.steps if step.kind == "note")


def note(folder: Path, name: str = "MEMORY.md") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("# Memory\n\n- Ada prefers tea.\n")
    return str(folder / name)


def test_a_folder_with_only_a_user_note_is_a_workspace(home: Path, open_memory: OpenMemory) -> None:
    user = note(home / "workspace", "USER.md")
    assert notes(import_openclaw(open_memory(), home)) == [user]


def test_the_workspace_in_the_settings_is_used(home: Path, tmp_path: Path, open_memory: OpenMemory) -> None:
    (home / "agents" / "main" / "agent").mkdir(parents=True)
    note(home / "workspace")
    theirs, all_agents, memory = note(tmp_path / "theirs"), note(tmp_path / "all"), open_memory()
    for agents, wanted in (
        ({"entries": {"main": {"workspace": str(tmp_path / "theirs")}}}, theirs),
        ({"list": [{"id": "main", "workspace": str(tmp_path / "theirs")}]}, theirs),
        ({"defaults": {"workspace": str(tmp_path / "all")}, "entries": {"main": {}}}, all_agents),
        ({"defaults": {"workspace": str(tmp_path / "missing")}}, str(home / "workspace" / "MEMORY.md")),
        ({"defaults": 1, "entries": [], "list": {}}, str(home / "workspace" / "MEMORY.md")),
        ({"defaults": {"workspace": "~unknown-user/x"}}, str(home / "workspace" / "MEMORY.md")),
        (
            {"entries": {"main": {"agentDir": "~unknown-user/agents/main/agent"}}},
            str(home / "workspace" / "MEMORY.md"),
        ),
    ):
        settings(home, agents)
        assert notes(import_openclaw(memory, home, dry_run=True)) == [wanted]


def test_a_copied_home_is_read_at_its_new_place(home: Path, tmp_path: Path, open_memory: OpenMemory) -> None:
    former = tmp_path / "former"
    note(former / "workspace")
    here = note(home / "workspace")
    (home / "agents" / "main" / "agent").mkdir(parents=True)
    agent = {"workspace": str(former / "workspace"), "agentDir": str(former / "agents" / "main" / "agent")}
    settings(home, {"entries": {"main": agent}})
    assert notes(import_openclaw(open_memory(), home, dry_run=True)) == [here]


def test_unreadable_settings_are_reported(home: Path, open_memory: OpenMemory) -> None:
    here = note(home / "workspace")
    (home / "openclaw.json").write_text("{ agents: {}, // by hand\n}")
    report = import_openclaw(open_memory(), home)
    assert (notes(report), report.remarks) == (
        [here],
        (f"{home / 'openclaw.json'} is not plain JSON and was not read. The default places were used.",),
    )


def test_a_home_with_notes_next_to_it_is_not_a_workspace(home: Path, open_memory: OpenMemory) -> None:
    here = note(home / "workspace")
    note(home / "memory", "old.md")
    settings(home, {})
    assert notes(import_openclaw(open_memory(), home)) == [here]


def test_openclaws_own_comments_are_not_indexed(home: Path, open_memory: OpenMemory) -> None:
    marks = (
        "<!-- openclaw-memory-promotion:memory/2026-02-08.md:3 -->\n",
        "<!-- openclaw:dreaming:rem:start -->\n",
    )
    note(home / "workspace")
    (home / "workspace" / "MEMORY.md").write_text(f"# Memory\n\n{marks[0]}- Ada prefers tea.\n{marks[1]}")
    memory = open_memory()
    import_openclaw(memory, home)
    (tea,) = memory.search("tea", source="memory", max_results=1).hits
    assert (tea.snippet.splitlines()[-1], "openclaw-memory" in tea.snippet) == ("- Ada prefers tea.", False)
    assert memory.search("dreaming promotion", source="memory").hits == ()
