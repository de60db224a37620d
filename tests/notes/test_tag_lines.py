"""A line of tags is metadata of its section: it helps to find the section, and is never a hit of its own."""

from __future__ import annotations

import pytest

from memoriter import Memory
from memoriter.notes.chunking import chunk_markdown
from memoriter.records import Chunk, Document


def chunks(text: str) -> list[Chunk]:
    return chunk_markdown(Document("memory/a.md", "memory", text, sha256="", mtime_ns=0, size=len(text)))


def test_a_saved_note_is_found_by_its_content(open_memory) -> None:
    memory: Memory = open_memory(retrieval__min_confidence=0)
    memory.save("用户喜欢使用 TypeScript 开发", title="用户偏好", tags=["preference", "tech"])
    memory.save("The backups run every night at three.", title="Nightly job", tags=["backup", "ops"])
    for query, content in (
        ("用户偏好", "用户喜欢使用 TypeScript 开发"),
        ("preference", "用户喜欢使用 TypeScript 开发"),
        ("ops", "The backups run every night at three."),
        ("backup", "The backups run every night at three."),
    ):
        answer = memory.search(query)
        assert content in answer.hits[0].snippet
        assert not [hit.snippet for hit in answer.hits if hit.snippet.lstrip().startswith("Tags:")]
        recalled = memory.recall(query).text
        assert content in recalled
        assert "Tags:" not in recalled


LONG = " and".join(f" the pump number {number} was oiled by Mia" for number in range(8))


@pytest.mark.parametrize(
    "line",
    [
        "Tags: birds, marsh",
        "标签：birds、marsh",
        "**Tags:** birds; marsh",
        "#birds #marsh",
        "keywords: birds，marsh",
    ],
)
def test_tags_belong_to_every_chunk_of_their_section(line: str) -> None:
    text = f"# Log\n\n## Heron\n\nIt nests.{LONG}.\n\nIt eats.{LONG}.\n\n{line}\n\n## Stork\n\nIt clatters.\n"
    found = [(chunk.start_line, chunk.end_line, chunk.headings) for chunk in chunks(text)]
    assert found == [
        (1, 5, ("birds, marsh",)),
        (7, 7, ("Log", "Heron", "birds, marsh")),
        (11, 13, ("Log",)),
    ]


def test_tags_below_the_title_belong_to_the_whole_note() -> None:
    text = f"# Heron\nTags: birds\n\nIt nests.{LONG}.\n\n## Food\n\nFish.{LONG}.\n\nTags: fish\n\n## Song\n\nNone.\n"
    assert [chunk.headings for chunk in chunks(text)] == [
        ("birds",),
        ("Heron", "birds, fish"),
        ("Heron", "birds"),
    ]


def test_no_tags_are_lost_when_short_sections_share_a_chunk() -> None:
    (chunk,) = chunks("### A\n\nx\n\nTags: one\n\n### B\n\ny\n\nTags: two\n")
    assert (chunk.end_line, chunk.headings) == (9, ("one", "two"))


@pytest.mark.parametrize(
    "text",
    [
        "Tags: only\n",  # nothing else to show
        "We talked.\nTags: a, b\nThen we left.\n",  # a line of a paragraph
        "Intro.\n\nTags: they are a feature that we should discuss.\n",
        "Intro.\n\n```\nTags: a, b\n```\n",
        "Intro.\n\n- Tags: a, b\n",
    ],
)
def test_other_lines_about_tags_are_text(text: str) -> None:
    assert "ags" in "".join(chunk.text for chunk in chunks(text))
    assert [chunk.headings for chunk in chunks(text)] == [()]
