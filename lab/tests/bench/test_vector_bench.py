from __future__ import annotations

import json

import pytest

from lab.bench import vectors


def test_the_comparison_of_engines_runs_and_finds_the_vectors(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert vectors.main(["--sizes", "1200", "--dims", "32", "--queries", "3", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {
        row["engine"]: (row["size"], row["recall_10"], row["recall_50"]) for row in rows
    } == dict.fromkeys(
        ("numpy float32", "memoriter scan", "memoriter scan, 5 % filter", "sqlite-vec"), (1200, 1.0, 1.0)
    )
