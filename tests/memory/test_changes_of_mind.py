"""A change of mind in plain words reaches search and recall: what replaced a statement answers for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.testing import sample_workspace

OpenMemory = Callable[..., Memory]
Note = Callable[[str, str], Path]

#: A statement, the later one that replaces it, and a question that only the first shares words with.
CHANGES = [
    ("I live in Berlin", "I moved to Munich", "Where do I live?"),
    ("We use Jenkins for CI", "We switched from Jenkins to Buildkite", "What do we use for CI?"),
    ("I drink two coffees a day", "I stopped drinking coffee", "How many coffees do I drink a day?"),
    ("我住在柏林", "我搬到慕尼黑了", "我住在哪里？"),
    ("我们用 Jenkins 做持续集成", "我们从 Jenkins 换到了 Buildkite", "我们用什么做持续集成？"),
    ("我每天喝两杯咖啡", "我戒咖啡了", "我每天喝几杯咖啡？"),
    ("项目代号是海燕", "项目代号改成了信天翁", "项目代号是什么？"),
    ("我六点起床", "我现在七点起床", "我几点起床？"),
    ("我住在柏林", "I moved to Munich", "我住在哪里？"),
    ("I live in Berlin", "我搬到慕尼黑了", "Where do I live?"),
    ("The project code name is Petrel", "项目代号改成了信天翁", "What is the code name of the project?"),
]


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory(embedding__provider="local", search__rerank=True)


def recalled(memory: Memory, question: str) -> list[str]:
    return [line.text for line in memory.recall(question).lines]


@pytest.mark.parametrize(("earlier", "later", "question"), CHANGES)
def test_the_later_statement_answers_for_the_one_that_it_replaced(
    memory: Memory, earlier: str, later: str, question: str
) -> None:
    memory.remember(earlier)
    assert recalled(memory, question) == [earlier]
    assert memory.remember(later).action == "superseded"
    assert recalled(memory, question) == [later]
    assert [hit.snippet for hit in memory.search(question).hits] == [later]


def test_an_answer_says_which_earlier_statement_matched_and_recall_has_the_day(memory: Memory) -> None:
    memory.remember("I live in Berlin")
    moved = memory.remember("I moved to Munich").entry
    assert moved is not None
    (hit,) = memory.search("Where do I live?").hits
    assert hit.entry is not None
    assert (hit.entry.entry.id, hit.entry.before, hit.date) == (moved.id, "I live in Berlin", moved.day)
    assert sum(part.contribution for part in hit.explain.parts) == pytest.approx(hit.score)
    assert [line.date for line in memory.recall("Where do I live?").lines] == [moved.day]


def test_a_chain_of_changes_leads_to_its_end(memory: Memory) -> None:
    for text in ("I live in Berlin", "I moved to Munich", "I moved from Munich to Kiel"):
        memory.remember(text)
    assert recalled(memory, "Where do I live?") == ["I moved from Munich to Kiel"]


def test_the_earlier_statement_answers_again_when_the_later_one_is_undone_or_erased(memory: Memory) -> None:
    memory.remember("I live in Berlin")
    memory.remember("I moved to Munich")
    memory.entries.undo()
    assert recalled(memory, "Where do I live?") == ["I live in Berlin"]
    moved = memory.remember("I moved to Munich").entry
    assert moved is not None
    memory.entries.erase(moved.id)
    assert recalled(memory, "Where do I live?") == ["I live in Berlin"]


def test_an_erased_statement_leads_nowhere(memory: Memory) -> None:
    old = memory.remember("My locker is number 4417").entry
    assert old is not None
    memory.entries.supersede(old.id, "I have no locker any more")
    assert [hit.snippet for hit in memory.search("4417").hits] == ["I have no locker any more"]
    memory.entries.erase(old.id)
    assert memory.search("4417").hits == ()


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("用户偏好 TypeScript", "用户偏好使用 TypeScript 进行前端开发"),
        ("I like tea", "I like tea a lot and drink it every morning"),
        ("I prefer Vim", "I prefer using Vim for Python"),
    ],
)
def test_a_refinement_becomes_one_memory_with_its_history(memory: Memory, earlier: str, later: str) -> None:
    old = memory.remember(earlier).entry
    done = memory.remember(later)
    assert old is not None
    assert (done.action, done.replaced) == ("merged", old.id)
    assert [entry.text for entry in memory.entries.list()] == [later]
    assert memory.entries.get(old.id).state == "superseded"


@pytest.mark.parametrize(
    ("one", "other"),
    [("I like tea", "I like tea towels"), ("我喜欢 Java", "我喜欢 Java 咖啡"), ("I like tea", "I love tea")],
)
def test_similar_meaning_alone_does_not_merge(memory: Memory, one: str, other: str) -> None:
    assert [memory.remember(text).action for text in (one, other)] == ["added", "added"]


#: Changes of which the reader is not sure: both statements may stand.
UNSURE = [
    ("I drive a Skoda", "I sold the Skoda", "What car do I drive?"),
    ("我开斯柯达", "我把斯柯达卖了", "我开什么车？"),
    (
        "A pull request needs two approvals",
        "A pull request needs one approval",
        "How many approvals does a pull request need?",
    ),
    ("合并请求需要两个人批准", "合并请求只需要一个人批准", "合并请求需要几个人批准？"),
]


@pytest.mark.parametrize("place", ["entries", "notes"])
@pytest.mark.parametrize(("earlier", "later", "question"), UNSURE)
def test_the_earlier_statement_never_comes_alone_and_both_have_their_day(
    memory: Memory, note: Note, earlier: str, later: str, question: str, place: str
) -> None:
    if place == "entries":
        memory.remember(earlier)
        memory.remember(later)
    else:
        for day, text in enumerate((earlier, "The museum is closed on Mondays", later), 1):
            note(f"memory/2026-03-{day:02}.md", f"- {text}\n")
    lines = memory.recall(question).lines
    assert later in [line.text.removeprefix("- ") for line in lines]
    assert all(line.date for line in lines) or len(lines) == 1


@pytest.mark.parametrize("query", ["why was the site offline at night?", "硬盘满了怎么办？", "日志留多久？"])
def test_no_hit_is_newer_than_itself(open_memory: OpenMemory, workspace: Path, query: str) -> None:
    sample_workspace(workspace)
    memory = open_memory(embedding__provider="local", search__rerank=True)
    for hit in memory.search(query):
        assert hit.citation not in (hit.newer, hit.superseded_by)


#: A statement with further words, and a question that the reranker surely takes it for an answer to.
SURE = [
    ("I work at Siemens as a controls engineer", "Where do I work?"),
    ("I cancelled the gym and train at home", "Where do I train?"),
]


@pytest.mark.parametrize(("statement", "question"), SURE)
def test_a_statement_that_the_reranker_is_sure_of_is_recalled_although_its_meaning_is_far(
    memory: Memory, statement: str, question: str
) -> None:
    memory.remember(statement)
    assert recalled(memory, question) == [statement]
