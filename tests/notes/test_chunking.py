"""Where notes are split, and what each chunk contains."""

from __future__ import annotations

import pytest

from memoriter.notes.chunking import chunk_markdown
from memoriter.records import Chunk, Document


def document(text: str, path: str = "memory/note.md") -> Document:
    return Document(path, "memory", text, sha256="", mtime_ns=0, size=len(text))


def chunks(
    text: str, *, tokens: int = 512, overlap: int = 0, target: int = 512, path: str = "memory/note.md"
) -> list[Chunk]:
    return chunk_markdown(document(text, path), tokens=tokens, overlap=overlap, target=target)


def places(found: list[Chunk]) -> list[tuple[int, int, tuple[str, ...]]]:
    return [(chunk.start_line, chunk.end_line, chunk.headings) for chunk in found]


def prose(number: int, width: int = 39) -> str:
    return f"line {number} ".ljust(width, "x")


@pytest.mark.parametrize("text", ["", "\n", "  \n\t\n\r\n", "\u3000\n"])
def test_a_blank_text_gives_no_chunk(text: str) -> None:
    assert chunks(text) == []


def test_a_small_note_is_one_chunk() -> None:
    text = "# Backups\n\nEvery night to S3.\n\n\n"
    (chunk,) = chunks(text)
    assert (chunk.text, chunk.start_line, chunk.end_line) == ("# Backups\n\nEvery night to S3.", 1, 3)
    assert (chunk.headings, chunk.date, chunk.path, chunk.source) == ((), None, "memory/note.md", "memory")


def test_a_section_starts_a_new_chunk_when_the_last_is_full_enough() -> None:
    text = "\n".join(["# Log", "## Morning", *map(prose, range(4)), "## Evening", *map(prose, range(4)), ""])
    assert places(chunks(text)) == [(1, 11, ())]  # too short for separate chunks
    text = "\n".join(["# Log", "## Morning", *map(prose, range(14)), "## Evening", *map(prose, range(4)), ""])
    assert places(chunks(text)) == [(1, 16, ()), (17, 21, ("Log",))]


def test_small_subsections_share_a_chunk() -> None:
    text = "\n".join(["## Day", *(line for n in range(4) for line in (f"### Hour {n}", prose(n), prose(n)))])
    assert places(chunks(text)) == [(1, 13, ())]


def test_after_the_target_a_chunk_ends_at_the_next_heading_paragraph_or_item() -> None:
    facts = [
        "# Facts",
        "",
        "- the cat is called Mo and eats twice a day",
        "- the dog is afraid of the postman",
        "",
    ]
    paragraph = ["One thought that runs on over", "several lines without a pause", "and is not cut.", ""]
    text = "\n".join([*facts, *paragraph, "## Later", "Something else, said at some length."])
    assert places(chunks(text, target=8)) == [
        (1, 3, ()),
        (4, 4, ("Facts",)),
        (6, 8, ("Facts",)),
        (10, 11, ("Facts",)),
    ]
    assert places(chunks(text, target=512)) == [(1, 11, ())]


def test_continuation_lines_stay_with_their_list_item() -> None:
    text = "- first item, which is rather long\n  and goes on here\n\n  and here\n- second item\n"
    assert places(chunks(text, target=1)) == [(1, 4, ()), (5, 5, ())]


def test_a_heading_stays_with_its_text() -> None:
    lines = [prose(number) for number in range(12)]
    for at in range(1, 12):
        text = "\n".join([*lines[:at], "### Title", "", "", *lines[at:]])
        for chunk in chunks(text, tokens=40):
            assert not chunk.text.rstrip().endswith("### Title")


def test_a_chunk_has_the_headings_above_it() -> None:
    long = [prose(number) for number in range(20)]
    text = "\n".join(["# A", "## B", *long, "## C", *long, "# D", *long])
    assert places(chunks(text, tokens=200)) == [
        (1, 21, ()),
        (22, 22, ("A", "B")),
        (23, 42, ("A",)),
        (43, 43, ("A", "C")),
        (44, 63, ()),
        (64, 64, ("D",)),
    ]


def test_underlined_headings_count_and_list_items_above_a_rule_do_not() -> None:
    long = [prose(number) for number in range(20)]
    text = "\n".join(["Title", "=====", *long, "Part", "----", *long, "- item", "---", *long])
    found = chunks(text, tokens=200)
    assert {chunk.headings for chunk in found} == {(), ("Title",), ("Title", "Part")}


