"""A temporary place to load settings from."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.home.mkdir()
    place.workspace.mkdir()
    return place
