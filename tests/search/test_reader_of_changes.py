"""The judge of changes: which later statement puts an earlier one out of date, and what happens without the model."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.search import changes
from memoriter.search.changes import BUNDLED, Reader, as_statement, change
from memoriter.tools.doctor import check_memory

OpenMemory = Callable[..., Memory]

CHANGES = [
    ("We use Jenkins for CI", "We switched from Jenkins to Buildkite"),
    ("I drink coffee every morning", "I stopped drinking coffee"),
    ("项目代号是海鸥", "项目代号改成了信天翁"),
    ("My phone number is 555-0134", "My phone number is 555-0199"),
    ("默认超时是 30 秒", "默认超时是 60 秒"),
    ("I own a Martin D-18", "Traded the Martin for a Collings"),
    ("我住在巴黎", "我搬到柏林了"),
    ("The dentist is on 3 May", "The dentist moved to 10 May"),
    ("体检是5月3号", "体检改到5月10号了"),
]
BOTH_STAND = [
    ("My shoe size is 42", "My son's shoe size is 31"),
    ("I eat rice for lunch", "I eat bread for breakfast"),
    ("我家有一只橘猫", "我家有一只柯基"),
    ("I have a cat", "I have a dog"),
    ("The soup is hot", "The soup is salty"),
    ("I speak French", "I speak German"),
    ("我用Vim", "我用tmux"),
    ("Bonus March 2025: 2,100", "Bonus March 2026: 2,600"),
    ("Blood test 3 Feb: iron low, 22", "Blood test 20 May: iron 48, fine again"),
    ("3月电费212元", "4月电费198元"),
]


@pytest.mark.parametrize(("earlier", "later"), CHANGES)
def test_a_change_in_plain_words_retires_the_earlier_statement(earlier: str, later: str) -> None:
    assert change(Reader(), earlier, later)[0] == "retired"


@pytest.mark.parametrize(("earlier", "later"), BOTH_STAND)
def test_statements_that_may_both_be_true_stand(earlier: str, later: str) -> None:
    assert change(Reader(), earlier, later)[0] != "retired"


def test_a_change_that_is_remembered_retires_the_entry_and_undo_restores_it(open_memory: OpenMemory) -> None:
    memory = open_memory(embedding__provider="local", search__rerank=True)
    old = memory.remember("We use Jenkins for CI").entry
    done = memory.remember("We switched from Jenkins to Buildkite")
    assert old is not None
    assert (done.action, done.replaced) == ("superseded", old.id)
    assert memory.entries.get(old.id).state == "superseded"
    memory.entries.undo()
    assert memory.entries.get(old.id).state == "active"


def test_a_change_that_shares_a_word_marks_a_line_that_is_less_near(open_memory: OpenMemory) -> None:
    memory = open_memory(embedding__provider="local", search__rerank=True)
    memory.remember("Prod runs on Hetzner")
    memory.remember("We moved prod to OVH")
    hits = memory.search("where does prod run?").hits
    assert [(hit.snippet, bool(hit.superseded_by)) for hit in hits] == [
        ("We moved prod to OVH", False),
        ("Prod runs on Hetzner", True),
    ]


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Where do I live?", "I moved to Munich"),
        ("Where do I live?", "I moved to Munich last spring."),
        ("我住在哪里？", "我搬到慕尼黑了"),
        ("我住在哪里？", "I moved to Munich"),
    ],
)
def test_a_question_recalls_the_change_that_answers_it(
    open_memory: OpenMemory, question: str, statement: str
) -> None:
    memory = open_memory(embedding__provider="local", search__rerank=True)
    for text in (statement, "I drink my coffee black", "My dentist is Dr. Weber"):
        memory.remember(text)
    assert [line.text for line in memory.recall(question).lines] == [statement]
    assert memory.search(question).hits[0].snippet == statement
    for other in ("What is my favourite colour?", "When does the shop open?", "我的车停在哪？"):
        assert not memory.recall(other).lines


def test_a_question_reads_as_a_statement_without_its_question_words() -> None:
    questions = ("Where do I live?", "which guitar does my son play", "我住在哪里？", "Is it open?", "谁？")
    assert [as_statement(question) for question in questions] == ["I live", "my son play", "我住在", "", ""]


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    shutil.copytree(BUNDLED, tmp_path / "model")
    (tmp_path / "model" / "model.onnx").write_bytes(b"damaged")
    found = Reader(tmp_path / "model")
    monkeypatch.setattr(changes, "reader", lambda: found)
    return found


def test_without_a_model_exact_denials_count_and_the_checks_say_so(
    broken: Reader, open_memory: OpenMemory
) -> None:
    memory = open_memory(embedding__provider="local", search__rerank=True)
    for earlier, later in CHANGES:
        memory.remember(earlier)
        assert memory.remember(later).action in ("added", "superseded")
    memory.remember("I smoke")
    assert memory.remember("I don't smoke").action == "superseded"
    assert memory.search("which CI do we use?").hits
    assert broken.out_of_date(*CHANGES[0]) is None
    assert str(broken.problem()).startswith("Changes are recognised by exact denials only: ")
    assert [one.text for one in check_memory(memory, memory.status()) if one.name == "changes"] == [
        broken.problem()
    ]


def test_a_missing_folder_answers_nothing(tmp_path: Path) -> None:
    assert Reader(tmp_path / "none").out_of_date(*CHANGES[0]) is None
