"""Erase forgotten lines from daily logs."""

from __future__ import annotations

from pathlib import Path

from memoriter.notes.collection import erase_lines
from memoriter.notes.notebook import Notebook


def test_lines_are_erased_from_logs_of_agents_too(workspace: Path) -> None:
    notebook = Notebook(workspace)
    paths = [
        notebook.save("Anna prefers tea.").path,
        notebook.save("Anna prefers tea.", trust="agent").path,
    ]
    would = erase_lines(workspace, "memory", ["Anna prefers tea."], dry_run=True)
    assert all("Anna" in (workspace / path).read_text(encoding="utf-8") for path in paths)
    assert sorted(at.path for at in would.lines) == sorted(paths)
    for at in would.lines:
        assert (workspace / at.path).read_text(encoding="utf-8").splitlines()[at.line - 1] == at.text
    assert erase_lines(workspace, "memory", ["Anna prefers tea."]) == would
    assert not any("Anna" in (workspace / path).read_text(encoding="utf-8") for path in paths)


def test_an_agent_cannot_erase_lines_from_logs_of_the_owner(workspace: Path) -> None:
    notebook = Notebook(workspace)
    mine, agents = notebook.save("Anna prefers tea."), notebook.save("Anna prefers tea.", trust="agent")
    before = (workspace / mine.path).read_bytes()
    name = Path(mine.path).name
    erased = erase_lines(workspace, "memory", ["Anna prefers tea."], trust="agent")
    assert [at.path for at in erased.lines] == [agents.path]
    assert erased.left == (f"daily logs of the owner that say it, which only the owner may change: {name}",)
    assert (workspace / mine.path).read_bytes() == before
