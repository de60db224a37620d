"""ARCHITECTURE.md names only rooms and modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
PACKAGE = ROOT / "src" / "memoriter"


def test_every_module_that_a_trace_names_exists() -> None:
    traces = PAGE[PAGE.index("## Follow one search") : PAGE.index("## Ranking")]
    modules = re.findall(r"`([a-z_/]+\.py)`", traces)
    assert len(modules) > 10
    assert [module for module in modules if not (PACKAGE / module).is_file()] == []


def test_the_drawing_shows_every_room() -> None:
    drawing = PAGE[PAGE.index("src/memoriter/\n") : PAGE.index("`tests/architecture/test_layers.py`")]
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    modules = {path.name for path in PACKAGE.glob("*.py")} - {"__main__.py"}
    missing = [name for name in sorted(rooms) if f"{name}/" not in drawing]
    missing += [name for name in sorted(modules) if name not in drawing]
    assert missing == []
