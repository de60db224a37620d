"""The sets: that ours is whole, and that the uniform form is read as it is written."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from lab.evals.sets import OWN, find_sets, language_of, load_set, parse_day
from memoriter.text import query_terms, tokenize

MEMORIES = [json.loads(line) for line in (OWN / "memories/corpus.jsonl").read_text("utf-8").splitlines()]
QUESTIONS = [json.loads(line) for line in (OWN / "memories/queries.jsonl").read_text("utf-8").splitlines()]
BY_ID = {memory["id"]: memory for memory in MEMORIES}


def test_there_are_enough_pairs_in_both_languages():
    same = Counter(q["lang"] for q in QUESTIONS if q["category"] != "cross-language")
    crossing = [q for q in QUESTIONS if q["category"] == "cross-language"]
    assert min(same["zh"], same["en"]) >= 200
    assert len(crossing) >= 80
    assert min(Counter(memory["group"] for memory in MEMORIES).values()) >= 100


def test_ids_and_texts_occur_once():
    assert len(BY_ID) == len({memory["text"] for memory in MEMORIES}) == len(MEMORIES)
    assert (
        len({q["id"] for q in QUESTIONS})
        == len({(q["group"], q["query"]) for q in QUESTIONS})
        == len(QUESTIONS)
    )


def test_every_answer_exists_in_the_questions_own_group():
    for question in QUESTIONS:
        assert question["relevant"]
        assert {BY_ID[item]["group"] for item in question["relevant"]} == {question["group"]}


def test_every_memory_is_asked_for():
    assert {item for question in QUESTIONS for item in question["relevant"]} == BY_ID.keys()


def test_each_side_is_in_the_language_it_says():
    for row in MEMORIES:
        assert language_of(row["text"]) == row["lang"], row
    for question in QUESTIONS:
        assert language_of(question["query"]) == question["lang"], question
        crosses = BY_ID[question["relevant"][0]]["lang"] != question["lang"]
        assert crosses == (question["category"] == "cross-language"), question


def test_a_query_knows_the_languages_of_question_and_answer():
    memories = load_set("memories", *find_sets(OWN)["memories"])
    crossing = {query.language for query in memories.queries if query.category == "cross-language"}
    assert crossing == {"zh → en", "en → zh"}
    assert {query.language for query in memories.queries} - crossing == {"zh", "en"}


def test_paraphrases_are_many_and_share_hardly_a_word_with_their_answer():
    same = [q for q in QUESTIONS if q["category"] != "cross-language"]
    paraphrases = [q for q in same if q["category"] == "paraphrase"]
    shares = []
    for question in paraphrases:
        answer = set().union(*(tokenize(BY_ID[item]["text"]) for item in question["relevant"]))
        terms = query_terms(question["query"])
        shares.append(sum(term in answer for term in terms) / len(terms))
    assert len(paraphrases) >= 0.4 * len(same)
    assert sum(shares) / len(shares) < 0.1


@pytest.mark.parametrize(
    ("time", "day"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08"),
        ("March-15-2024", "2024-03-15"),
        ("2025-05-12 19:35:20", "2025-05-12"),
        ("2026-10-01T00:00:00Z", "2026-10-01"),
        ("2025-02-30", None),
        ("some day", None),
        ("", None),
    ],
)
def test_days_are_read_in_the_forms_that_sets_use(time, day):
    assert parse_day(time) == day


def test_a_set_is_read_with_its_optional_fields(tmp_path):
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"id": "1", "group": "g", "text": "one", "time": "2025-01-02"}\n')
    (folder / "queries.jsonl").write_text(
        '{"id": "q", "group": "g", "query": "?", "category": "c", "relevant": ["1"], "facets": [["1"]],'
        ' "roles": {"updated_info": ["1"]}, "exact": true, "forbidden": ["2"]}\n'
        '{"id": "n", "group": "h", "query": "?", "category": "c", "relevant": []}\n'
    )
    toy = load_set("toy", *find_sets(tmp_path)["toy"])
    first, second = toy.queries
    assert (first.facets, first.exact, first.forbidden, first.abstain) == ((("1",),), True, ("2",), False)
    assert first.roles == {"updated_info": ("1",)}
    assert second.abstain
    assert [group for group, _, _ in toy.groups()] == ["g", "h"]
    assert toy.items[0].day == "2025-01-02"
