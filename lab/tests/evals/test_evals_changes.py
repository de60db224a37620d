"""The set of changes: that it is whole, and what is counted on a small one."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product

import pytest

from lab.evals.changes import FOLDER, KINDS, MISSING, OUTCOMES, judge, outcome, report
from lab.evals.everyday import read_rows
from lab.evals.sets import language_of

PAIRS, OTHERS = (read_rows(FOLDER, name) for name in ("pairs", "others"))


def test_both_labels_are_large_enough_in_both_halves() -> None:
    counts = Counter((pair["split"], pair["label"]) for pair in PAIRS)
    assert counts == dict.fromkeys(product(("development", "held-out"), ("replaced", "stands")), 174)
    assert sum(pair["long"] for pair in PAIRS) * 4 >= len(PAIRS)


def test_no_topic_is_in_both_halves() -> None:
    topics = {
        split: {pair["topic"] for pair in PAIRS if pair["split"] == split}
        for split in ("development", "held-out")
    }
    assert topics["development"] & topics["held-out"] == set()


def test_every_line_occurs_once_and_the_later_one_is_newer() -> None:
    lines = [pair[name]["text"] for pair in PAIRS for name in ("earlier", "later")]
    lines += [other["text"] for other in OTHERS]
    assert [line for line, count in Counter(lines).items() if count > 1] == []
    assert len({pair["id"] for pair in PAIRS}) == len(PAIRS)
    assert [pair["id"] for pair in PAIRS if pair["earlier"]["day"] >= pair["later"]["day"]] == []


def test_languages_and_places_are_those_of_the_lines() -> None:
    counts = Counter(pair["language"] for pair in PAIRS)
    chinese, across = counts["zh"] + counts["zh-Hant"], counts["en-zh"] + counts["zh-en"]
    assert min(chinese, counts["en"]) >= 300
    assert counts["zh-Hant"] * 6 >= chinese
    assert across >= 40
    for pair in PAIRS:
        spoken = [language_of(pair[name]["text"]) for name in ("earlier", "later")]
        written = pair["language"].replace("-Hant", "").split("-")
        assert spoken == (written * 2)[:2], pair
    assert {pair["place"] for pair in PAIRS} == {other["place"] for other in OTHERS} == KINDS.keys()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [(MISSING, 0, 0), (2, 1, 1), (1, 1, 1), (0, 1, 2), (0, MISSING, 3), (MISSING, MISSING, 4)],
)
def test_a_prompt_is_named_by_the_places_of_both_lines(old: int, new: int, expected: int) -> None:
    assert outcome(old, new) == OUTCOMES[expected]


def make_pair(
    topic: str, label: str, earlier: str, later: str, question: str, **fields: object
) -> dict[str, object]:
    return {
        "id": f"{topic}.01",
        "split": "development",
        "language": "en",
        "topic": topic,
        "place": "entry",
        "long": False,
        "earlier": {"text": earlier, "day": "2026-01-05"},
        "later": {"text": later, "day": "2026-03-05"},
        "label": label,
        "question": question,
        "answer_in": "later" if label == "replaced" else "earlier",
        **fields,
    }


TOY = [
    make_pair("home", "replaced", "I live in Berlin", "I don't live in Berlin", "do I live in Berlin?"),
    make_pair(
        "pet", "stands", "My cat is called Miso", "My brother plays the tuba", "what is my cat called?"
    ),
    make_pair(
        "cat",
        "stands",
        "我家的猫叫年糕",
        "我弟弟会吹大号",
        "我家的猫叫什么？",
        language="zh",
        place="note",
        long=True,
    ),
]


def test_a_judge_is_measured_by_group() -> None:
    pairs = [*TOY, make_pair("letters", "replaced", "a", "b", "c", language="zh-Hant", long=True)]
    scores = {"I live in Berlin": 2.0, "My cat is called Miso": 1.0, "我家的猫叫年糕": -1.0, "a": 0.0}
    none, half, full = "0.0 % (0 of 1)", "50.0 % (1 of 2)", "100.0 % (1 of 1)"
    assert judge(pairs, lambda earlier, _: scores[earlier], [0.5]) == {
        "AUROC": {"all": "0.750", "en": "1.000", "zh": "1.000", "long": "1.000", "entry": "0.500"},
        "changes above 0.500": {"all": half, "en": full, "zh": none, "long": none, "entry": half},
        "pairs that stand above 0.500": {"all": half, "en": full, "zh": none, "long": none, "entry": full},
    }


def test_a_memory_is_measured_on_every_pair(tmp_path) -> None:
    others = [
        {"id": "o", "language": "en", "place": "note", "text": "The ferry has a horn", "day": "2026-01-01"}
    ]
    for name, rows in (("pairs", TOY), ("others", others)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    lines = [line for line in report(["development"], folder=tmp_path) if line]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
    assert {name: everything for name, everything, *_ in cells[1:]} == {
        "changes recognised: retired or marked": "100.0 % (1 of 1)",
        "changes with a retired entry": "100.0 % (1 of 1)",
        "newer statement retired or marked": "0.0 % (0 of 1)",
        "pairs that stand, retired or marked": "0.0 % (0 of 2)",
        "pairs that stand with a retired entry": "0.0 % (0 of 2)",
        "search: new above old": "100.0 % (1 of 1)",
        "recall: new alone": "100.0 % (1 of 1)",
        "recall: both, new first": "0.0 % (0 of 1)",
        "recall: both, old first": "0.0 % (0 of 1)",
        "recall: old alone": "0.0 % (0 of 1)",
        "recall: none": "0.0 % (0 of 1)",
        "recall: answer, of pairs that stand": "100.0 % (2 of 2)",
        "other entries retired": "0",
    }
