"""Questions about one's own life find the statement, in both languages and across them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memoriter import Memory

OpenMemory = Callable[..., Memory]

#: A part of lab/evals/sets/life. `python -m lab.evals.life` asks 60 questions among many other lines and finds 75 %.
FACTS = [
    ("I am allergic to penicillin", "我对什么过敏？"),
    ("I live in Leipzig, near the canal", "Where do I live?"),
    ("My daughter is called Ines", "What is my daughter's name?"),
    ("I was born on 14 March 1987", "When is my birthday?"),
    ("My shoe size is 39", "Which shoe size do I wear?"),
    ("My favourite author is Olga Tokarczuk", "Which writer do I like best?"),
    ("I am learning Portuguese with a tutor", "我在学哪门语言？"),
    ("My sister Maren lives in Aarhus", "Where does my sister live?"),
    ("I usually go to bed at half past ten", "What time do I go to sleep?"),
    ("My passport expires in June 2029", "When do I need a new passport?"),
    ("我儿子今年上小学三年级", "我儿子几年级了？"),
    ("我每周三晚上打羽毛球", "我哪天去打球？"),
    ("我们家的猫叫年糕", "What is our cat called?"),
    ("我大学读的是材料专业", "我本科学的什么专业？"),
    ("我最喜欢的歌手是李健", "我最爱听谁的歌？"),
    ("我不吃香菜", "点菜时我忌口什么？"),
    ("我的医保卡放在书房抽屉里", "我的医保卡在哪儿？"),
    ("我小时候在哈尔滨长大", "我是在哪里长大的？"),
]
OTHERS = [
    "The staging cluster has three nodes",
    "Invoices are paid within two weeks",
    "The museum is closed on Mondays",
    "发布前要先跑完整的测试",
    "周报每周五下午发",
    "会议室在三楼尽头",
]


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    memory = open_memory(embedding__provider="local", search__rerank=True)
    for text in (*OTHERS, *(text for text, _ in FACTS)):
        assert memory.remember(text).action == "added", text
    return memory


def test_recall_answers_most_questions_about_ones_own_life(memory: Memory) -> None:
    missed = [
        question
        for text, question in FACTS
        if text not in [line.text for line in memory.recall(question).lines]
    ]
    assert len(missed) <= 2, missed


def test_a_question_about_something_else_recalls_nothing(memory: Memory) -> None:
    assert memory.recall("How do I sort a list in Rust?").lines == ()
