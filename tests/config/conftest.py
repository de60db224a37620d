"""Settings are loaded from a place of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.home.mkdir()
    made.workspace.mkdir()
    return made
