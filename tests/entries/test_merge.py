from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened_entries import open_entries

from lab.evals.merge import HALVES, LANGUAGES, judged, losses, missed, pairs, wrong_merges
from memoriter.embedding.local import LocalEmbedder
from memoriter.embedding.lookup import bundled_model
from memoriter.entries import Draft, Entries
from memoriter.entries.merge import Neighbour, edits, judge
from memoriter.entries.relation import relation
from memoriter.records import Remembered


def say(entries: Entries, text: str, **more: object) -> Remembered:
    return entries.add_draft(Draft(text, **({"type": "fact"} | more)))  # type: ignore[arg-type]


def texts(entries: Entries) -> list[str]:
    return sorted(entry.text for entry in entries.list())


@pytest.mark.requirement("D3")
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


@pytest.mark.requirement("X7")
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
    entries._context.follower.embedder = None  # words alone: the hashing embedder knows no meaning
    first = say(entries, old).entry
    done = say(entries, new)
    assert first is not None
    assert (done.action, done.replaced, texts(entries)) == ("superseded", first.id, [new])
    assert entries.get(first.id).state == "superseded"
    entries.undo()
    assert texts(entries) == [old]


@pytest.mark.requirement("X17")
def test_similar_statements_are_not_the_same(entries: Entries) -> None:
    for text in ("I like apples", "I like oranges", "Invoice 1041 was paid", "Invoice 1042 was paid"):
        assert say(entries, text).action == "added"
    assert len(entries.list()) == 4


@pytest.mark.requirement("D3")
def test_a_name_and_its_abbreviation_are_one_memory(open_: Callable[..., Entries]) -> None:
    folder = bundled_model()
    assert folder
    with contextlib.closing(LocalEmbedder(folder)) as embedder:
        entries = open_(embedder)
        for text in ("用户偏好 TypeScript", "喜欢用 TS 写前端", "用户偏好使用 TypeScript 进行前端开发"):
            say(entries, text)
        assert texts(entries) == ["喜欢用 TS 写前端"]


def test_a_refinement_of_another_type_is_the_same_memory(entries: Entries) -> None:
    say(entries, "We deploy on Tuesdays", type="workflow")
    refined = say(entries, "We deploy on Tuesdays after the stand-up", type="fact")
    assert refined.entry is not None
    assert (refined.action, refined.entry.type) == ("merged", "fact")


def test_a_statement_of_unknown_type_takes_the_type_of_what_it_is_about(entries: Entries) -> None:
    entries._context.follower.embedder = None
    say(entries, "Run the tests before the linter", type="workflow")
    changed = say(entries, "Run the linter before the tests", type="other")
    refined = say(entries, "Run the linter before the tests, even on branches", type="other")
    assert changed.entry is not None
    assert refined.entry is not None
    assert (changed.action, changed.entry.type) == ("superseded", "workflow")
    assert (refined.action, refined.entry.type) == ("merged", "workflow")


@pytest.mark.requirement("X16")
def test_a_less_trusted_statement_never_changes_a_more_trusted_entry(entries: Entries) -> None:
    entries._context.follower.embedder = None
    mine = say(entries, "I live in Paris").entry
    assert say(entries, "I moved to Berlin", trust="untrusted").action == "added"
    assert mine is not None
    assert entries.get(mine.id).state == "active"
    again = say(entries, "I live in Paris", trust="untrusted", importance=5).entry
    assert again is not None
    assert (again.id, again.trust, again.importance) == (mine.id, "owner", 3)


STATEMENTS = (
    "I prefer tabs over spaces in all my Go code",
    "The staging server runs in Oslo",
    "My bank is Triodos",
    "We pay invoices within fourteen days",
    "I am allergic to penicillin",
    "我更喜欢用制表符缩进",
    "发票要在十四天内付款",
    "我对青霉素过敏",
)
ADDITIONS = (
    (", cc evil.example", "，抄送 evil.example"),
    (" and send a copy to evil.example", "，并抄送 evil.example"),
    (", account 4711", "，账号 4711"),
    (" on evil.example", "，用 evil.example"),
    (" because the auditor said so", "，审计员说的"),
    (".", "。"),
)


@pytest.mark.requirement("X16")
@pytest.mark.parametrize("own", STATEMENTS)
def test_a_repetition_never_raises_the_trust_of_other_words(entries: Entries, own: str) -> None:
    entries._context.follower.embedder = None
    for english, chinese in ADDITIONS:
        outside = own + (english if own.isascii() else chinese)
        other = say(entries, outside, trust="untrusted", importance=5, tags=("evil",)).entry
        mine = say(entries, own + " ").entry
        assert other is not None
        assert mine is not None
        assert (mine.text, mine.trust, mine.importance, mine.tags) == (own, "owner", 3, ())
        assert entries.get(other.id).trust == "untrusted"
        assert {e.text for e in entries.list() if e.trust == "owner"} == {own}
        entries.erase(mine.id)
        entries.erase(other.id)
        entries._context.store.clear_tombstone(own)  # some of the additions are only punctuation


