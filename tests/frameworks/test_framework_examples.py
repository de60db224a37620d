"""The examples and the blocks of docs/frameworks.md run offline, and the examples print what the page shows."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import messages_server
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
EXAMPLES = [
    "langgraph_store",
    "anthropic_memory_tool",
    # These frameworks load for seconds, and all their other tests are integration tests.
    pytest.param("openai_agents_session", marks=pytest.mark.integration),
    pytest.param("pydantic_ai_toolset", marks=pytest.mark.integration),
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_the_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Run in this process, so that a framework that other tests use is loaded once."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    printed = capfd.readouterr()
    assert printed.err == ""
    assert f"examples/{name}.py" in PAGE
    assert f"```\n{printed.out}```" in PAGE
    assert list(tmp_path.iterdir()) == []


#: The blocks that are not marked "not run".
BLOCKS = re.findall(r"(?<!-->\n)^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.integration
@pytest.mark.parametrize("number", range(4))
def test_a_block_of_the_page_runs(number: int, tmp_path: Path) -> None:
    assert len(BLOCKS) == 4
    with messages_server.running() as script:
        script.turns.append(messages_server.says("Noted."))
        keys = {f"{name}_API_KEY": "x" for name in ("OPENAI", "ANTHROPIC")}
        addresses = {f"{name}_BASE_URL": script.url for name in ("OPENAI", "ANTHROPIC")}
        done = subprocess.run(
            [sys.executable, "-c", BLOCKS[number]],
            cwd=tmp_path,
            env={
                **os.environ,
                **keys,
                **addresses,
                "HOME": str(tmp_path),
                "USERPROFILE": str(tmp_path),
                "PYTHONUTF8": "1",
                "OPENAI_AGENTS_DISABLE_TRACING": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert len(script.requests) == (0 if "langgraph" in BLOCKS[number] else 1)
