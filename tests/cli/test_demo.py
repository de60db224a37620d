from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoriter.cli.app import app


def test_the_demo_finds_every_note_that_it_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo-workspace").mkdir()
    refused = CliRunner().invoke(app, ["demo"])
    assert "demo-workspace exists and was not written by a demo." in refused.output
    (tmp_path / "demo-workspace").rmdir()
    shown = CliRunner().invoke(app, ["demo"])
    assert shown.exit_code == 0, shown.output
    assert "\n   memory/projects/backup.md\n" in shown.output
    for place in (
        "MEMORY.md#L",
        "memory/projects/investing.md#L",
        "memory/2026-02-08.md#L",
        "memory/2026-02-03.md#L",
        "memory/projects/backup.md#L",
        "memory/2026-02-15.md#L",
    ):
        assert place in shown.output