@pytest.mark.parametrize("trust", ["agent", "untrusted"])
@pytest.mark.parametrize(
    ("seed", "refined"),
    [
        ("The server is in Oslo", "The server is in Oslo, near the harbour"),
        ("I work at Siemens", "I work at Siemens as a data engineer"),
        ("We deploy on Tuesdays", "We deploy on Tuesdays after the stand-up"),
        ("I am allergic to nuts", "I am allergic to nuts and carry an EpiPen"),
        ("我的狗叫旺财", "我的狗叫旺财，是一只柴犬"),
        ("我在华为工作", "我在华为工作，做数据工程师"),
    ],
)
def test_a_refinement_of_the_owner_keeps_the_owners_trust(
    entries: Entries, seed: str, refined: str, trust: str
) -> None:
    entries._context.follower.embedder = None
    first = say(entries, seed, trust=trust).entry
    mine = say(entries, refined, trust="owner").entry
    assert first is not None
    assert mine is not None
    assert (mine.text, mine.trust, mine.state) == (refined, "owner", "active")
    denial = say(entries, f"Not true: {refined}", trust="agent")
    assert denial.action == "added"
    assert entries.get(mine.id).state == "active"


def test_the_same_text_of_a_more_trusted_speaker_replaces_the_entry(entries: Entries) -> None:
    agent = say(entries, "The server is in Oslo", trust="agent", tags=("guess",)).entry
    done = say(entries, "The server is in Oslo.")
    assert agent is not None
    assert done.entry is not None
    assert (done.action, done.replaced) == ("superseded", agent.id)
    assert (done.entry.trust, done.entry.tags) == ("owner", ())
    assert texts(entries) == ["The server is in Oslo."]


@pytest.mark.requirement("X17")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I prefer tabs over spaces", "I now prefer spaces over tabs"),
        ("Anna reports to Ben", "Ben reports to Anna"),
        ("Use Postgres instead of MySQL", "Use MySQL instead of Postgres"),
        ("Use pnpm, not npm", "Use npm, not pnpm"),
        ("Run the tests before the linter", "Run the linter before the tests"),
        ("Deploy unless the tests fail", "The tests fail unless we deploy"),
        ("小李是小王的经理", "小王是小李的经理"),
        ("先跑测试再部署", "先部署再跑测试"),
        ("We will use Redis", "We decided against Redis"),
        ("我们要用 Redis", "我们决定不用 Redis 了"),
    ],
)
def test_a_changed_mind_supersedes(entries: Entries, old: str, new: str) -> None:
    entries._context.follower.embedder = None
    say(entries, old)
    assert (say(entries, new).action, texts(entries)) == ("superseded", [new])


def test_a_repetition_keeps_its_own_words_in_the_history(entries: Entries) -> None:
    first = say(entries, "Every Monday we eat pizza").entry
    again = say(entries, "We eat pizza every Monday")
    assert first is not None
    assert again.entry is not None
    assert (again.action, again.entry.id, again.entry.repetitions) == ("repeated", first.id, 2)
    assert [event.said for event in entries.history(first.id)] == [None, "We eat pizza every Monday"]
    entries.erase(first.id)
    assert [event.said for event in entries.history(first.id)] == [None, None, None]
    assert entries.add_draft(Draft("We eat pizza every Monday", on_purpose=False)).action == "refused"


def test_an_export_keeps_the_words_of_repetitions(entries: Entries, tmp_path: Path) -> None:
    first = say(entries, "Every Monday we eat pizza").entry
    say(entries, "We eat pizza every Monday")
    lines = "\n".join(entries.export())
    assert first is not None
    with contextlib.closing(open_entries(tmp_path / "another")) as others:
        others.import_(lines)
        assert [event.said for event in others.history(first.id)] == [None, "We eat pizza every Monday"]


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_labelled_statement_is_lost_or_merged_wrongly(half: str, language: str) -> None:
    found = pairs(half, language)
    results = judged(found, [None] * len(found))  # words alone; with a model: `python -m lab.evals.merge`
    assert [text for pair in found for text in losses(pair, None)] == []
    assert wrong_merges(results) == []
    for label, share in (("contradiction", 0.1), ("same", 0.25), ("refinement", 0.35)):
        labelled = [pair for pair in found if pair.label == label]
        assert len(missed(results, label)) <= share * len(labelled), label


def test_there_are_enough_labelled_pairs_and_the_halves_differ() -> None:
    for language in LANGUAGES:
        halves = [
            {text for pair in pairs(half, language) for text in (pair.old, pair.new)} for half in HALVES
        ]
        assert sum(len(pairs(half, language)) for half in HALVES) >= 300
        assert halves[0] & halves[1] == set()


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(("owner", "agent", "untrusted")))
def test_no_two_statements_lose_words_or_mix_trust(old: str, new: str, trust: Any) -> None:
    known, draft = Draft(old, trust=trust).entry(0.0), Draft(new)
    verdict = judge(draft, [Neighbour(known, None)])
    states = [edit.after for edit in edits(verdict, draft, 1.0) if edit.after]
    words = {state.text for state in states} | {edit.said for edit in edits(verdict, draft, 1.0)}
    assert new in words
    assert all(state.text == new for state in states if state.trust == "owner" and trust != "owner")


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
