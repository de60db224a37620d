"""The metrics of the short evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lab.training import evaluate


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    folder = tmp_path / "toy"
    folder.mkdir()
    items = [{"id": str(i), "group": "g", "text": f"text {i}"} for i in range(20)]
    asked = [{"id": "q", "group": "g", "query": "query", "relevant": ["1", "3"], "facets": [["1", "3"]]}]
    asked.append({"id": "none", "group": "g", "query": "query", "relevant": []})
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    return tmp_path


def test_measure(sets: Path) -> None:
    (group,) = evaluate.read_set(sets / "toy")
    assert len(group.queries) == 1
    (row,) = evaluate.measure(group, -np.arange(20.0)[None])  # items come in order 0, 1, 2, 3
    assert row["mrr"] == pytest.approx(1 / 2)
    assert row["recall@5"] == 1
    assert row["facet@10"] == 1
    ideal = 1 + 1 / np.log2(3)
    assert row["ndcg@10"] == pytest.approx((1 / np.log2(3) + 1 / np.log2(5)) / ideal)


def test_evaluate_reports_intervals(sets: Path) -> None:
    def encode(texts: list[str]) -> np.ndarray:
        return np.eye(20, dtype=np.float32)[[int(t.split()[1]) if " " in t else 1 for t in texts]]

    found = evaluate.evaluate(sets, encode)["toy"]
    mean, low, high = found["vector"]["ndcg@10"]
    assert low <= mean <= high
    assert found["questions"] == 1
    assert found["vector"]["mrr"][0] == 1


def test_terms_are_stemmed_words_and_bigrams() -> None:
    assert evaluate.terms("The parties moved") == ["party", "mov"]
    assert evaluate.terms("去海边") == ["去海", "海边"]
