"""The harness, end to end over a toy set: notes written, found, scored, reported."""

from __future__ import annotations

import json

import pytest

from lab.evals.__main__ import main
from lab.evals.figures import calibration, calibration_error, figures, lifecycle
from lab.evals.folds import cross_validated, judged_by_others
from lab.evals.options import overrides
from lab.evals.report import markdown
from lab.evals.run import Opener, Outcome, SetResult, Setup, run_sets, sampled, write_notes
from lab.evals.sets import EvalSet, Item, Query
from lab.evals.variants import MODES, Variant, without
from lab.page import put
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


def run_toy(setup, *variants: Variant, chosen: EvalSet = TOY) -> SetResult:
    [result] = run_sets([chosen], variants, setup)
    return result


def test_a_toy_set_is_found_in_every_mode(setup):
    result = run_toy(setup, *MODES.values())
    for outcomes in result.outcomes.values():
        ranked = {outcome.query.id: outcome.ranked for outcome in outcomes}
        assert (ranked["q1"][0], ranked["q2"][0], ranked["q3"][0]) == ("d1", "d3", "e1")
        assert ranked["q4"] == ()
        assert set(ranked["q3"]) <= {"e1"}  # a search never leaves its group
    assert sum(build.items for build in result.builds) == len(ITEMS)


def test_a_second_run_embeds_nothing(setup):
    first = run_toy(setup, Variant("index"), chosen=EvalSet("toy", ITEMS, ()))
    before = setup.embedder.texts
    again = run_toy(setup, Variant("index"), chosen=EvalSet("toy", ITEMS, ()))
    assert setup.embedder.texts == before == len(ITEMS)
    assert [build.chunks for build in again.builds] == [build.chunks for build in first.builds]


def test_figures_hold_means_intervals_and_differences(setup):
    found = figures(run_toy(setup, *MODES.values()))
    hybrid = found["modes"]["hybrid"]
    assert hybrid["queries"] == 4
    assert hybrid["measures"]["MRR"]["mean"] == pytest.approx(
        0.75
    )  # three found first, one in an empty group
    assert hybrid["categories"]["pets"]["nDCG@10"]["mean"] == 1
    assert found["differences"]["hybrid − keyword"]["MRR"]["mean"] == pytest.approx(0)
    page = markdown([found])
    assert "| toy | hybrid | 4 | 75.0 ±" in page
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("part", "left"),
    [
        ("context", ["vector", "keyword", "rerank"]),
        ("keyword", ["vector", "context", "rerank"]),
        ("rerank", ["vector", "keyword", "context"]),
        ("vector", ["keyword", "context"]),
    ],
)
def test_an_ablation_leaves_a_part_out_of_the_score(setup, tmp_path, part, left):
    write_notes(tmp_path / "notes", ITEMS[:3])
    (tmp_path / "home").mkdir()
    opener = Opener(tmp_path / "notes", tmp_path / "home", setup)
    with opener.open(without(part, None)) as memory:
        memory.sync()
        [best, *_] = memory.search("Where does the cat sleep?", min_score=0.0).hits
    assert [part.name for part in best.explain.parts if part.weight] == left


def test_what_a_part_contributes_is_measured_on_a_sample_of_the_queries(setup):
    found = figures(run_toy(setup, MODES["hybrid"], without("vector", 1)))
    assert found["parts"]["vector"]["queries"] == 3  # one of each group
    assert found["parts"]["vector"]["contributes"]["nDCG@10"]["mean"] == pytest.approx(0)


def test_a_sample_is_the_same_in_every_run_and_keeps_the_order():
    queries = [Query(str(number), "g", "?", "c", ()) for number in range(50)]
    chosen = sampled(queries, 10)
    assert len(chosen) == 10
    assert list(chosen) == [query for query in queries if query in chosen]
    assert sampled(list(reversed(queries)), 10) == list(reversed(chosen))
    assert sampled(queries, None) == sampled(queries, 60) == queries


def test_several_processes_find_the_same_as_one(tmp_path):
    only_keywords = {"embedding.provider": "none"}
    alone = run_toy(Setup(tmp_path, only_keywords, jobs=1), MODES["keyword"])
    together = run_toy(Setup(tmp_path, only_keywords, jobs=2), MODES["keyword"])
    ranked = [[outcome.ranked for outcome in result.outcomes["keyword"]] for result in (alone, together)]
    assert ranked[0] == ranked[1]


