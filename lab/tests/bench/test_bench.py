"""The benchmarks run at a small size."""

from __future__ import annotations

import pytest

from lab.bench import built, report, searching, syncing
from lab.bench.corpus import Writer
from lab.bench.measure import spread


def test_the_same_seed_writes_the_same_text():
    assert Writer(seed=4).note(3) == Writer(seed=4).note(3) != Writer(seed=5).note(3)
    assert 60 <= len(Writer(seed=4).text().split()) <= 100


def test_spread_times_every_piece_of_work():
    done = []
    found = spread([lambda: done.append(1), lambda: done.append(2)])
    assert done == [1, 1, 2]
    assert 0 <= found.p50 <= found.p95


def test_a_sync_without_changes_is_measured_over_all_files(tmp_path):
    assert syncing.unchanged(tmp_path, 12).result.unchanged == 12


def test_a_built_index_is_searched_as_a_whole_and_by_leg(tmp_path):
    pytest.importorskip("sqlite_vec", reason="the extra sqlite-vec is not installed")
    index = built.build(tmp_path / "index", 120, questions=4)
    with index.open() as memory:
        assert memory.status().chunks == 120
        assert memory.search(index.questions[0]).hits
    timed = list(searching.searches(index, peer_questions=2))
    assert [one.work for one in timed] == ["search", "vector leg", "keyword leg"]
    figures = report.Figures(timed=timed, cold={"memoriter --help": 90})
    figures.whole = [searching.whole_searches(index)]
    tables = report.markdown(figures)
    assert "| chunks | search | and embedding the query | and reranking | and both |" in tables
    assert "| 120 | vector leg |" in tables
    assert "| memoriter --help | ≤ 300 ms | 90 ms CPU | met |" in tables
