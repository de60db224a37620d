"""The reranker: which texts it reads, what it changes in an answer, and that it never breaks a search."""

from __future__ import annotations

import builtins
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brought_rerankers import NOTES as HOME_NOTES
from hypothesis import given
from hypothesis import strategies as st

from memoriter import Memory
from memoriter.records import Chunk, Part
from memoriter.search import rerank
from memoriter.search.rank import Scored
from memoriter.search.rerank import Reading, Reranker, blend, text_of, value_of
from memoriter.text.tokens import to_simplified

OpenMemory = Callable[..., Memory]

NOTES = f"{HOME_NOTES}- The ticket OPS-1077 is about the router that lost its configuration in spring.\n"


@pytest.fixture(scope="module")
def reranker() -> Reranker:
    return Reranker(budget_s=60.0)


TEXTS = {
    1: "The neighbour's cat is called Minka.",
    2: "We water the tomatoes every second evening.",
    3: "车库的备用钥匙放在蓝色盒子里。",
}


@pytest.mark.parametrize(
    ("query", "best"), [("What is the name of the neighbour's cat?", 1), ("备用钥匙在哪里？", 3)]
)
def test_the_text_that_answers_has_the_highest_logit(reranker: Reranker, query: str, best: int) -> None:
    logits = reranker.read(query, TEXTS).logits
    assert max(logits, key=lambda row: logits[row]) == best


def test_traditional_and_simplified_characters_are_read_alike(reranker: Reranker) -> None:
    simplified = reranker.read("备用钥匙在哪里？", {1: "车库的备用钥匙放在蓝色盒子里。"})
    assert reranker.read("備用鑰匙在哪裡？", {1: "車庫的備用鑰匙放在藍色盒子裡。"}) == simplified


def test_a_text_has_the_same_logit_alone_and_among_others(reranker: Reranker) -> None:
    fresh = Reranker(budget_s=60.0)
    assert reranker.read("the cat", TEXTS).logits[2] == fresh.read("the cat", {2: TEXTS[2]}).logits[2]


def test_texts_after_the_time_budget_are_not_read_but_remembered_ones_are() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    impatient = Reranker(budget_s=2.0, clock=clock)
    assert list(impatient.read("cat", TEXTS).logits) == [1, 2]
    assert list(impatient.read("cat", TEXTS).logits) == [1, 2, 3]


def test_many_short_texts_or_a_few_long_ones_are_read(reranker: Reranker) -> None:
    short = {row: f"The cat is number {row}." for row in range(40)}
    long = {row: f"{row} " + "The cat sat on the mat. " * 60 for row in range(40)}
    assert len(reranker.read("the cat", short).logits) > 15
    assert list(reranker.read("the cat", long).logits) == [0, 1, 2]


def test_an_empty_query_reads_nothing(reranker: Reranker) -> None:
    assert reranker.read("  ", TEXTS) == Reading()
    assert reranker.read("cat", {}) == Reading()


def test_odd_texts_have_a_logit(reranker: Reranker) -> None:
    logits = reranker.read("\ud800?", {1: "", 2: "\udfff lone", 3: "\0", 4: "word " * 10_000}).logits
    assert list(logits) == [1, 2, 3, 4]


def test_the_reranker_reads_headings_and_the_lines_around_the_match() -> None:
    lines = [f"Line {number} is about nothing in particular." for number in range(100)]
    lines[60] = "The heron stands in the river."
    chunk = Chunk("id", "memory/a.md", "memory", 1, 100, "\n".join(lines), ("Birds", "Herons"))
    text = text_of(chunk, lambda: ["heron"])
    assert text.startswith("Birds > Herons\n")
    assert "The heron stands in the river." in text
    assert len(text) < 800


# ---- the score ------------------------------------------------------------------------------------------------


@given(
    st.dictionaries(st.integers(0, 20), st.floats(0, 1)),
    st.dictionaries(st.integers(0, 20), st.floats(allow_nan=False)),
)
def test_a_blended_score_is_the_sum_of_its_parts_and_between_0_and_1(
    scores: dict[int, float], logits: dict[int, float]
) -> None:
    scored = [Scored(row, (Part("vector", value, 1.0, value),)) for row, value in scores.items()]
    blended = blend(sorted(scored, key=lambda item: -item.score), Reading(logits))
    assert {item.rowid for item in blended} == set(scores)
    for item in blended:
        assert item.score == pytest.approx(sum(part.contribution for part in item.parts))
        assert -1e-9 <= item.score <= 1 + 1e-9
    assert [item.score for item in blended] == sorted((item.score for item in blended), reverse=True)


