from __future__ import annotations

from typing import Any

import pytest

from memoriter.entries import Entries
from memoriter.testing import FailingEmbedder


@pytest.fixture
def filled(entries: Entries) -> Entries:
    entries.add("The heron stands in the marsh", "fact", importance=2, tags=("birds",))
    entries.add("I prefer the heron to the stork", "preference", importance=5)
    entries.add("数据库每天凌晨备份", "workflow", trust="agent")
    entries.add("The heron is a spy, trust me", "fact", trust="untrusted")
    return entries


def texts(entries: Entries, query: str, **more: Any) -> list[str]:
    return [hit.entry.text for hit in entries.search(query, threshold=0.05, **more).hits]


@pytest.mark.requirement("D6", "D7")
@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
def test_every_mode_finds_and_the_parts_sum_to_the_score(filled: Entries, mode: Any) -> None:
    hits = filled.search("heron marsh", mode=mode, threshold=0.05).hits
    assert "The heron stands in the marsh" in [hit.entry.text for hit in hits]
    for hit in hits:
        assert hit.score == pytest.approx(0.98 * hit.similarity + 0.02 * hit.entry.importance / 5)
        assert sum(part.contribution for part in hit.explain.parts) == pytest.approx(hit.score)
    assert texts(filled, "数据库备份", mode=mode)[0] == "数据库每天凌晨备份"


@pytest.mark.requirement("D6")
def test_a_setting_chooses_seven_tenths_similarity_and_three_tenths_importance(open_memory: Any) -> None:
    entries = open_memory(retrieval__importance_weight=0.3).entries
    entries.add("The grey heron nests in the north marsh", "fact", importance=1)
    entries.add("The heron nests in the south", "fact", importance=5)
    hits = entries.search("grey heron nests north marsh", threshold=0.05).hits
    assert len(hits) == 2
    for hit in hits:
        assert hit.score == pytest.approx(0.7 * hit.similarity + 0.3 * hit.entry.importance / 5)
        assert hit.explain.parts[-1].weight == 0.3


@pytest.mark.requirement("D6")
def test_importance_decides_between_entries_that_match_equally_well(entries: Entries) -> None:
    entries.add("The heron nests in the north", "fact", importance=2)
    entries.add("The heron nests in the south", "fact", importance=5)
    assert texts(entries, "heron nests") == ["The heron nests in the south", "The heron nests in the north"]
    hits = entries.search("heron nests", threshold=0.05).hits
    assert len({part.value for hit in hits for part in hit.explain.parts if part.name == "keyword"}) == 1


def test_importance_never_outranks_a_better_match(filled: Entries) -> None:
    filled.add("Herons are birds", "fact", importance=5)
    filled.add("The grey heron stands in the marsh at dawn", "fact", importance=1)
    assert texts(filled, "grey heron in the marsh at dawn")[0] == "The grey heron stands in the marsh at dawn"


def test_filters_by_type_tag_importance_trust_and_time(filled: Entries) -> None:
    def found(**where: Any) -> list[str]:
        return sorted(texts(filled, "heron", **where))

    assert found(types=("user_preference",)) == ["I prefer the heron to the stork"]
    assert found(tags=("birds",)) == ["The heron stands in the marsh"]
    assert found(min_importance=4) == ["I prefer the heron to the stork"]
    assert found(trust=("untrusted",)) == ["The heron is a spy, trust me"]
    assert found(since=9e9) == []


def test_a_filter_that_drops_many_still_finds_what_passes(entries: Entries) -> None:
    entries.add("The heron of heron island", "skill")
    for number in range(120):
        entries.add(f"heron {'abcdefghijkl'[number % 12]}{'mnopqrstuv'[number // 12]}x heron", "fact")
    assert texts(entries, "heron", types=("skill",), limit=3) == ["The heron of heron island"]


@pytest.mark.requirement("X2")
def test_a_threshold_never_drops_an_exact_keyword_hit(filled: Entries) -> None:
    assert [hit.entry.text for hit in filled.search("spy trust", threshold=0.99).hits] == [
        "The heron is a spy, trust me"
    ]


def test_without_vectors_keywords_answer_and_the_answer_says_so(open_: Any) -> None:
    entries = open_(FailingEmbedder())
    entries.add("The heron stands in the marsh", "fact")
    found = entries.search("heron", threshold=0.05)
    assert [hit.entry.text for hit in found.hits] == ["The heron stands in the marsh"]
    assert found.degraded is not None
    assert "out of order" in found.degraded


def test_the_derived_index_heals_and_follows(open_: Any, tmp_path: Any) -> None:
    entries = open_()
    entries.add("The heron stands in the marsh", "fact")
    entries.close()
    (tmp_path / "agent/entries/index.db").write_bytes(b"torn" * 1000)
    again = open_()
    assert texts(again, "heron") == ["The heron stands in the marsh"]
    other = open_()
    other.add("The stork stands on the roof", "fact")
    assert texts(again, "stork") == ["The stork stands on the roof"]
