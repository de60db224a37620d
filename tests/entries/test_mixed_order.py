"""Notes and entries in one answer: the better one comes first, whichever it is. With the bundled model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoriter import Memory

LOG = """# 2026-02-08

## Infrastructure

- The staging database moved to db-stage-04. The old machine is switched off in March.
- Nightly backups go to the bucket kestrel-backups and are kept for thirty days.
- The TLS certificate of the gateway is renewed by certbot every sixty days.

## Team

- Priya takes over the billing service from Tomás on the first of April.
- The retrospective moved from Friday to Thursday at ten.
- The new office in Porto has room for twelve people.

## Trip

- The train to Lisbon leaves at 07:40 from platform three.
- The hotel near the Alfama is paid until Sunday.
"""

LOG_ZH = """# 2026-02-09

## 家里

- 橘猫豆包肾不好，只能吃处方粮，每三个月复查一次。
- 房租从六千五降到六千二，合同续到明年三月。
- 热水器的保修期到今年十月。

## 工作

- 发布流程改成每周二上午，由小陈负责。
- 测试环境的密码每个季度换一次。
- 客户演示定在二十号下午三点。
"""

#: Statement and importance. Important ones are many, so that importance would decide if it could.
ENTRIES = (
    ("I prefer tabs over spaces in Go files", 5),
    ("My favourite editor theme is Solarized dark", 4),
    ("I am allergic to peanuts", 5),
    ("Anna leads the payments project", 4),
    ("We write commit messages in the imperative", 5),
    ("My dentist is Dr. Okafor on Mill Street", 3),
    ("I run ten kilometres every Saturday morning", 4),
    ("Never deploy on a Friday", 5),
    ("我喜欢喝不加糖的绿茶", 5),
    ("女儿在学钢琴，老师姓周", 4),
    ("代码评审必须有两个人通过", 5),
    ("我对青霉素过敏", 5),
)

#: Query, then a part of the text that must come first.
NOTE_WINS = (
    ("Which machine runs the staging database?", "db-stage-04"),
    ("where do the nightly backups go", "kestrel-backups"),
    ("how is the TLS certificate renewed", "certbot"),
    ("Who is responsible for the billing service from April?", "Priya"),
    ("When is the retrospective?", "Thursday at ten"),
    ("How many people fit into the Porto office?", "twelve people"),
    ("When does the train to Lisbon leave?", "07:40"),
    ("until when is the hotel paid", "Alfama"),
    ("猫要吃什么粮？", "处方粮"),
    ("现在房租多少钱？", "六千二"),
    ("热水器还在保修吗", "保修期"),
    ("每周哪天发布？", "每周二"),
    ("客户演示是什么时候", "二十号"),
)
ENTRY_WINS = (
    ("tabs or spaces in Go?", "I prefer tabs"),
    ("Which colour theme do I like in my editor?", "Solarized"),
    ("What am I allergic to? peanuts?", "peanuts"),
    ("Who leads the payments project?", "Anna"),
    ("how do we write commit messages", "imperative"),
    ("What is the name of my dentist?", "Okafor"),
    ("how far do I run on Saturdays", "ten kilometres"),
    ("May we deploy on Friday?", "Never deploy"),
    ("我平时喝什么茶？", "绿茶"),
    ("钢琴老师姓什么？", "姓周"),
    ("代码评审要几个人通过？", "两个人"),
    ("我对什么药过敏？", "青霉素"),
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    root: Path = tmp_path_factory.mktemp("mixed")
    (root / "notes" / "memory").mkdir(parents=True)
    (root / "notes" / "memory" / "2026-02-08.md").write_text(LOG, encoding="utf-8")
    (root / "notes" / "memory" / "2026-02-09.md").write_text(LOG_ZH, encoding="utf-8")
    with Memory.open(root / "notes", home=root / "home") as memory:
        memory.sync()
        for text, importance in ENTRIES:
            memory.entries.add(text, "fact", importance=importance)
        yield memory


@pytest.mark.parametrize(("query", "text"), NOTE_WINS)
def test_a_note_that_answers_better_comes_before_every_entry(memory: Memory, query: str, text: str) -> None:
    best = memory.search(query).hits[0]
    assert (best.source, text in best.snippet) == ("memory", True)


@pytest.mark.parametrize(("query", "text"), ENTRY_WINS)
def test_an_entry_that_answers_better_comes_before_every_note(memory: Memory, query: str, text: str) -> None:
    best = memory.search(query).hits[0]
    assert (best.source, text in best.snippet) == ("entries", True)


@pytest.mark.parametrize(("query", "text"), ENTRY_WINS)
def test_recall_includes_the_entry_that_answers(memory: Memory, query: str, text: str) -> None:
    assert text in memory.recall(query).text


def test_scores_of_entries_and_notes_are_the_sums_of_their_parts(memory: Memory) -> None:
    for query, _ in (*NOTE_WINS, *ENTRY_WINS):
        for hit in memory.search(query, max_results=20, min_score=0.0).hits:
            assert sum(part.contribution for part in hit.explain.parts) == pytest.approx(hit.score)
            assert 0 <= hit.score <= 1
