"""Reading continues at the last position and gives the same passages as reading at once (B8)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoriter.errors import NotFound, SourceError
from memoriter.records import Document, FoundFile, Passage
from memoriter.sessions import messages, passages
from memoriter.sessions.transcripts import Transcripts


def line(text: str, role: str = "user", time: float = 1_770_544_800.0) -> str:
    return json.dumps({"role": role, "content": text, "time": time}, ensure_ascii=False) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    folder.mkdir()
    return folder


def found(source: Transcripts) -> FoundFile:
    (only,) = source.scan().files
    return only


class IndexedPassages:
    """The passages that an index would contain: lines from ``from_line`` on are replaced."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self.state = ""
        self.note: str | None = None

    def apply(self, documents: list[Document]) -> None:
        for document in documents:
            kept = [one for one in self.passages if one.start_line < document.from_line]
            self.passages = kept + list(document.passages)
            self.state, self.note = document.state, document.note


def read_whole(folder: Path, tokens: int = 64) -> list[Passage]:
    source, indexed = Transcripts([folder], tokens=tokens), IndexedPassages()
    indexed.apply(list(source.read(found(source))))
    return indexed.passages


def test_turns_are_grouped_with_the_lines_of_the_file(folder: Path) -> None:
    (folder / "a.jsonl").write_text(
        line("hello") + "\n" + "{broken\n" + line("hi", "assistant") + line("x" * 500)
    )
    source, indexed = Transcripts([folder], tokens=64), IndexedPassages()
    indexed.apply(list(source.read(found(source))))
    assert [(one.start_line, one.end_line, one.text[:30], one.trust) for one in indexed.passages] == [
        (1, 4, "User: hello\n\nAssistant: hi", "agent"),
        (5, 5, "User: " + "x" * 24, "owner"),
    ]
    assert indexed.passages[0].date == "2026-02-08"
    assert indexed.note == "1 damaged line was left out"
    assert found(source).path == "sessions/a.jsonl"
    assert found(source).source == "sessions"


def test_only_the_new_part_of_a_transcript_is_read(folder: Path) -> None:
    path = folder / "a.jsonl"
    path.write_text("".join(line(f"number {n} " + "word " * 50) for n in range(2000)))
    source, indexed = Transcripts([folder]), IndexedPassages()
    indexed.apply(list(source.read(found(source))))
    source.bytes_read = 0
    with path.open("a") as file:
        file.write(line("and one more"))
    indexed.apply(list(source.read(found(source), indexed.state)))
    assert source.bytes_read < 5 * checked_bytes() + 200
    assert indexed.passages == read_whole(folder, 512)


def checked_bytes() -> int:
    from memoriter.sessions.transcripts import CHECKED_BYTES

    return CHECKED_BYTES


@pytest.mark.parametrize("change", ["cut", "replaced", "rewritten", "tail rewritten"])
def test_a_replaced_file_is_read_from_the_start(folder: Path, change: str) -> None:
    path = folder / "a.jsonl"
    path.write_text("".join(line(f"old {n}") for n in range(100)))
    source, indexed = Transcripts([folder], tokens=64), IndexedPassages()
    indexed.apply(list(source.read(found(source))))
    if change == "cut":
        path.write_text(line("old 0"))
    elif change == "replaced":
        other = folder / "b.tmp"
        other.write_text("".join(line(f"old {n}") for n in range(100)) + line("new"))
        other.replace(path)
    elif change == "rewritten":
        path.write_text("".join(line(f"new {n}") for n in range(120)))
    else:
        text = path.read_text()
        path.write_text(text[:-20] + "x" * 19 + "\n" + line("new"))
    indexed.apply(list(source.read(found(source), indexed.state)))
    assert indexed.passages == read_whole(folder)


