"""Notes of one day belong together: a good match lifts what else was written on its day."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memoriter import Hit, Memory

Note = Callable[[str, str], Path]


def search(open_memory: Callable[..., Memory], query: str, **settings: object) -> dict[str, Hit]:
    """Return the hits by path, best first. Keywords alone decide."""
    memory = open_memory(embedding__provider="none", **settings)
    return {hit.path: hit for hit in memory.search(query, max_results=20, min_score=0.0).hits}


def test_of_two_equal_notes_the_one_from_the_day_of_a_better_match_comes_first(
    open_memory: Callable[..., Memory], note: Note
) -> None:
    note("memory/a.md", "---\ndate: 2026-03-01\n---\nWe bought a lantern there.\n")
    note("memory/b.md", "---\ndate: 2026-03-08\n---\nWe bought a lantern there.\n")
    note("memory/c.md", "---\ndate: 2026-03-08\n---\nThe harbour market with Ines: a lantern, smoked eel.\n")
    hits = search(open_memory, "lantern harbour market Ines")
    assert list(hits) == ["memory/c.md", "memory/b.md", "memory/a.md"]
    for hit in hits.values():
        assert abs(sum(part.contribution for part in hit.explain.parts) - hit.score) < 1e-9
        assert 0 <= hit.score <= 1


def test_notes_without_a_date_share_no_day(open_memory: Callable[..., Memory], note: Note) -> None:
    note("memory/a.md", "We bought a lantern there.\n")
    note("memory/c.md", "The harbour market with Ines: a lantern, smoked eel.\n")
    for hit in search(open_memory, "lantern harbour market Ines").values():
        values = {part.name: part.value for part in hit.explain.parts}
        assert values["context"] == values["keyword"]
