"""The examples run offline, and print what their page says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
EXAMPLES = ["langgraph_store", "openai_agents_session", "anthropic_memory_tool", "pydantic_ai_toolset"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"examples/{name}.py" in PAGE
    assert f"```\n{done.stdout}```" in PAGE
