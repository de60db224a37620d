"""Properties of the chunks of any text."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoriter.notes.chunking import chunk_markdown
from memoriter.records import Document
from memoriter.text import width
from memoriter.text.markdown import find_tags, front_matter_lines, structure_of

LINES = st.sampled_from(
    [
        "",
        "",
        "# One",
        "## Two",
        "### Three",
        "Title",
        "=====",
        "---",
        "---",
        "name: value",
        "Tags: one, two",
        "标签：一、二",
        "```",
        "~~~~",
        "```py",
        "- item",
        "  more",
        "> q",
    ]
) | st.text(st.sampled_from("ab x数据库🎉\x0c\u2028\x85\t#-`é\u0301"), max_size=90)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
texts = (
    st.lists(st.tuples(LINES, ENDS), max_size=60).map(lambda lines: "".join(map("".join, lines))) | st.text()
)


def document(text: str) -> Document:
    return Document("memory/2026-02-08.md", "memory", text, sha256="", mtime_ns=0, size=len(text))


@pytest.mark.requirement("B3")
@settings(max_examples=100, deadline=None)
@given(texts, st.sampled_from([1, 8, 16, 40, 512]), st.sampled_from([0, 2, 8, 64]))
def test_chunks_cover_the_text_with_correct_lines_within_the_limit(
    text: str, tokens: int, overlap: int
) -> None:
    chunks = chunk_markdown(document(text), tokens=tokens, overlap=overlap)
    lines = re.split(r"\r\n|\n|\r", text)
    budget = max(32, tokens * 4)
    pieces: dict[int, str] = {}
    covered = set()
    for chunk in chunks:
        assert width(chunk.text) <= budget
        assert chunk.text.strip()
        whole = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        if chunk.text != whole:
            assert chunk.start_line == chunk.end_line
            assert width(whole) > budget
            pieces[chunk.start_line] = pieces.get(chunk.start_line, "") + chunk.text
        covered.update(range(chunk.start_line, chunk.end_line + 1))
    not_blank = {number for number, line in enumerate(lines, 1) if line.strip()}
    front = front_matter_lines(lines)
    tags = {number + 1 for number in find_tags(lines, structure_of(lines)).lines}
    assert not_blank <= covered | set(range(1, front + 1)) | tags
    assert (
        not front
        or not covered
        or min(covered) in (1, min(not_blank - tags - set(range(1, front + 1)), default=1))
    )
    for number, piece in pieces.items():
        assert piece.split() == lines[number - 1].split() or "".join(piece.split()) == "".join(
            lines[number - 1].split()
        )


@settings(max_examples=100, deadline=None)
@given(texts)
def test_the_same_text_gives_the_same_chunks_in_order_with_distinct_ids(text: str) -> None:
    chunks = chunk_markdown(document(text), tokens=16, overlap=4)
    assert chunks == chunk_markdown(document(text), tokens=16, overlap=4)
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    starts = [chunk.start_line for chunk in chunks]
    assert starts == sorted(starts)


@settings(max_examples=100, deadline=None)
@given(texts, st.integers(0, 5))
def test_blank_lines_above_do_not_change_ids(text: str, blank: int) -> None:
    text = "plain\n" + text  # so that blank lines do not remove front matter from the top
    before = [chunk.id for chunk in chunk_markdown(document(text), tokens=16)]
    assert before == [chunk.id for chunk in chunk_markdown(document("\n" * blank + text), tokens=16)]


@pytest.mark.parametrize(
    "text",
    [
        ("The quick brown fox jumps over the lazy dog.\n") * 23_000,
        "ab\n" * 100_000,
        "\n" * 500_000,
        "word " * 200_000,
        "数据库备份" * 60_000,
        "# a\n" * 50_000,
        "```\n" * 50_000,
        "`" * 1_000_000,
        "# " + "#" * 1_000_000,
        "-" * 500_000 + "\n" + "=" * 500_000,
    ],
    ids=[
        "prose",
        "short",
        "blank",
        "one line",
        "chinese",
        "headings",
        "fences",
        "backticks",
        "hashes",
        "rules",
    ],
)
def test_chunking_takes_linear_time(text: str) -> None:
    start = time.process_time()
    chunk_markdown(document(text))
    assert time.process_time() - start < 4  # a tenth of that on an idle machine; quadratic would be minutes
