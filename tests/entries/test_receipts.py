"""What the receipt of an erasure says: what was erased, what could not be, and what a query means for certain."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from memoriter.entries import Draft, Entries, forgetting
from memoriter.entries.forgetting import MAX_CANDIDATES, sure_hit
from memoriter.errors import MemoriterError, StoreError, StoreUnavailable
from memoriter.records import Considered, Entry, EntryHit, Explanation, NoteLine, Recall, Receipt, Selection
from memoriter.sentences import sentence

COVERED = tuple(
    sentence(f"forget.{copy}") for copy in ("entry", "history", "keywords", "vectors", "logs", "ledger")
)
KEPT = tuple(sentence(f"forget.{copy}") for copy in ("backups", "prompts", "notes"))
TEXT = "The codename is Quokka"
Lines = tuple[tuple[NoteLine, ...], tuple[str, ...]]


@pytest.fixture
def entries(open_in_files: Any) -> Entries:
    opened: Entries = open_in_files()
    return opened


def remember(entries: Entries, text: str = TEXT, **more: Any) -> Entry:
    entry = entries.add_draft(Draft(text, "fact", **more)).entry
    assert entry is not None
    return entry


# ---- receipts --------------------------------------------------------------------------------------------------


def test_a_receipt_names_every_copy(entries: Entries) -> None:
    entry = remember(entries)
    dry = entries.erase(entry.id, dry_run=True)
    assert dry == Receipt((entry.id,), COVERED, KEPT, dry_run=True)
    assert entries.get(entry.id) == entry
    assert entries.erase(entry.id) == Receipt((entry.id,), COVERED, KEPT)
    assert entries.list(states=()) == []


def test_a_receipt_for_nothing_promises_nothing(entries: Entries) -> None:
    remember(entries)
    assert entries.erase(Selection(session="unknown")) == Receipt(())
    assert entries.erase(Selection(session="unknown"), dry_run=True) == Receipt((), dry_run=True)
    assert len(entries.list()) == 1


def test_a_receipt_names_copies_elsewhere(entries: Entries) -> None:
    entry = remember(entries)
    asked = list[tuple[Sequence[str], bool]]()

    line, place = NoteLine("a.md", 3, TEXT), "b.md#L1-L2"

    class Elsewhere:
        def erase(self, texts: Sequence[str], *, dry_run: bool) -> Lines:
            asked.append((texts, dry_run))
            return (line,), ("a log that is locked",)

        def mentions(self, texts: Sequence[str]) -> tuple[tuple[str, ...], bool]:
            return (place,), True

    named = Receipt(
        (entry.id,), COVERED, (*KEPT[:-1], "a log that is locked"), note_lines=(line,), mentions=(place,)
    )
    assert entries.erase(entry.id, copies=Elsewhere(), dry_run=True) == replace(named, dry_run=True)
    assert entries.erase(entry.id, copies=Elsewhere()) == named
    assert asked == [([TEXT], True), ([TEXT], False)]


@pytest.mark.parametrize("error", [MemoriterError("The log is locked"), OSError("The log is locked")])
def test_copies_elsewhere_that_cannot_be_removed_are_named_and_logged(
    entries: Entries, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    class Elsewhere:
        def erase(self, texts: Sequence[str], *, dry_run: bool) -> Lines:
            raise error

        def mentions(self, texts: Sequence[str]) -> tuple[tuple[str, ...], bool]:
            raise error

    entry = remember(entries)
    with caplog.at_level(logging.WARNING):
        receipt = entries.erase(entry.id, copies=Elsewhere())
    assert receipt == Receipt((entry.id,), COVERED, (*KEPT, "The log is locked"))
    assert [record.getMessage() for record in caplog.records] == [
        "not all copies elsewhere could be removed: The log is locked"
    ]


@pytest.mark.parametrize("error", [StoreError("The disk is full."), OSError("The disk is full.")])
def test_an_index_that_cannot_be_written_is_named_and_erased_at_the_next_start(
    entries: Entries,
    open_in_files: Any,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> bool:
        raise error

    entry = remember(entries)
    monkeypatch.setattr(entries._context.follower.index, "erase", fail)
    with caplog.at_level(logging.WARNING):
        receipt = entries.erase(entry.id)
    pending = sentence("forget.index_pending", why="The disk is full")
    assert receipt == Receipt((entry.id,), COVERED, (*KEPT, pending))
    assert [record.getMessage() for record in caplog.records] == [
        "the index still contains forgotten entries: The disk is full."
    ]
    assert forgetting.is_pending(entries._context) is True
    again = open_in_files()
    assert forgetting.is_pending(again._context) is False


def test_a_remote_store_that_does_not_answer_is_named_and_asked_again_at_the_next_start(
    entries: Entries, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bool:
        raise StoreUnavailable("It does not answer.")

    entry = remember(entries)
    monkeypatch.setattr(entries._context.follower.index, "erase", fail)
    monkeypatch.setattr(entries._context.follower.index, "left_elsewhere", ("Pinecone",))
    with caplog.at_level(logging.WARNING):
        receipt = entries.erase(entry.id)
    pending = sentence("forget.remote_pending", store="scan", why="It does not answer")
    assert receipt.not_covered == (*KEPT, pending, sentence("forget.remote_unused", store="Pinecone"))
    assert [record.getMessage() for record in caplog.records] == [
        "the vectors of forgotten entries are not deleted yet: It does not answer."
    ]
    assert forgetting.is_pending(entries._context)
    monkeypatch.undo()
    forgetting.resume(entries._context)
    assert not forgetting.is_pending(entries._context)


@pytest.mark.parametrize("database", ["_store", "_index"])
def test_a_log_that_another_process_reads_is_named(
    entries: Entries, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = remember(entries)
    monkeypatch.setattr("memoriter.store.database.PURGE_S", 0.0)
    inner = (
        entries._context.store.database if database == "_store" else entries._context.follower.index._database
    )  # type: ignore[attr-defined]
    monkeypatch.setattr(inner, "_empty_log", lambda: False)
    assert entries.erase(entry.id).not_covered == (*KEPT, sentence("forget.busy_logs"))
    assert not forgetting.is_pending(entries._context)


def test_vectors_in_pinecone_have_copies_that_cannot_be_reached(
    entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = remember(entries)
    monkeypatch.setattr(entries._context.follower.index, "remote", "Pinecone")
    remote = (*KEPT[:-1], sentence("forget.remote", store="Pinecone"), KEPT[-1])
    assert entries.erase(entry.id, dry_run=True).not_covered == remote
    monkeypatch.setattr(entries._context.follower, "embedder", None)  # then no vector was ever sent
    assert entries.erase(entry.id, dry_run=True).not_covered == KEPT


def test_entries_without_an_embedder_are_erased(open_in_files: Any) -> None:
    entries = open_in_files(False)
    assert entries._context.follower.embedder is None
    entry = remember(entries)
    assert entries.erase(entry.id) == Receipt((entry.id,), COVERED, KEPT)


def test_opening_leaves_an_erasure_to_the_process_that_is_completing_it(
    entries: Entries, open_in_files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = remember(entries)
    monkeypatch.setattr(forgetting, "complete", lambda *_: ())  # killed before the index was erased
    entries.erase(entry.id)
    monkeypatch.undo()
    with entries._context.follower.index.lock("erasure", 0.0):
        assert forgetting.is_pending(open_in_files()._context) is True
    assert forgetting.is_pending(open_in_files()._context) is False


def test_opening_without_an_interrupted_erasure_erases_nothing(
    entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    completed = list[object]()
    monkeypatch.setattr(forgetting, "complete", lambda *asked: completed.append(asked))
    forgetting.resume(entries._context)
    assert completed == []


# ---- the ledger ------------------------------------------------------------------------------------------------


def recall(entries: Entries, query: str, session: str, *refs: str, block: str = "") -> None:
    considered = tuple(Considered("entry", ref, True, "", 0.5) for ref in refs)
    entries._context.add_recall(
        Recall(f"{session} {query}", 1.0, "python", session, query, 0, 0, considered, block), ()
    )


def queries(entries: Entries) -> dict[str | None, str]:
    return {one.session: one.query for one in entries.recalls().recalls}


def test_words_that_other_entries_contain_stay_in_the_ledger(entries: Entries) -> None:
    entry = remember(entries, "Quokka x lives in HERON street")
    remember(entries, "A heron stands in the water")
    kept = {
        "a word of others": "where does the heron stand?",
        "one letter": "which x is it?",
        "other words": "what is the weather?",
    }
    cleared = {"its word": "who is quokka?", "its text": "Is it true? QUOKKA X LIVES IN HERON STREET"}
    for session, query in {**kept, **cleared}.items():
        recall(entries, query, session)
    recall(entries, "where to?", "its id", entry.id)
    entries.erase(entry.id)
    assert queries(entries) == {**kept, "its word": "", "its text": "", "its id": ""}


def test_a_forgotten_text_is_cleared_from_the_ledger_even_if_its_words_are_common(entries: Entries) -> None:
    entry = remember(entries, "Heron street")
    remember(entries, "A heron stands in the street")
    recall(entries, "what is heron street?", "its text")
    recall(entries, "where is the heron?", "another", block="The heron is in the street")
    entries.erase(entry.id)
    assert queries(entries) == {"its text": "", "another": "where is the heron?"}


def test_recalls_of_a_session_are_cleared_with_its_entries(entries: Entries) -> None:
    remember(entries, "A heron stands in the water", session="one")
    recall(entries, "what is the weather?", "one")
    recall(entries, "what is the weather?", "two")
    entries.erase(Selection(session="one"), dry_run=True)
    assert queries(entries) == {"one": "what is the weather?", "two": "what is the weather?"}
    entries.erase(Selection(session="one"))
    assert queries(entries) == {None: "", "two": "what is the weather?"}


# ---- tombstones ------------------------------------------------------------------------------------------------


def test_a_forgotten_text_is_not_captured_again_but_a_purged_one_is(entries: Entries) -> None:
    entry = remember(entries)
    forgetting._erase_ids(entries._context, [entry.id], actor="cleanup", tombstones=False)
    assert entries.add_draft(Draft(TEXT, "fact", on_purpose=False)).action == "added"
    entries.erase(entries.list()[0].id)
    assert entries.add_draft(Draft(TEXT, "fact", on_purpose=False)).action == "refused"
    assert [event.kind for event in entries.history(entry.id)] == ["add", "purge"]
    assert [(event.before, event.after, event.note) for event in entries.history(entry.id)] == [
        (None, None, "")
    ] * 2


# ---- queries ---------------------------------------------------------------------------------------------------


def hit(text: str, similarity: float) -> EntryHit:
    entry = Draft(text, "fact").entry(1.0)
    return EntryHit(entry, similarity, similarity, Explanation("entries", ()))


@pytest.mark.parametrize(
    ("hits", "expected"),
    [
        ([], None),
        ([("tea", 0.9)], "tea"),
        ([("tea", 0.89)], None),
        ([("tea", 1.0), ("coffee", 0.875)], "tea"),
        ([("tea", 1.0), ("coffee", 0.91)], None),
        ([("coffee", 0.8), ("tea", 0.95)], "tea"),
        ([("tea", 0.95), ("coffee", 0.94), ("water", 0.1)], None),
        ([("Green tea!", 0.2), ("tea", 1.0)], "Green tea!"),
        ([("green tea", 0.2), ("Green tea", 0.2), ("tea", 1.0)], "tea"),
        ([("green tea", 0.2), ("Green tea", 0.2), ("tea", 0.5)], None),
    ],
)
def test_a_query_means_one_hit_if_it_is_the_same_text_or_clearly_the_nearest(
    hits: list[tuple[str, float]], expected: str | None
) -> None:
    found = sure_hit("green tea", [hit(*one) for one in hits])
    assert (found.entry.text if found else None) == expected


def test_a_query_that_means_none_for_certain_offers_five(open_in_files: Any) -> None:
    entries = open_in_files()
    for number in range(7):
        remember(entries, f"The heron {number}x{number} stands in the water")
    assert len(entries.erase(Selection(query="heron water")).candidates) == MAX_CANDIDATES == 5
