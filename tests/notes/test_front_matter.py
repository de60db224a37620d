"""Front matter is found with its note and is not a separate hit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.notes.chunking import chunk_markdown
from memoriter.records import Document
from memoriter.text.markdown import FrontMatter, read_front_matter

SHORE = "The grey one stands at the shore and waits for fish, every morning of the week."
REEDS = "In the reeds there is a nest that was left alone since the winter."
NOTE = f"""---
title: Heron
tags: [wetland, "birds"]
aliases:
  - Reiher
  - 'Fischreiher'
author: Mia
summary: >-
  What we saw
  by the river
date: 2026-02-08
trust: agent
---

# Heron

{SHORE}

{REEDS}
"""


def cut(text: str) -> list[tuple[int, int, tuple[str, ...], str]]:
    note = Document("memory/note.md", "memory", text, sha256="", mtime_ns=0, size=len(text))
    return [(one.start_line, one.end_line, one.headings, one.text) for one in chunk_markdown(note)]


def test_front_matter_is_added_above_chunks_without_changing_their_lines() -> None:
    subject = "wetland, birds, Reiher, Fischreiher"
    assert cut(NOTE) == [
        (
            15,
            17,
            ("Heron", subject, "author: Mia; summary: What we saw, by the river"),
            f"# Heron\n\n{SHORE}",
        ),
        (19, 19, ("Heron", subject), REEDS),
    ]


def test_a_note_with_only_front_matter_is_indexed_as_text() -> None:
    text = "---\ntitle: Heron\ntags: birds\n---\n\n"
    assert cut(text) == [(1, 4, (), text.strip())]


@pytest.mark.parametrize(
    "text",
    [
        "---\nA text between two rules.\n---\nMore.",
        "---\ntitle: never closed\n\nMore.",
        f"---\nabstract: {'word ' * 300}\n---\nMore.",
        "---\n# A heading between two rules\n---\nMore.",
    ],
    ids=["prose", "open", "long", "heading"],
)
def test_invalid_or_long_front_matter_is_indexed_as_text(text: str) -> None:
    assert cut(text)[0][:3] == (1, text.count("\n") + 1, ())
    assert cut(text)[0][3] == text


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], FrontMatter()),
        (["title: Heron", "date: 2026-02-08", "trust: agent", "messages: 4"], FrontMatter(title="Heron")),
        (["title: >-", "  The grey", "  heron"], FrontMatter(title="The grey, heron")),
        (["title:", "  Heron", "tags: birds"], FrontMatter("birds", title="Heron")),
        (["# a remark", "title: Heron"], FrontMatter(title="Heron")),
        ([f"title: {'x' * 201}", "author: Mia"], FrontMatter("", f"{'x' * 201}; author: Mia")),
        (["# a heading"], None),
        (["tags: birds", "tags: water"], FrontMatter("birds, water")),
        (["tags: birds, water"], FrontMatter("birds, water")),
        (["tags:", "- birds", "  - water", "- "], FrontMatter("birds, water")),
        (['tags: ["birds", ]', "alias: ~", "# a remark"], FrontMatter("birds")),
        (["标签: 鸟", "地点: 河边"], FrontMatter("鸟", "地点: 河边")),
        (
            ["due: 2026-05-01", "url: https://example.org/a"],
            FrontMatter("", "due: 2026-05-01; url: https://example.org/a"),
        ),
        (["place:", "  town: Ulm"], FrontMatter("", "place: town: Ulm")),
        (["text: |", "  one", "", "  two"], FrontMatter("", "text: one, two")),
        ([f"tags: {'x' * 201}", "author: Mia"], FrontMatter("", f"{'x' * 201}; author: Mia")),
        (["- birds"], None),
        (["no name here"], None),
    ],
)
def test_names_and_values_are_read_in_common_forms(lines: list[str], said: FrontMatter | None) -> None:
    assert read_front_matter(lines) == said


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Fischreiher nest", "memory/heron.md#L15-L19"),
        ("Mia river", "memory/heron.md#L15-L17"),
        ("wetland shore", "memory/heron.md#L15-L19"),
        ("Kranich", "memory/crane.md#L1-L3"),
    ],
)
def test_a_note_is_found_by_its_front_matter_and_shows_its_text(
    query: str, first: str, open_memory: Callable[..., Memory], note: Callable[[str, str], Path]
) -> None:
    note("memory/heron.md", NOTE)
    note("memory/crane.md", "---\naliases: [Kranich]\n---\n")
    for number in range(8):
        note(f"memory/{number}.md", f"---\ntitle: Day {number}\n---\nIt rained on day {number}.\n")
    memory = open_memory(embedding__provider="none")
    memory.sync()
    hits = memory.search(query).hits
    assert hits[0].citation == first
    assert {hit.path for hit in hits if hit.snippet.startswith("---")} <= {"memory/crane.md"}
