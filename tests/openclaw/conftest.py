"""A home of OpenClaw."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home of OpenClaw."""
    folder = tmp_path / "openclaw"
    folder.mkdir()
    return folder
