"""The command line with a vendor's embedder: batch jobs, and the reasons in the status."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner
from vendors import DIMS, KEY, Vendors, url

from memoriter.cli.app import app


@pytest.fixture
def run(
    vendors: Vendors, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., str]]:
    variables = {
        "MEMORITER_EMBEDDING__PROVIDER": "openai",
        "MEMORITER_EMBEDDING__DIMENSIONS": str(DIMS),
        "OPENAI_BASE_URL": url("openai"),
        "OPENAI_API_KEY": KEY,
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    (tmp_path / "state").mkdir()

    def call(*words: str) -> str:
        places = ["--workspace", str(workspace), "--home", str(tmp_path / "state")]
        result = CliRunner().invoke(app, [*places, *words])
        assert result.exit_code == 0, result.output
        return result.stdout

    logger = logging.getLogger("memoriter")
    before, level, propagate = list(logger.handlers), logger.level, logger.propagate
    yield call
    logger.handlers[:] = before  # a command configures logging for the whole process
    logger.setLevel(level)
    logger.propagate = propagate


def test_index_by_batch_and_status_in_depth(
    run: Callable[..., str], vendors: Vendors, note: Callable[[str, str], Path]
) -> None:
    note("memory/heron.md", "The grey heron stands in the river at dawn.")
    report = json.loads(run("index", "--batch", "--json"))
    assert (report["embedded"], report["pending"]) == (1, 0)
    assert [path for path, _, _ in vendors.requests if path.endswith("/batches")] == ["/v1/batches"]

    status = json.loads(run("status", "--deep", "--json"))
    assert (status["provider"], status["details"]["embedding"]) == ("openai", "ok")
    assert status["details"]["embedder"] == f"openai, at {url('openai')}"
    assert status["details"]["other_embedders"]["voyage"] == "not requested"
    shown = run("status", "--deep")
    assert "ollama: not requested" in shown
    assert KEY not in shown + run("config", "show") + json.dumps(status)
