"""The set of near misses: that it is whole, and what is counted on outcomes."""

from __future__ import annotations

from collections import Counter

from lab.evals.everyday import SPLITS, read_rows
from lab.evals.run import Outcome
from lab.evals.sets import Query, language_of
from lab.evals.silence import FOLDER, by_language, half, table

NOTES, QUESTIONS = (read_rows(FOLDER, name) for name in ("corpus", "queries"))
ANSWERABLE = [row for row in QUESTIONS if row["relevant"]]
MISSES = [row for row in QUESTIONS if row.get("abstain")]
WRITTEN = {row["group"]: row["lang"] for row in NOTES}


def test_every_person_has_enough_notes_and_questions_of_both_kinds() -> None:
    notes, answerable, misses = (
        Counter(row["group"] for row in rows) for rows in (NOTES, ANSWERABLE, MISSES)
    )
    assert notes.keys() == answerable.keys() == misses.keys()
    assert all(60 <= count <= 70 for count in notes.values())
    assert min(*answerable.values(), *misses.values()) >= 40
    assert Counter(WRITTEN.values()) == {"en": 4, "zh": 3, "zh-Hant": 1}


def test_a_question_either_names_notes_of_its_person_or_has_no_answer() -> None:
    groups = {row["id"]: row["group"] for row in NOTES}
    assert len(ANSWERABLE) + len(MISSES) == len(QUESTIONS)
    assert [row for row in MISSES if row["relevant"]] == []
    assert [
        row for row in ANSWERABLE if {groups.get(item) for item in row["relevant"]} != {row["group"]}
    ] == []


def test_ids_and_texts_occur_once() -> None:
    for rows, name in ((NOTES, "text"), (QUESTIONS, "query")):
        assert len({row["id"] for row in rows}) == len({row[name] for row in rows}) == len(rows)


def test_each_half_holds_four_people_two_of_them_english() -> None:
    halves = {row["group"]: row["split"] for row in QUESTIONS}
    assert [row for row in QUESTIONS if halves[row["group"]] != row["split"]] == []
    people = Counter((split, WRITTEN[group] == "en") for group, split in halves.items())
    assert people == {(split, english): 2 for split in SPLITS for english in (True, False)}
    assert {split: {item.group for item in half(split).items} for split in SPLITS} == {
        split: {group for group in halves if halves[group] == split} for split in SPLITS
    }


def test_each_text_is_in_the_language_it_says() -> None:
    texts = [(row["lang"], row["text"]) for row in NOTES] + [(row["lang"], row["query"]) for row in QUESTIONS]
    assert [text for language, text in texts if language_of(text) != language.removesuffix("-Hant")] == []
    crossing = [row for row in ANSWERABLE if row["lang"] != WRITTEN[row["group"]]]
    assert crossing == [row for row in ANSWERABLE if row["category"] == "cross-language"]
    assert len(crossing) * 10 >= len(ANSWERABLE)
    assert 3 * sum(row["category"] == "paraphrase" for row in ANSWERABLE) >= len(ANSWERABLE)


def test_the_table_counts_labels_and_first_hits() -> None:
    known, silent = (
        Query("q1", "a", "known", "plain", ("n1",)),
        Query("q2", "a", "not", "other", (), abstain=True),
    )
    outcomes = [
        Outcome(known, ("n1",), 0.9, judged=((0.9, True),)),
        Outcome(known, ("n2", "n1"), 0.3, judged=((0.3, False), (0.2, True))),
        Outcome(silent, ("n2",), 0.6, judged=((0.2, False), (0.6, False))),
        Outcome(silent, (), 0.0),
    ]
    assert list(table("development", by_language(outcomes, [{"group": "a", "lang": "en"}]))) == [
        "| development | all | en |",
        "| --- | --- | --- |",
        "| AUROC of the answer's confidence | 0.750 | 0.750 |",
        "| answerable: the first hit is right | 50.0 % (1 of 2) | 50.0 % (1 of 2) |",
        "| `high` that is right | 100.0 % (1 of 1) | 100.0 % (1 of 1) |",
        "| `medium` that is right | 0.0 % (0 of 2) | 0.0 % (0 of 2) |",
        "| `low` that is right | 0.0 % (0 of 0) | 0.0 % (0 of 0) |",
        "| unanswerable: a hit is `high` | 50.0 % (1 of 2) | 50.0 % (1 of 2) |",
    ]
