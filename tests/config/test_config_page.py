"""The reference page is generated from the settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GENERATOR = Path(__file__).parents[2] / "docs" / "generate.py"


def run(generator: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(generator), *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.posix("the pages show paths as Linux writes them")
def test_the_pages_are_up_to_date() -> None:
    result = run(GENERATOR, "--check")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_stale_page_is_reported_and_then_rewritten(tmp_path: Path) -> None:
    generator = tmp_path / "docs" / "generate.py"
    generator.parent.mkdir()
    (tmp_path / "src").symlink_to(GENERATOR.parents[1] / "src")
    generator.write_text(GENERATOR.read_text("utf-8"), "utf-8")
    page = generator.parent / "page.md"
    page.write_text("# Page\n<!-- generated: config -->\nold\n<!-- end -->\nprose\n")
    result = run(generator, "--check")
    assert (result.returncode, result.stderr) == (
        1,
        "docs/page.md, line 3: 'old' should be '### General'; run `python docs/generate.py`\n",
    )
    assert run(generator).returncode == 0
    assert run(generator, "--check").returncode == 0
    text = page.read_text("utf-8")
    assert text.startswith("# Page\n<!-- generated: config -->\n### General\n")
    assert text.endswith("<!-- end -->\nprose\n")


def test_the_page_shows_no_internal_value() -> None:
    text = (GENERATOR.parent / "config.md").read_text("utf-8")
    assert "Pydantic" not in text
    assert "<class" not in text
