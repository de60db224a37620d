"""The files that registries and hosts read are complete and name one version."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from lab.release import ROOT, problems, wheel_problems
from memoriter import __version__

FILES = (
    "server.json",
    "README.md",
    ".claude-plugin",
    "plugins/claude-code",
    "plugins/claude-desktop",
    "clients/typescript/package.json",
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_release_files_are_in_order() -> None:
    assert list(problems(ROOT, __version__)) == []


def test_each_mistake_is_named(copy: Path) -> None:
    server = json.loads((copy / "server.json").read_text())
    (copy / "server.json").write_text(json.dumps({**server, "name": "memoriter", "description": "x" * 101}))
    (copy / "plugins/claude-desktop/server.py").unlink()
    shutil.rmtree(copy / "plugins/claude-code/.claude-plugin")
    found = "\n".join(problems(copy, "9.9.9"))
    for part in (
        "more than 100 characters",
        "'memoriter' is not a name",
        "not exactly one line",
        f"server.json: version {__version__}, not 9.9.9",
        "entry point is missing",
        "./plugins/claude-code is not a plugin",
    ):
        assert part in found


def test_a_wheel_without_the_name_is_refused(tmp_path: Path) -> None:
    assert list(wheel_problems(tmp_path, "a/b")) == [f"{tmp_path}: 0 wheels instead of one"]
    with zipfile.ZipFile(tmp_path / "x-1.whl", "w") as wheel:
        wheel.writestr("x-1.dist-info/METADATA", "Name: x")
    assert [line.partition(": ")[2] for line in wheel_problems(tmp_path, "a/b")] == [
        "the README in it does not name a/b",
        "clients/opencode_plugin.js is missing",
    ]
