"""Comments for programs and in templates are not indexed. All other comments are text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.text.blocks import without_annotations


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<!-- memoriter: write here. -->\n", "\n"),
        ("<!-- memoriter: notes go to memory/<topic>/<name>.md. -->\r\nfact\n", "\r\nfact\n"),
        ("fact <!-- importance: 3 --> <!-- memoriter: made by an import -->\n", "fact\n"),
        ("<!-- Mia's key is under the mat. -->\n", "<!-- Mia's key is under the mat. -->\n"),
        ("<!-- memoriter: this -->said aloud\n", "<!-- memoriter: this -->said aloud\n"),
    ],
)
def test_only_comments_for_programs_are_removed(text: str, kept: str) -> None:
    assert without_annotations(text) == kept


def test_comments_of_people_can_be_found(
    open_memory: Callable[..., Memory], note: Callable[[str, str], Path]
) -> None:
    note(
        "memory/keys.md",
        "# Keys\n\n<!-- memoriter: a template's word -->\n\n<!-- The spare is under the mat. -->\n",
    )
    note("memory/other.md", "Nothing of the kind.\n")
    memory = open_memory(embedding__provider="none")
    memory.sync()
    assert [hit.snippet for hit in memory.search("spare mat").hits] == [
        "# Keys\n\n\n\n<!-- The spare is under the mat. -->"
    ]
    assert memory.search("template").hits == ()
