"""A folder as an agent works in it by itself; the commands of a memory tool are tested with that tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoriter.notes.agent_folder import AgentFolder

TOKEN = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize(("first", "then"), [(TOKEN[:3], TOKEN[3:]), ("<priv", "ate>the code</private>")])
def test_what_may_not_be_kept_does_not_come_in_by_pieces(workspace: Path, first: str, then: str) -> None:
    shelf = AgentFolder(workspace)
    shelf.create("notes.md", f"key: {first}\n")
    text = shelf.edit("notes.md", lambda old: old.replace(first, first + then))
    assert shelf.read("notes.md") == text
    assert then not in (workspace / "memory/notes.md").read_text(encoding="utf-8")
    assert text.startswith("key: ")