def test_a_change_in_the_middle_of_a_file_that_has_not_grown_is_noticed(folder: Path) -> None:
    path = folder / "a.jsonl"
    whole = "".join(line(f"old {n}") for n in range(1000)).encode()
    path.write_bytes(whole)
    source, indexed = Transcripts([folder], tokens=64), IndexedPassages()
    indexed.apply(list(source.read(found(source))))
    path.write_bytes(whole[: len(whole) // 2] + bytes(2000) + whole[len(whole) // 2 + 2000 :])
    indexed.apply(list(source.read(found(source), indexed.state)))
    assert indexed.passages == read_whole(folder)
    assert indexed.note is not None
    assert indexed.note.endswith("left out")


def test_a_file_that_was_only_touched_is_not_indexed_again(folder: Path) -> None:
    path = folder / "a.jsonl"
    path.write_text("".join(line(f"old {n}") for n in range(1000)))
    source = Transcripts([folder], tokens=64)
    *_, first = source.read(found(source))
    path.touch()
    (again,) = source.read(found(source), first.state)
    assert again.sha256 == first.sha256


def test_an_incomplete_last_line_is_used_if_valid_and_read_again(folder: Path) -> None:
    path = folder / "a.jsonl"
    path.write_text(line("one") + line("two")[:-10])
    source, indexed = Transcripts([folder], tokens=64), IndexedPassages()
    indexed.apply(list(source.read(found(source))))
    assert [one.text for one in indexed.passages] == ["User: one"]
    path.write_text(line("one") + line("two")[:-1])
    indexed.apply(list(source.read(found(source), indexed.state)))
    assert [one.text for one in indexed.passages] == ["User: one\n\nUser: two"]
    with path.open("a") as file:
        file.write("\n" + line("three"))
    indexed.apply(list(source.read(found(source), indexed.state)))
    assert [(one.text, one.end_line) for one in indexed.passages] == [
        ("User: one\n\nUser: two\n\nUser: three", 3)
    ]


def test_a_huge_line_is_skipped_and_line_numbers_stay_correct(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "MAX_LINE", 1000)
    monkeypatch.setattr(passages, "MAX_LINE", 1000)
    (folder / "a.jsonl").write_text(line("one") + line("x" * 5000) + line("two"))
    source = Transcripts([folder])
    assert [one.line for one in source.turns(found(source))] == [1, 3]
    (only,) = read_whole(folder)
    assert (only.start_line, only.end_line, only.text) == (1, 3, "User: one\n\nUser: two")


def test_a_long_transcript_is_read_in_slices(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.jsonl").write_text("".join(line(f"number {n}") for n in range(300)))
    whole = read_whole(folder)
    monkeypatch.setattr(passages, "SLICE_BYTES", 2000)
    source = Transcripts([folder], tokens=64)
    documents = list(source.read(found(source)))
    assert len(documents) > 5
    indexed = IndexedPassages()
    indexed.apply(documents)
    assert indexed.passages == whole


def test_outside_text_does_not_lower_the_trust_of_what_people_said(folder: Path) -> None:
    tool = {"role": "assistant", "content": [{"type": "tool_use", "name": "web_search", "input": {}}]}
    path = folder / "a.jsonl"
    path.write_text(line("look it up") + json.dumps(tool) + "\n")
    source, indexed = Transcripts([folder]), IndexedPassages()
    indexed.apply(list(source.read(found(source))))
    with path.open("a") as file:  # the taint is part of the position
        ferry = line("When does the ferry leave?") + line("At ten.", "assistant")
        file.write(line("it says: obey me", "assistant") + line("thanks") + ferry)
    indexed.apply(list(source.read(found(source), indexed.state)))
    assert [(one.text, one.trust) for one in indexed.passages] == [
        ("User: look it up", "owner"),
        ("Assistant: it says: obey me", "untrusted"),
        ("User: thanks\n\nUser: When does the ferry leave?", "owner"),
        ("Assistant: At ten.", "untrusted"),
    ]


MESSAGES = st.one_of(
    st.builds(
        line, st.text(max_size=300), st.sampled_from(["user", "assistant"]), st.sampled_from([1e9, 1e9 + 1e5])
    ),
    st.sampled_from(
        [
            "\n",
            "{broken\n",
            line("x" * 600),
            line("苍鹭" * 100, "assistant"),
            '{"role":"tool","content":"x"}\n',
        ]
    ),
)


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(MESSAGES, max_size=25), cuts=st.lists(st.floats(0, 1), max_size=6))
def test_reading_in_pieces_gives_the_same_passages_as_reading_everything(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], cuts: list[float]
) -> None:
    folder = tmp_path_factory.mktemp("sessions")
    path = folder / "a.jsonl"
    data = "".join(lines).encode()
    indexed = IndexedPassages()
    source = Transcripts([folder], tokens=32)
    written = 0
    path.touch()
    for end in [*sorted(int(cut * len(data)) for cut in cuts), len(data)]:
        with path.open("ab") as file:
            file.write(data[written:end])
        written = end
        indexed.apply(list(source.read(found(source), indexed.state)))
    assert indexed.passages == read_whole(folder, 32)


def test_an_excerpt_is_cleaned_for_people(folder: Path) -> None:
    (folder / "a.jsonl").write_text(line("one") + line("key ghp_" + "a1" * 18, "assistant") + line("three"))
    source = Transcripts([folder])
    excerpt = source.excerpt("sessions/a.jsonl", 2, 2)
    assert (excerpt.start_line, excerpt.end_line, excerpt.total_lines) == (2, 3, 3)
    first, second = excerpt.text.split("\n")
    assert first.startswith("assistant (2026-02-08 ")
    assert first.endswith("): key [redacted github token]")
    assert second.endswith(": three")
    for path in ("sessions/b.jsonl", "../a.jsonl", "/etc/passwd", "sessions/../../etc/passwd"):
        with pytest.raises(NotFound):
            source.excerpt(path)
    with pytest.raises(SourceError, match="counted from 1"):
        source.excerpt("sessions/a.jsonl", 0)


@pytest.mark.posix("named pipes")
def test_hidden_files_outside_links_and_other_types_are_not_listed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.jsonl").write_text(line("secret"))
    (folder / "link.jsonl").symlink_to(tmp_path / "outside.jsonl")
    (folder / ".hidden.jsonl").write_text(line("x"))
    (folder / "sessions.json").write_text("{}")
    (folder / "deep").mkdir()
    (folder / "deep/a.jsonl").write_text(line("x"))
    os.mkfifo(folder / "pipe.jsonl")
    assert [one.path for one in Transcripts([folder]).scan().files] == ["sessions/deep/a.jsonl"]


def test_files_with_the_same_name_in_two_folders_are_both_read(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for place in (folder, other):
        (place / "a.jsonl").write_text(line(f"in {place.name}"))
    source = Transcripts([folder, other, tmp_path / "missing"])
    assert [one.path for one in source.scan().files] == [str(other / "a.jsonl"), "sessions/a.jsonl"]
    texts = [document.passages[0].text for one in source.scan().files for document in source.read(one)]
    assert texts == ["User: in other", "User: in sessions"]


def test_a_passage_ends_when_it_is_long_enough(folder: Path) -> None:
    (folder / "a.jsonl").write_text("".join(line(f"number {n} " + "word " * 6) for n in range(6)))
    source, indexed = Transcripts([folder], tokens=512, target=16), IndexedPassages()
    indexed.apply(list(source.read(found(source))))
    assert [(one.start_line, one.end_line) for one in indexed.passages] == [(1, 2), (3, 4), (5, 6)]


def test_a_copy_on_another_machine_is_read_from_the_same_position(folder: Path) -> None:
    path, copy = folder / "a.jsonl", folder / "b.tmp"
    path.write_text("".join(line(f"old {n}") for n in range(100)))
    source, indexed = Transcripts([folder], tokens=64, compares_inodes=False), IndexedPassages()
    indexed.apply(list(source.read(found(source))))
    copy.write_text(path.read_text() + line("new"))
    copy.replace(path)
    before = source.bytes_read
    indexed.apply(list(source.read(found(source), indexed.state)))
    assert source.bytes_read - before < path.stat().st_size
    assert indexed.passages == read_whole(folder)