def test_questions_of_another_group_have_no_answer_and_no_effect_on_the_means(setup):
    plain, foreign = (
        figures(run_toy(setup, MODES["hybrid"], chosen=one)) for one in (TOY, TOY.with_foreign(1))
    )
    modes = [one["modes"]["hybrid"] for one in (plain, foreign)]
    assert modes[0]["measures"] == modes[1]["measures"]
    asked = [query for query in TOY.with_foreign(1).queries if query.foreign]
    assert [(query.group, query.relevant, query.unanswerable) for query in asked] == [
        ("a", (), True),
        ("b", (), True),
        ("c", (), True),
    ]


def outcome_of(query: Query, ranked: tuple[str, ...], confidence: float = 0.5) -> Outcome:
    judged = ((confidence, ranked[0] in query.relevant),)
    return Outcome(query, ranked, confidence, judged=judged)


def test_weights_are_chosen_without_the_group_they_are_measured_on():
    queries = [Query(group, group, "?", "c", ("right",)) for group in "abc"]

    def answers(right: str) -> list[Outcome]:
        return [outcome_of(query, ("right",) if query.group in right else ("wrong",)) for query in queries]

    result = SetResult(
        "toy", {"hybrid": answers("a"), "first": answers("a"), "second": answers("bc")}, [], ""
    )
    found = cross_validated([result], ["first", "second"])
    # Without "b", groups a and c are tied and the first candidate wins; so with "c" left out.
    assert found["chosen"] == {"first": 2, "second": 1}
    toy = found["sets"]["toy"]
    assert (toy["default"]["mean"], toy["left out"]["mean"]) == (pytest.approx(1 / 3), pytest.approx(0))
    assert toy["hindsight"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("names", [("toy", "toy"), ("everyday", "toy")])
def test_confidence_is_that_of_a_model_fitted_to_the_other_groups(names):
    def answer(group: str, number: int, *, right: bool) -> Outcome:
        query = Query(f"{group}{number}", group, "?", "c", ("right",))
        features = {"rerank": 2.0 if right else -2.0, "meaning": 1.0, "words": 0.5, "gap": 0.0}
        unread = {"meaning": 1.0, "words": 0.5, "gap": 0.0}
        return Outcome(query, ("x",), 0.5, judged=((0.5, right), (0.1, False)), features=(features, unread))

    # A set to which the package's own confidence is fitted may have one group: then the other set serves.
    sets = [
        SetResult(
            name, {"hybrid": [answer(group, number, right=number % 2 == 0) for number in range(6)]}, [], ""
        )
        for name, group in zip(names, "ab", strict=True)
    ]
    for result in judged_by_others(sets):
        sure = [outcome.confidence for outcome in result.outcomes["hybrid"]]
        assert all(value > 0.8 if number % 2 == 0 else value < 0.2 for number, value in enumerate(sure))
        assert [outcome.judged[0][1] for outcome in result.outcomes["hybrid"]] == [True, False] * 3
        assert {outcome.judged[1] for outcome in result.outcomes["hybrid"]} == {(0.1, False)}


def test_the_calibration_curve_compares_confidence_with_right_answers():
    query = Query("q", "g", "?", "c", ("right",))
    bins = calibration(
        [
            outcome_of(query, ("right",), 0.95),
            outcome_of(query, ("wrong",), 0.15),
            outcome_of(query, ("right",), 0.15),
        ]
    )
    shown = [(one["from"], one["queries"], one["confidence"], one["right"]) for one in bins]
    assert shown == [(0.1, 2, pytest.approx(0.15), 0.5), (0.9, 1, pytest.approx(0.95), 1.0)]
    assert calibration_error(bins) == pytest.approx((2 * 0.35 + 0.05) / 3)


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
        "--jobs",
        "1",
    ]
    assert main([*given, "--json", str(tmp_path / "out.json"), "--set", "embedding.provider=none"]) == 0
    assert "| toy | keyword | 1 | 100.0 ±" in capsys.readouterr().out
    assert json.loads((tmp_path / "out.json").read_text())["sets"][0]["set"] == "toy"


def test_settings_are_read_as_json_where_they_can_be():
    given = ["search.vector_weight=0.6", "embedding.provider=none", "search.sync_before=false"]
    expected = {"search.vector_weight": 0.6, "embedding.provider": "none", "search.sync_before": False}
    assert overrides(given) == expected


def test_tables_go_between_their_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- measured: x -->\nold\n<!-- end measured -->\nafter\n")
    put(page, "x", "new\n")
    assert page.read_text() == "before\n<!-- measured: x -->\nnew\n<!-- end measured -->\nafter\n"
