"""`memoriter evaluate`: questions about the memory's own lines."""

from __future__ import annotations

from pathlib import Path

import memoriter
from memoriter.extensions.evaluate.measuring import evaluate
from memoriter.testing import HashEmbedder, sample_workspace


def test_lines_of_notes_are_found_and_nothing_is_recorded(tmp_path: Path) -> None:
    sample_workspace(tmp_path / "notes")
    with memoriter.open(tmp_path / "notes", home=tmp_path / "home", embedder=HashEmbedder()) as memory:
        memory.remember("I live in Berlin near the river Spree.")
        memory.remember("I moved to Munich near the river Isar.")
        found = evaluate(memory, 20)
        assert found.questions == 20
        assert found.written_by == "rules"
        assert found.found_first >= 0.5
        assert found.found >= found.found_first
        assert found.tokens > 0
        assert (found.superseded, found.stale) == (1, 0)
        assert found.answers_with_memory is None
        assert memory.entries.recalls().total == 0


def test_an_empty_memory_has_no_questions(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    with memoriter.open(tmp_path / "notes", home=tmp_path / "home", embedder=HashEmbedder()) as memory:
        found = evaluate(memory, 5)
        assert (found.questions, found.found, found.noise) == (0, 0.0, 0.0)


def test_a_memory_that_finds_nothing_gets_a_bad_report(tmp_path: Path) -> None:
    sample_workspace(tmp_path / "notes")
    overrides = {"search.min_score": 1.0, "embedding.provider": "none"}
    with memoriter.open(tmp_path / "notes", home=tmp_path / "home", overrides=overrides) as memory:
        found = evaluate(memory, 10)
        assert len(found.missed) > 0
