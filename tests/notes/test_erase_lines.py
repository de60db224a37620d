"""Erase forgotten lines from daily logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoriter import Memory, Notes


@pytest.fixture
def notes(workspace: Path, tmp_path: Path) -> Iterator[Notes]:
    with Memory.open(workspace, home=tmp_path / "home", overrides={"embedding.provider": "none"}) as memory:
        yield memory.notes


def test_lines_are_erased_from_logs_of_agents_too(notes: Notes, workspace: Path) -> None:
    paths = [
        notes.save("Anna prefers tea.").path,
        notes.save("Anna prefers tea.", trust="agent").path,
    ]
    would = notes.erase_lines(["Anna prefers tea."], dry_run=True)
    assert all("Anna" in (workspace / path).read_text(encoding="utf-8") for path in paths)
    assert sorted(at.path for at in would.lines) == sorted(paths)
    for at in would.lines:
        assert (workspace / at.path).read_text(encoding="utf-8").splitlines()[at.line - 1] == at.text
    assert notes.erase_lines(["Anna prefers tea."]) == would
    assert not any("Anna" in (workspace / path).read_text(encoding="utf-8") for path in paths)


def test_an_agent_cannot_erase_lines_from_logs_of_the_owner(notes: Notes, workspace: Path) -> None:
    mine, agents = notes.save("Anna prefers tea."), notes.save("Anna prefers tea.", trust="agent")
    before = (workspace / mine.path).read_bytes()
    name = Path(mine.path).name
    erased = notes.erase_lines(["Anna prefers tea."], trust="agent")
    assert [at.path for at in erased.lines] == [agents.path]
    assert erased.left == (f"daily logs of the owner that say it, which only the owner may change: {name}",)
    assert (workspace / mine.path).read_bytes() == before