@pytest.mark.parametrize(("fence", "inside"), [("```", "~~~"), ("~~~~", "~~~"), ("````", "```")])
def test_a_fence_that_fits_is_never_split(fence: str, inside: str) -> None:
    code = [f"{fence}python", "# not a heading", inside, "", *map(prose, range(4)), fence]
    for before in range(12):
        text = "\n".join([*map(prose, range(before)), *code, *map(prose, range(6))])
        holding = [chunk for chunk in chunks(text, tokens=80) if "# not a heading" in chunk.text]
        assert len(holding) == 1
        assert "\n".join(code) in holding[0].text
        assert all(chunk.headings == () for chunk in holding)


def test_text_is_split_between_paragraphs_before_lines() -> None:
    paragraph = [prose(number) for number in range(6)]
    text = "\n".join([*paragraph, "", *paragraph, "", *paragraph])
    assert places(chunks(text, tokens=100)) == [(1, 6, ()), (8, 13, ()), (15, 20, ())]


@pytest.mark.requirement("B3")
def test_the_end_of_a_chunk_is_repeated_in_the_next() -> None:
    text = "\n".join(prose(number) for number in range(30))
    found = chunks(text, tokens=100, overlap=20)
    assert [(chunk.start_line, chunk.end_line) for chunk in found] == [(1, 10), (9, 18), (17, 26), (25, 30)]


def test_nothing_is_repeated_across_a_heading_or_from_a_fence() -> None:
    text = "\n".join([*map(prose, range(8)), "## New", *map(prose, range(9))])
    assert [c.text.splitlines()[0] for c in chunks(text, tokens=100, overlap=20)][1] == "## New"
    fenced = "\n".join(["```", *map(prose, range(7)), "```", *map(prose, range(9))])
    assert [(c.start_line, c.end_line) for c in chunks(fenced, tokens=100, overlap=20)] == [(1, 11), (10, 18)]


def test_a_line_over_the_limit_is_split_into_pieces() -> None:
    line = " ".join(f"word{number}" for number in range(100))
    found = chunks(f"before\n{line}\nafter", tokens=50)
    assert places(found) == [(1, 1, ()), *[(2, 2, ())] * (len(found) - 2), (3, 3, ())]
    assert "".join(chunk.text for chunk in found[1:-1]) == line
    assert all(chunk.text[-1] != "d" for chunk in found)  # no word is separated from its number


@pytest.mark.requirement("B3")
def test_chinese_characters_count_as_whole_tokens() -> None:
    text = "\n".join(["数据库备份方案" * 5] * 8)
    assert [(chunk.start_line, chunk.end_line) for chunk in chunks(text, tokens=80)] == [
        (1, 2),
        (3, 4),
        (5, 6),
        (7, 8),
    ]


@pytest.mark.parametrize(
    ("path", "front_matter", "date"),
    [
        ("memory/2026-02-08.md", "", "2026-02-08"),
        ("memory/2026-02-08-slug.md", "", "2026-02-08"),
        ("memory/20260208_talk.md", "", "2026-02-08"),
        ("memory/talk-2026_02_08.md", "", "2026-02-08"),
        ("memory/2026-13-45.md", "", None),
        ("memory/120260208.md", "", None),
        ("memory/2026-02-08/note.md", "", None),
        ("memory/note.md", "date: 2026-02-07", "2026-02-07"),
        ("memory/2026-02-08.md", "Date: '2026/2/7'", "2026-02-07"),
        ("memory/note.md", "created: 2026-02-07T10:00:00Z", "2026-02-07"),
        ("memory/2026-02-08.md", "date: yesterday", "2026-02-08"),
    ],
)
def test_the_date_of_a_note_is_read_from_front_matter_or_name(
    path: str, front_matter: str, date: str | None
) -> None:
    text = f"---\n{front_matter}\n---\nText." if front_matter else "Text."
    assert [chunk.date for chunk in chunks(text, path=path)] == [date]


def test_the_title_of_the_front_matter_is_the_outermost_heading() -> None:
    text = "\n".join(["---", 'title: "Our backups"', "---", "## S3", *map(prose, range(20))])
    assert places(chunks(text, tokens=100)) == [
        (4, 13, ("Our backups",)),
        (14, 23, ("Our backups", "S3")),
        (24, 24, ("Our backups", "S3")),
    ]


def test_ids_do_not_change_when_lines_above_change() -> None:
    text = "\n".join(["# A", *map(prose, range(20)), "# B", *map(prose, range(30, 50))])
    before = {chunk.text: chunk.id for chunk in chunks(text)}
    after = {chunk.text: chunk.id for chunk in chunks(f"\n\n\n{text}")}
    assert before == after
    assert before.keys().isdisjoint(chunk.id for chunk in chunks(text, path="memory/other.md"))


def test_equal_chunks_of_one_note_have_different_ids() -> None:
    text = "\n".join(["# Same", *[prose(1)] * 20] * 3)
    found = chunks(text)
    assert len({chunk.id for chunk in found}) == len(found) == 3
    assert {chunk.hash for chunk in found} == {found[0].hash}
