"""No text of a benchmark may reach the training data."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from lab.training import overlap
from lab.training.config import DataConfig
from lab.training.corpus import Line

TURN = "Anna: Last summer we took the night train to Vienna, and the children slept all the way there."
NOTE = "周六下午三点在人民公园门口和李老师见面，记得带上那本借了很久的书。"


def benchmarks() -> overlap.Benchmarks:
    return overlap.Benchmarks([TURN, NOTE, "Where did Anna go?"], DataConfig())


def test_exact_match_ignores_case_and_punctuation() -> None:
    assert benchmarks().verdict("WHERE did Anna go") == "exact"


def test_a_turn_without_its_speaker_is_recognised() -> None:
    assert benchmarks().verdict(TURN.partition(": ")[2]) == "exact"


def test_near_duplicates_in_both_languages() -> None:
    assert benchmarks().verdict(TURN.replace("Last", "One").replace("there", "home")) == "near"
    assert benchmarks().verdict("提醒：" + NOTE.replace("李", "王")) == "near"


def test_other_text_is_kept() -> None:
    found = benchmarks()
    assert not found.verdict("The night train to Vienna leaves at ten from the central station today.")
    assert not found.verdict("周六下午我们在公园见面吧。")


def test_dropped_lines_are_counted() -> None:
    counts: Counter[str] = Counter()
    lines = [Line("tatoeba", "Something else.", NOTE), Line("sgd", "A free line of talk.")]
    assert list(overlap.free(lines, benchmarks(), counts)) == lines[1:]
    assert counts == {"tatoeba/read": 1, "tatoeba/exact": 1, "sgd/read": 1}


def test_benchmark_texts_reads_items_questions_and_answers(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    rows = [{"text": "an item"}, {"query": "a question", "answer": 7}]
    path = tmp_path / "set" / "queries.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert list(overlap.benchmark_texts(tmp_path)) == ["an item", "a question"]