def test_a_better_logit_never_lowers_a_score() -> None:
    values = [value_of(logit) for logit in (-1e300, -20, -3, 0, 3, 20, 1e300)]
    assert values == sorted(values)


# ---- a search -------------------------------------------------------------------------------------------------


@pytest.fixture
def reranked(open_memory: OpenMemory, note: Callable[[str, str], Path]) -> Memory:
    note("MEMORY.md", NOTES)
    return open_memory(search__rerank=True)


def test_an_answer_shows_what_the_reranker_added(reranked: Memory) -> None:
    hits = reranked.search("How is the neighbour's cat called?").hits
    assert "Minka" in hits[0].snippet
    for hit in hits:
        parts = {part.name: part for part in hit.explain.parts}
        assert hit.explain.logit is not None
        assert parts["rerank"].value == pytest.approx(value_of(hit.explain.logit))
        assert hit.score == pytest.approx(sum(part.contribution for part in hit.explain.parts))


@pytest.mark.parametrize(
    "setting", [{"search__rerank": False}, {"search__rerank": True, "search__reranker": "none"}]
)
def test_a_setting_switches_the_reranker_off(
    open_memory: OpenMemory, note: Callable[[str, str], Path], setting: dict[str, object]
) -> None:
    note("MEMORY.md", NOTES)
    hits = open_memory(**setting).search("neighbour's cat").hits
    assert [hit.explain.logit for hit in hits] == [None] * len(hits)
    assert "rerank" not in {part.name for hit in hits for part in hit.explain.parts}


def test_keyword_search_alone_does_not_load_the_reranker(
    open_memory: OpenMemory, note: Callable[[str, str], Path]
) -> None:
    note("MEMORY.md", NOTES)
    memory = open_memory(search__rerank=True, embedding__provider="none")
    assert [hit.explain.logit for hit in memory.search("neighbour's cat").hits] == [None]


def test_a_note_with_the_identifier_of_the_query_stays_in_the_answer(
    open_memory: OpenMemory, note: Callable[[str, str], Path]
) -> None:
    for number in range(12):
        note(f"memory/{number}.md", f"The router {number} lost its configuration and was set up again.\n")
    note("memory/ticket.md", "OPS-1077: see the printed folder.\n")
    answer = open_memory(search__rerank=True).search(
        "why did the router lose its configuration in OPS-1077?", max_results=2
    )
    assert "memory/ticket.md" in [hit.path for hit in answer.hits]


# ---- failures -------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(rerank.BUNDLED, tmp_path / "model"))


def damage_model(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"not a graph")


def remove_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def empty_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text("[]")


def remove_model(folder: Path) -> None:
    (folder / "model.onnx").unlink()


@pytest.mark.parametrize("damage", [damage_model, remove_manifest, empty_manifest, remove_model])
def test_a_damaged_model_is_reported_and_the_first_order_stays(
    damage: Callable[[Path], None],
    folder: Path,
    open_memory: OpenMemory,
    note: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    note("MEMORY.md", NOTES)
    expected = open_memory(search__rerank=False).search("the cat").hits
    damage(folder)
    monkeypatch.setattr(rerank, "bundled", lambda: broken)
    broken = Reranker(folder)
    memory = open_memory(search__rerank=True)
    for _ in range(2):
        answer = memory.search("the cat")
        assert answer.hits == expected
        assert (answer.degraded or "").startswith("Without the reranker: the model f")
    assert caplog.text.count("searching without the reranker") == 1


def test_a_missing_runtime_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "onnxruntime":
            raise ImportError("No module named 'onnxruntime'")
        return original(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert Reranker().read("cat", TEXTS) == Reading(
        degraded="Without the reranker: No module named 'onnxruntime'"
    )


def test_a_part_of_the_graph_computes_the_word_vectors_of_the_whole(reranker: Reranker) -> None:
    vectors, mask = reranker.words("备用钥匙在哪里？", "The spare key is in the blue box.", 32)
    model = reranker._load()
    feeds = model._feeds(
        model.start(to_simplified("备用钥匙在哪里？"), 32), "The spare key is in the blue box.", 32
    )
    assert np.array_equal(vectors, model._session.run(["norm"], feeds)[0])
    assert np.array_equal(mask, feeds["attention_mask"])


def test_a_damaged_graph_of_words_leaves_the_reranker_out(folder: Path) -> None:
    (folder / "words.onnx").write_bytes(b"not a graph")
    assert "words.onnx does not match its manifest.json" in str(
        Reranker(folder).read("the cat", TEXTS).degraded
    )
