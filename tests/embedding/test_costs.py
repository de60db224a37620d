"""The number of embedded texts: none is embedded twice, and only changed texts are embedded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.testing import HashEmbedder

Note = Callable[[str, str], Path]


@pytest.mark.requirement("A9")
def test_a_forced_rebuild_embeds_nothing_again(open_memory: Callable[..., Memory], note: Note) -> None:
    for number in range(1000):
        note(f"memory/{number:04}.md", f"# Note {number}\n\nThe garden gate number {number} is green.\n")
    embedder = HashEmbedder()
    assert open_memory(embedder).sync().chunks == 1000
    assert embedder.texts == 1000
    again = HashEmbedder()
    report = open_memory(again).sync(force=True)
    assert (report.rebuilt, report.embedded, report.cached) == (True, 0, 1000)
    assert (again.texts, again.queries) == (0, 0)


def test_a_moved_note_is_not_embedded_again(
    open_memory: Callable[..., Memory], note: Note, workspace: Path
) -> None:
    old = note("memory/old.md", "The garden gate is green.\n")
    embedder = HashEmbedder()
    memory = open_memory(embedder)
    memory.sync()
    (workspace / "memory/deep").mkdir()
    old.rename(workspace / "memory/deep/new.md")
    report = memory.sync()
    assert (report.changed, report.removed, report.embedded) == (1, 1, 0)
    assert embedder.texts == 1


def test_an_edited_line_embeds_only_its_chunks(open_memory: Callable[..., Memory], note: Note) -> None:
    lines = [f"- item {number}: " + " ".join(f"word{number}x{i}" for i in range(12)) for number in range(200)]
    note("memory/list.md", "\n".join(lines))
    embedder = HashEmbedder()
    memory = open_memory(embedder, chunking__overlap=0)
    chunks = memory.sync().chunks
    assert embedder.texts == chunks > 20
    lines[100] = "- item 100 is done"
    note("memory/list.md", "\n".join(lines))
    report = memory.sync()
    changed = embedder.texts - chunks
    assert report.embedded == changed
    assert 1 <= changed <= 3, f"{changed} of {chunks} chunks"


@pytest.mark.requirement("A9")
def test_a_repeated_text_is_embedded_once(open_memory: Callable[..., Memory], note: Note) -> None:
    for number in range(20):
        note(f"memory/{number}.md", "The garden gate is green.\n")
    embedder = HashEmbedder()
    open_memory(embedder).sync()
    assert embedder.texts == 1
