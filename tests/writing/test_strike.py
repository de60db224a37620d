"""Striking what is forgotten from the days' logs, whoever wrote them."""

from __future__ import annotations

from pathlib import Path

from recollect.writing import Notebook
from recollect.writing.strike import strike


def test_the_logs_of_agents_are_struck_too(workspace: Path) -> None:
    notebook = Notebook(workspace)
    paths = [
        notebook.save("Anna prefers tea.").path,
        notebook.save("Anna prefers tea.", by="agent").path,
    ]
    assert strike(workspace, ["Anna prefers tea."]) == sorted(Path(path).name for path in paths)
    assert not any("Anna" in (workspace / path).read_text(encoding="utf-8") for path in paths)
