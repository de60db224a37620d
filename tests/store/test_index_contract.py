"""What every store of a derived index does. Each test runs on SQLite and on Postgres."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import pytest
from store_samples import ALICE, OpenIndex, document, found, put, put_vector, unit

from memoriter.errors import LockTimeout
from memoriter.records import Chunk, Document
from memoriter.store import Counts, FileRow, Index, StoredChunk
from memoriter.store.documents import DocumentSummary

if TYPE_CHECKING:
    pass


def test_a_document_is_stored_exactly(index: Index) -> None:
    note = Document(
        "memory/一.md", "sessions", "whatever", "ab" * 32, 12345678901234567, 9, "read as gb18030"
    )
    chunk = Chunk("id-1", note.path, "sessions", 3, 7, "正文\ntext 🎉", ("标题", "Sub"), "2026-02-08")
    index.replace(note, [chunk])
    assert index.files() == {note.path: FileRow(note.path, "sessions", 12345678901234567, 9, "ab" * 32)}
    assert index.chunks([1, 2]) == {1: StoredChunk(1, chunk, "")}
    assert index.counts("") == Counts(files=1, chunks=1, embedded=0, bytes=9)


def test_a_summary_has_the_stat_the_trust_and_how_a_transcript_begins(index: Index) -> None:
    talk = [
        Chunk("a", "talk.jsonl", "sessions", 1, 1, "user: " + "茶" * 300, (), "2026-05-01", "agent"),
        Chunk("b", "talk.jsonl", "sessions", 2, 2, "assistant: yes", (), "2026-05-02", "untrusted"),
    ]
    index.replace(Document("talk.jsonl", "sessions", "", "ab" * 32, 12, 9), talk)
    put(index, "a.md", "text")
    assert index.summaries(["talk.jsonl", "a.md", "missing.md"]) == {
        "talk.jsonl": DocumentSummary(12, 9, 2, "untrusted", "2026-05-01", "user: " + "茶" * 234),
        "a.md": DocumentSummary(17, 4, 1, "owner"),
    }


def test_replacing_a_document_deletes_the_old_one(index: Index) -> None:
    put(index, "a.md", "kiwi", "pear")
    put(index, "b.md", "kiwi pie")
    put(index, "a.md", "plum")
    assert [found(index, term) for term in ("kiwi", "pear", "plum")] == [["kiwi pie"], [], ["plum"]]
    assert index.terms(["kiwi", "pear", "plum"]) == {"kiwi": 1, "pear": 0, "plum": 1}
    assert (index.counts("").chunks, index.check(deep=True)) == (2, [])


def test_row_numbers_are_never_reused(index: Index) -> None:
    put(index, "a.md", "one", "two")
    index.remove(["a.md"])
    put(index, "a.md", "three")
    index.clear()
    put(index, "a.md", "four")
    assert list(index.chunks(range(10))) == [4]


def test_remove_returns_how_many_documents_existed(index: Index) -> None:
    put(index, "a.md", "one")
    put(index, "b.md", "two")
    assert (index.remove(["a.md", "nowhere.md"]), list(index.files())) == (1, ["b.md"])


def test_a_document_without_text_is_listed(index: Index) -> None:
    put(index, "empty.md")
    assert (list(index.files()), index.counts("").chunks, index.rows_without("any")) == (["empty.md"], 0, [])


def test_a_new_stat_is_stored_without_changing_the_text(index: Index) -> None:
    put(index, "a.md", "one")
    note, _ = document("a.md", "one")
    index.touch(Document(note.path, note.source, note.text, note.sha256, mtime_ns=99, size=note.size))
    assert (index.files()["a.md"].mtime_ns, list(index.chunks([1]))) == (99, [1])


def test_values_about_the_index_are_stored_and_replaced(index: Index) -> None:
    index.set_meta(model="one", signature="s")
    index.set_meta(model="two")
    assert [index.meta(key) for key in ("model", "signature", "unknown")] == ["two", "s", None]


# ---- transactions ---------------------------------------------------------------------------------------------


def test_a_rebuild_is_visible_only_after_its_commit(open_index: OpenIndex, index: Index) -> None:
    put(index, "old.md", "old kiwi")
    with contextlib.closing(open_index()) as other:
        with index.transaction():
            index.clear()
            put(index, "new.md", "new kiwi")
            put(index, "newer.md", "newer kiwi")
            assert (found(other, "kiwi"), list(other.files())) == (["old kiwi"], ["old.md"])
            assert sorted(found(index, "kiwi")) == ["new kiwi", "newer kiwi"]
        assert (sorted(found(other, "kiwi")), sorted(other.files())) == (
            ["new kiwi", "newer kiwi"],
            ["new.md", "newer.md"],
        )


def test_a_failed_rebuild_leaves_the_old_index(index: Index) -> None:
    put(index, "old.md", "old kiwi")
    with contextlib.suppress(ZeroDivisionError), index.transaction():
        index.clear()
        put(index, "new.md", "new kiwi")
        raise ZeroDivisionError
    assert (found(index, "kiwi"), index.check(deep=True)) == (["old kiwi"], [])


def test_a_snapshot_keeps_a_search_in_one_state(open_index: OpenIndex, index: Index) -> None:
    put(index, "a.md", "old kiwi")
    with contextlib.closing(open_index()) as other, index.snapshot():
        rows = [match.rowid for match in index.keyword(["kiwi"], limit=5)]
        put(other, "a.md", "new kiwi")
        assert [stored.chunk.text for stored in index.chunks(rows).values()] == ["old kiwi"]


# ---- indexes, writers, locks ----------------------------------------------------------------------------------


def test_indexes_of_one_agent_are_separate(open_index: OpenIndex, index: Index) -> None:
    other = open_index("entries")
    put(index, "a.md", "kiwi")
    put_vector(other, "b.md", unit(*range(1, 9)), ALICE)
    assert (list(index.files()), list(other.files())) == (["a.md"], ["b.md"])
    assert (index.terms(["kiwi"]), other.terms(["kiwi"])) == ({"kiwi": 1}, {"kiwi": 0})
    assert index.nearest(unit(*range(1, 9)), ALICE, limit=3) == []
    other.clear()
    assert (index.total(), other.total()) == (1, 0)


def test_concurrent_writers_lose_nothing(open_index: OpenIndex, index: Index) -> None:
    def write(writer: int) -> None:
        with contextlib.closing(open_index()) as own:
            for number in range(8):
                put(own, f"{writer}-{number}.md", f"kiwi{number} zork", "second")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (index.counts("").files, index.total(), index.check(deep=True)) == (32, 64, [])
    assert index.terms(["kiwi3", "zork", "second"]) == {"kiwi3": 4, "zork": 32, "second": 32}
    rows = {match.rowid for match in index.keyword(["zork", "second"], limit=100)}
    assert len(rows) == len(index.chunks(rows)) == 64


def test_a_lock_is_exclusive_and_has_a_name(open_index: OpenIndex, index: Index) -> None:
    other = open_index()
    with index.lock("sync", 1.0):
        with pytest.raises(LockTimeout), other.lock("sync", 0.0):
            pass
        with pytest.raises(LockTimeout), other.lock("sync", 0.05):
            pass
        with other.lock("vectors", 0.0):
            pass
    with other.lock("sync", 0.0):
        pass


# ---- erasure and damage ---------------------------------------------------------------------------------------


def test_erasing_deletes_vectors_that_no_chunk_uses(index: Index) -> None:
    put_vector(index, "a.md", unit(*range(1, 9)), ALICE)
    put_vector(index, "b.md", unit(*range(8, 0, -1)), ALICE)
    gone, here = (index.chunks([row])[row].chunk.hash for row in (1, 2))
    index.remove(["a.md"])
    assert (index.keeps_deleted, index.known(ALICE, [gone, here])) == (True, {gone, here})
    assert index.erase([gone, here], ALICE)
    assert (index.keeps_deleted, index.known(ALICE, [gone, here])) == (False, {here})
    assert index.check(deep=True) == []


def test_a_healed_index_is_empty_and_works(index: Index) -> None:
    put(index, "a.md", "kiwi")
    index.set_meta(model="x")
    index.heal("its pages are damaged")
    assert (index.healed, index.files(), index.total(), index.meta("model")) == (
        "its pages are damaged",
        {},
        0,
        None,
    )
    put(index, "a.md", "plum")
    assert (found(index, "plum"), index.check(deep=True)) == (["plum"], [])


def test_characters_that_a_database_may_refuse_are_indexed(index: Index) -> None:
    put(index, "a.md", "kiwi \0 null")
    assert [match.rowid for match in index.keyword(["kiwi"], limit=5)] == [1]
    put(index, "a.md", "plum")
    assert (index.terms(["kiwi", "null"]), index.check(deep=True)) == ({"kiwi": 0, "null": 0}, [])
