"""The wheel, in an empty environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from installation import ROOT, Installation


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT]
    subprocess.run(command, check=True, timeout=600)
    [built] = folder.glob("memoriter-*.whl")
    return built


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel. The fixture returns its programs."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=300)
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(pip, check=True, timeout=1200)
    return folder / "bin"


@pytest.fixture
def installed(environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    """The installed wheel, for a person with an empty home. Its resident process ends with the test."""
    monkeypatch.delenv("PYTHONPATH", raising=False)  # the package comes from the wheel
    (tmp_path / "home").mkdir()
    person = Installation(environment, tmp_path / "home")
    yield person
    person.run("memoriter resident stop")
