"""The folder in which an agent edits its notes. The commands are tested with the memory tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoriter.extensions.anthropic.agent_folder import AgentFolder

TOKEN = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize(("first", "then"), [(TOKEN[:3], TOKEN[3:]), ("<priv", "ate>the code</private>")])
def test_a_secret_added_in_pieces_is_removed(workspace: Path, first: str, then: str) -> None:
    shelf = AgentFolder(workspace)
    shelf.create("notes.md", f"key: {first}\n")
    text = shelf.edit("notes.md", lambda old: old.replace(first, first + then))
    assert shelf.read("notes.md") == text
    assert then not in (workspace / "memory/notes.md").read_text(encoding="utf-8")
    assert text.startswith("key: ")
