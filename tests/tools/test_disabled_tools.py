"""The tools while memory is disabled, and for a session outside the scope."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoriter.tools.search import NoArguments
from memoriter.tools.tool import Shape, Tool
from memoriter.tools.toolbox import TOOLS, Toolbox

GROUP = "agent:main:telegram:group:42"

# ---- disabled memory ----------------------------------------------------------------------------------------------


def switched_off(root: Path) -> dict[str, object]:
    return {"workspace": root, "home": root / "home", "overrides": {"plugins.slots.memory": "none"}}


def wrong_settings(root: Path) -> dict[str, object]:
    (root / "config.yaml").write_text("search: {max_result: 3}\n")
    return {"workspace": root, "home": root / "home", "config": root / "config.yaml"}


def unusable_home(root: Path) -> dict[str, object]:
    (root / "file").write_text("")
    return {"workspace": root, "home": root / "file" / "home"}


@pytest.mark.parametrize("name", sorted(TOOLS))
@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (switched_off, "`plugins.slots.memory` is `none`."),
        (wrong_settings, "Unknown setting 'search.max_result'"),
        (unusable_home, "file"),
    ],
)
def test_every_tool_says_why_memory_is_disabled(tmp_path: Path, name: str, broken, reason: str) -> None:
    toolbox = Toolbox.open(**broken(tmp_path))
    arguments = dict.fromkeys(TOOLS[name].schema()["required"], "x")
    result = toolbox.call(name, arguments)
    why = result["error"].removeprefix("Memory is disabled: ")
    assert result == {
        **TOOLS[name].empty,
        "disabled": True,
        "error": f"Memory is disabled: {why}",
        "code": "memory_disabled",
        "details": {"why": why},
    }
    assert result["error"].startswith("Memory is disabled: ")
    assert reason in result["error"]
    assert "\n" not in result["error"]
    assert toolbox.prompt() == ""
    toolbox.close()


def test_corrected_settings_are_used_at_the_next_call(tmp_path: Path) -> None:
    arguments = wrong_settings(tmp_path)
    with Toolbox.open(**arguments, overrides={"embedding.provider": "none"}) as toolbox:
        assert toolbox.call("memory_stats")["disabled"] is True
        (tmp_path / "config.yaml").write_text("search: {max_results: 3}\n")
        (tmp_path / "MEMORY.md").write_text("heron\n")
        assert len(toolbox.call("memory_search", {"query": "heron"})["results"]) == 1


# ---- scope --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(name for name, tool in TOOLS.items() if tool.read_only))
def test_a_session_outside_the_scope_gets_empty_results(note, open_memory, name: str) -> None:
    note("MEMORY.md", "heron\n")
    toolbox = Toolbox(open_memory(), session=GROUP)
    arguments = dict.fromkeys(TOOLS[name].schema()["required"], "MEMORY.md")
    assert toolbox.call(name, arguments) == {**TOOLS[name].empty, "disabled": False}
    assert toolbox.prompt() == ""


def test_a_session_outside_the_scope_cannot_write(open_memory) -> None:
    writes = Tool("write", "", NoArguments, Shape, lambda call: Shape(), read_only=False)
    toolbox = Toolbox(open_memory(), session=GROUP)
    toolbox.tools["write"] = writes
    assert toolbox.call("write") == {
        "disabled": False,
        "error": "This session may not write to this memory.",
        "code": "session_refused",
        "details": {},
    }
