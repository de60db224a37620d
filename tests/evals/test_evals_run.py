"""The harness, end to end over a toy set: notes written, found, scored, reported."""

from __future__ import annotations

import json

import pytest

from evals.__main__ import main, overrides
from evals.page import put
from evals.report import figures, lifecycle, markdown
from evals.run import Outcome, Setup, run_set, write_notes
from evals.sets import EvalSet, Item, Query
from memoriter.testing import HashEmbedder

ITEMS = (
    Item("d1", "a", "The cat Momo sleeps on the radiator.", "2025-03-01"),
    Item("d2", "a", "Renew the parking permit every November.", "2025-03-02"),
    Item("d3", "a", "数据库的备份放在深圳。", None),
    Item("e1", "b", "The cat of the neighbour is called Pixel.", None),
)
QUERIES = (
    Query("q1", "a", "Where does the cat sleep?", "pets", ("d1",)),
    Query("q2", "a", "备份放在哪里", "work", ("d3",)),
    Query("q3", "b", "name of the cat", "pets", ("e1",)),
    Query("q4", "c", "this conversation is empty", "empty", ("none",)),
)
TOY = EvalSet("toy", ITEMS, QUERIES)


@pytest.fixture
def setup(tmp_path):
    return Setup(tmp_path / "cache", {}, HashEmbedder())


def test_a_toy_set_is_found_in_every_mode(setup):
    result = run_set(TOY, ["keyword", "vector", "hybrid"], setup)
    for outcomes in result.outcomes.values():
        ranked = {outcome.query.id: outcome.ranked for outcome in outcomes}
        assert (ranked["q1"][0], ranked["q2"][0], ranked["q3"][0]) == ("d1", "d3", "e1")
        assert ranked["q4"] == ()
        assert set(ranked["q3"]) <= {"e1"}  # a search never leaves its group
    assert sum(build.items for build in result.builds) == len(ITEMS)


def test_a_second_run_embeds_nothing(setup):
    run_set(TOY, ["hybrid"], setup)
    before = setup.embedder.texts
    again = run_set(TOY, ["hybrid"], setup)
    assert setup.embedder.texts == before
    assert again.builds == run_set(TOY, ["hybrid"], setup).builds


def test_figures_hold_means_intervals_and_differences(setup):
    found = figures(run_set(TOY, ["keyword", "vector", "hybrid"], setup))
    hybrid = found["modes"]["hybrid"]
    assert hybrid["queries"] == 4
    assert hybrid["measures"]["MRR"]["mean"] == pytest.approx(
        0.75
    )  # three found first, one in an empty group
    assert hybrid["categories"]["pets"]["nDCG@10"] == 1
    assert found["differences"]["hybrid − keyword"]["MRR"]["mean"] == pytest.approx(0)
    page = markdown([found])
    assert "| toy | hybrid | 4 | 75.0 ±" in page
    assert json.loads(json.dumps(found)) == found


def test_notes_carry_the_day_and_leave_when_their_item_does(tmp_path):
    by_path = write_notes(tmp_path, ITEMS[:3])
    texts = {
        by_path[f"memory/{path.name}"]: path.read_text("utf-8") for path in (tmp_path / "memory").iterdir()
    }
    assert texts["d1"].startswith("---\ndate: 2025-03-01\n---\nThe cat")
    assert texts["d3"] == "数据库的备份放在深圳。\n"
    write_notes(tmp_path, ITEMS[:1])
    assert len(list((tmp_path / "memory").iterdir())) == 1


def test_order_and_silence_are_measured_where_a_set_labels_them():
    def outcome(query: Query, ranked: tuple[str, ...], confidence: float) -> Outcome:
        return Outcome(query, ranked, confidence, ranked[:1], 1.0)

    update = Query(
        "u", "g", "?", "c", ("new", "old"), roles={"original_info": ("old",), "updated_info": ("new",)}
    )
    exact = Query("e", "g", "?", "c", ("a",), exact=True, forbidden=("f",))
    silent = Query("s", "g", "?", "c", (), exact=True)
    found = lifecycle(
        [
            outcome(update, ("new", "old"), 0.9),
            outcome(exact, ("a", "f"), 0.8),
            outcome(silent, ("x",), 0.1),
        ]
    )
    assert found["fresh-order"] == 1
    assert found["exact precision"] == 0.5
    assert found["silent when nothing fits"] == 0
    assert found["forbidden returned"] == 0


def test_the_command_line_scores_a_folder(tmp_path, capsys):
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    rows = [{"id": item.id, "group": item.group, "text": item.text} for item in ITEMS]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    row = {"id": "q", "group": "a", "query": "parking permit", "category": "c", "relevant": ["d2"]}
    (folder / "queries.jsonl").write_text(json.dumps(row) + "\n")
    given = [
        "--data",
        str(tmp_path / "data"),
        "--sets",
        "toy",
        "--modes",
        "keyword",
        "--cache",
        str(tmp_path / "c"),
    ]
    assert main([*given, "--json", str(tmp_path / "out.json"), "--set", "embedding.provider=none"]) == 0
    assert "| toy | keyword | 1 | 100.0 ±" in capsys.readouterr().out
    assert json.loads((tmp_path / "out.json").read_text())[0]["set"] == "toy"


def test_settings_are_read_as_json_where_they_can_be():
    given = ["search.vector_weight=0.6", "embedding.provider=none", "search.sync_before=false"]
    expected = {"search.vector_weight": 0.6, "embedding.provider": "none", "search.sync_before": False}
    assert overrides(given) == expected


def test_tables_go_between_their_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- measured: x -->\nold\n<!-- end measured -->\nafter\n")
    put(page, "x", "new\n")
    assert page.read_text() == "before\n<!-- measured: x -->\nnew\n<!-- end measured -->\nafter\n"
