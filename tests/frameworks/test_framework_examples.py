"""The examples run offline and print what docs/frameworks.md shows."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
EXAMPLES = ["langgraph_store", "openai_agents_session", "anthropic_memory_tool", "pydantic_ai_toolset"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_the_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Run in this process, which has already imported the frameworks."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    printed = capfd.readouterr()
    assert printed.err == ""
    assert f"examples/{name}.py" in PAGE
    assert f"```\n{printed.out}```" in PAGE
    assert list(tmp_path.iterdir()) == []
