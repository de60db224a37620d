from __future__ import annotations

from typing import Any

import pytest

from evals.merge import UNSEEN, judged, pairs, score, wrong_merges
from memoriter.entries import Draft, Entries
from memoriter.entries.relation import relation
from memoriter.records import Remembered


def say(entries: Entries, text: str, **more: object) -> Remembered:
    return entries.add_draft(Draft(text, **({"type": "fact"} | more)))  # type: ignore[arg-type]


def texts(entries: Entries) -> list[str]:
    return sorted(entry.text for entry in entries.list())


def test_a_refinement_supersedes_the_entry_it_refines(entries: Entries) -> None:
    old = say(entries, "We deploy on Tuesdays", importance=4, tags=("ops",)).entry
    done = say(entries, "We deploy on Tuesdays after the stand-up", confidence=0.8)
    assert old is not None
    assert done.entry is not None
    assert (done.action, done.replaced) == ("merged", old.id)
    assert (done.entry.importance, done.entry.confidence, done.entry.tags) == (4, 1.0, ("ops",))
    assert texts(entries) == ["We deploy on Tuesdays after the stand-up"]
    kept = entries.get(old.id)
    assert (kept.state, kept.superseded_by) == ("superseded", done.entry.id)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Paris", "I moved to Berlin"),
        ("我住在巴黎", "我搬到柏林了"),
        ("订单服务使用 MySQL", "订单服务改用 PostgreSQL"),
        ("我每天早上喝咖啡", "我早上不再喝咖啡了"),
        ("我們使用 MySQL", "我們改用 PostgreSQL 了"),
    ],
)
def test_a_contradiction_supersedes_and_the_old_one_stays_as_history(open_: Any, old: str, new: str) -> None:
    entries = open_()
    entries._follower.embedder = None  # words alone: the hashing embedder knows no meaning
    first = say(entries, old).entry
    done = say(entries, new)
    assert first is not None
    assert (done.action, done.replaced, texts(entries)) == ("superseded", first.id, [new])
    assert entries.get(first.id).state == "superseded"
    entries.undo()
    assert texts(entries) == [old]


def test_similar_statements_are_not_the_same(entries: Entries) -> None:
    for text in ("I like apples", "I like oranges", "Invoice 1041 was paid", "Invoice 1042 was paid"):
        assert say(entries, text).action == "added"
    assert len(entries.list()) == 4


def test_merging_stays_within_a_type(entries: Entries) -> None:
    say(entries, "We deploy on Tuesdays", type="workflow")
    assert say(entries, "We deploy on Tuesdays after the stand-up", type="fact").action == "added"


def test_a_less_trusted_statement_never_changes_a_more_trusted_entry(entries: Entries) -> None:
    entries._follower.embedder = None
    mine = say(entries, "I live in Paris").entry
    assert say(entries, "I moved to Berlin", trust="untrusted").action == "added"
    assert mine is not None
    assert entries.get(mine.id).state == "active"
    again = say(entries, "I live in Paris", trust="untrusted", importance=5).entry
    assert again is not None
    assert (again.id, again.trust, again.importance) == (mine.id, "owner", 3)


def test_a_merged_entry_is_as_little_trusted_as_its_least_trusted_part(entries: Entries) -> None:
    say(entries, "The server is in Oslo", trust="untrusted")
    done = say(entries, "The server is in Oslo near the harbour", trust="owner")
    assert done.entry is not None
    assert (done.action, done.entry.trust) == ("merged", "untrusted")


def test_no_labelled_pair_is_merged_or_superseded_wrongly() -> None:
    for name, found in (("seen", pairs()), ("unseen", pairs(UNSEEN))):
        results = judged(found, [None] * len(found))  # words alone; with a model: `python -m evals.merge`
        assert wrong_merges(results) == [], name
        assert score(results, ("same", "refinement")).recall >= 0.9
        assert score(results, ("contradiction",)).recall >= 0.8
    assert len(pairs()) >= 300


def test_every_pattern_takes_linear_time() -> None:
    import time

    hostile = [
        "from " * 20_000,
        "不" * 100_000,
        "i live in " * 10_000,
        "从" * 100_000,
        "a" * 100_000,
        "1." * 50_000,
    ]
    for text in hostile:
        begun = time.process_time()
        relation(text, text + " to x", 0.9)
        relation("I live in Paris", text, 0.9)
        assert time.process_time() - begun < 2.0
