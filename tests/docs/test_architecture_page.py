"""ARCHITECTURE.md shows every package, module and extension, and names only files that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
PACKAGE = ROOT / "src" / "memoriter"
DRAWING = PAGE[PAGE.index("src/memoriter/\n") : PAGE.index("### `text/`")]


def packages(folder: Path) -> set[str]:
    return {file.parent.name for file in folder.glob("*/__init__.py")}


def test_the_drawing_shows_the_packages_and_modules_that_exist() -> None:
    inside = DRAWING[: DRAWING.index("lab/")]
    modules = {path.name for path in PACKAGE.glob("*.py")} - {"__main__.py"}
    folders = packages(PACKAGE) | {"sample_workspace"}
    assert set(re.findall(r"^  (\w+)/", inside, re.MULTILINE)) == folders
    assert set(re.findall(r"\b\w+\.py\b", inside)) == modules


def test_the_table_shows_the_extensions_that_exist() -> None:
    table = PAGE[PAGE.index("| folder | what it adds |") : PAGE.index("On Postgres,")]
    assert set(re.findall(r"`(\w+)`", table)) == packages(PACKAGE / "extensions")


def test_every_named_file_exists() -> None:
    """A name without a folder may be in any package."""
    places = (PACKAGE, ROOT, *(path for path in PACKAGE.iterdir() if path.is_dir()))
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    assert len(named) > 30
    assert sorted(name for name in named if not any((place / name).is_file() for place in places)) == []
