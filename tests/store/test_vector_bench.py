from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "vectors.py"


def test_the_comparison_of_engines_runs_and_finds_the_vectors(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("bench_vectors", BENCH)
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_vectors", bench)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    spec.loader.exec_module(bench)
    assert bench.main(["--sizes", "1200", "--dims", "32", "--queries", "3", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {
        row["engine"]: (row["size"], row["recall_10"], row["recall_50"]) for row in rows
    } == dict.fromkeys(
        ("numpy float32", "memoriter scan", "memoriter scan, 5 % filter", "sqlite-vec"), (1200, 1.0, 1.0)
    )
