"""Natural queries."""

from __future__ import annotations

import random

from lab.training import queries
from lab.training.config import DataConfig
from lab.training.queries import Ask


def test_a_heading_is_a_query_for_its_section() -> None:
    body = "Garbage collection removes objects that no longer have an owner, and it runs now and then. "
    texts = ["Owners and dependents", body, body * 2, "See also", "Cleanup rules", body * 2]
    assert list(queries.headings(texts, 200)) == [(0, [1, 2]), (4, [5])]


def test_a_repeated_heading_is_not_a_query() -> None:
    body = "A long enough paragraph that explains the thing the heading above it names, in many words."
    assert not list(queries.headings(["See also", body, body, body] * 3, 200))


def test_a_question_turn_is_a_query_for_the_next_turn() -> None:
    texts = [
        "Which is the second song?",
        "It is I like it.",
        "Play that one.",
        "今天天气怎么样？",
        "很好，没有下雨。",
    ]
    assert list(queries.turns(texts)) == [(0, 1), (3, 4)]


def test_questions_belong_to_the_passage_before_them() -> None:
    texts = [
        "第一段文字。",
        "续段文字。",
        "第一个问题是什么？",
        "第二个问题是什么？",
        "另一段文字。",
        "第三个问题是什么？",
    ]
    assert list(queries.passages(texts, 100)) == [(2, [0, 1]), (3, [0, 1]), (5, [4])]


def test_lead_removes_a_sentence_from_its_text() -> None:
    text = "The first sentence says what this is about. " + "Then more of it follows in detail. " * 6
    ask = queries.lead(text, random.Random(0))
    assert ask is not None
    assert ask.query in text
    assert len(ask.text) < len(text)


def test_restated_names_the_speaker() -> None:
    ask = queries.restated("i work in a homeless shelter in my town.", random.Random(3))
    assert ask is not None
    name = ask.text.partition(":")[0]
    assert ask.query == f"{name} works in a homeless shelter in their town"
    chinese = queries.restated("我小时候住在海边的小城。", random.Random(3))
    assert chinese is not None
    assert chinese.query == chinese.text.partition("：")[0] + "小时候住在海边的小城"


def test_questions_are_not_restated() -> None:
    assert queries.restated("Do you like it here?", random.Random(0)) is None


def test_wanted_drops_duplicates_and_limits_each_kind() -> None:
    asks = [Ask("restated", f"q{i}", "t") for i in range(9)] + [Ask("turn", "q", "t")] * 3
    kept = queries.wanted(asks, DataConfig(restatements=4), random.Random(0))
    assert sum(ask.kind == "restated" for ask in kept) == 4
    assert sum(ask.kind == "turn" for ask in kept) == 1


def test_a_heading_may_be_a_question() -> None:
    section = (
        "A Pod is a group of one or more containers, with shared storage and network, and how to run them. "
    )
    texts = ["What is a Pod?", section * 2]
    assert list(queries.headings(texts, 200)) == [(0, [1])]


def test_a_question_is_rephrased_about_the_person_who_answers() -> None:
    ask = queries.asked_about(
        "I love kids. What grade do you teach at your school?", "The second to the sixth.", random.Random(1)
    )
    assert ask is not None
    name, _, answer = ask.text.partition(": ")
    assert ask == Ask("asked", f"What grade does {name} teach at their school?", ask.text)
    assert answer == "The second to the sixth."
    assert queries.is_about(ask.query, ask.text)
    assert not queries.is_about(ask.query, answer)


def test_a_chinese_question_is_rephrased_too() -> None:
    ask = queries.asked_about("你最近在你的学校教几年级？", "我教三年级的学生。", random.Random(1))
    assert ask is not None
    name, _, answer = ask.text.partition("：")
    assert ask.query == f"{name}最近在自己的学校教几年级？"
    assert answer == "我教三年级的学生。"


def test_questions_about_the_speaker_or_without_an_answer_are_not_rephrased() -> None:
    rng = random.Random(1)
    for turn, answer in (
        ("What can you do for me about the car?", "I can repair it tomorrow."),
        ("How far is it to the next station?", "It is two miles from here."),
        ("What grade do you teach at school?", "Why do you ask?"),
        ("What grade do you teach at school?", "Third."),
        ("You teach the third grade at school.", "Yes, and the fourth one."),
    ):
        assert queries.asked_about(turn, answer, rng) is None
