from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.soak.bytescan import holders
from memoriter.entries import Draft, Entries, forgetting
from memoriter.entries.exchange import export_lines
from memoriter.errors import EditConflict, NotFound, WriteError
from memoriter.recall.inject import Injector
from memoriter.records import Entry, NoteLine, Selection, text_hash
from memoriter.store.entry_store import Edit
from memoriter.testing import HashEmbedder

SENTINEL = "quokkazebra42"
CHINESE = "鸵鸟绝密计划"
OLD = f"The codename is {SENTINEL} {CHINESE}"
NEW = f"The codename is {SENTINEL} {CHINESE} since spring"


Lines = tuple[tuple[NoteLine, ...], tuple[str, ...]]


class Elsewhere:
    """Copies in another place, whose erasure a function of the test does."""

    def __init__(self, erase: Callable[[Sequence[str]], Lines]) -> None:
        self._erase = erase

    def erase(self, texts: Sequence[str], *, dry_run: bool) -> Lines:
        assert not dry_run
        return self._erase(texts)

    def mentions(self, texts: Sequence[str]) -> tuple[tuple[str, ...], bool]:
        return (), True


def remember(entries: Entries, text: str, **more: Any) -> Entry:
    entry = entries.add_draft(Draft(text, **({"type": "fact"} | more))).entry
    assert entry is not None
    return entry


@pytest.mark.requirement("X8")
@pytest.mark.parametrize("engine", ["scan", "sqlite-vec", "lancedb"])
def test_a_forgotten_text_is_in_no_file(
    open_in_files: Any, tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "lancedb":
        pytest.importorskip("lancedb", reason="the extra lancedb is not installed")
        monkeypatch.setattr("memoriter.extensions.external_tables.BATCH_ROWS", 2)
    if engine == "scan":
        monkeypatch.setattr("memoriter.store.vectors.scan.LIMITS", small_limits())
    home = tmp_path / "agent"
    entries = open_in_files(engine=engine)
    for number in range(6):
        remember(entries, f"Filler statement number {number} about herons")
    remember(entries, OLD, tags=("x",))
    merged = remember(entries, NEW)
    entries.update(merged.id, text=NEW + " again")
    recalled = Injector(entries).recall(f"what is the codename {SENTINEL} {CHINESE}?")
    assert SENTINEL in recalled.text
    entries._context.follower.index.refresh(entries._context.follower.embedder.identity)
    list(export_lines(entries._context.store))
    vectors = [
        np.asarray(row, dtype=np.float32).tobytes()
        for row in HashEmbedder().embed([OLD, NEW, NEW + " again"])
    ]

    def found() -> list[str]:
        return holders(home, SENTINEL, CHINESE, blobs=vectors)

    assert any("memory.db" in name for name in found())
    assert any("index.db" in name or "lance" in name or "vectors" in name for name in found())
    receipt = entries.erase(merged.id)
    assert len(receipt.forgotten) == 2
    assert entries.get_recall(recalled.id).query == ""
    assert receipt.not_covered
    assert found() == []
    entries._context.follower.follow()
    assert SENTINEL not in str(entries.search(SENTINEL, threshold=0).hits)
    entries.close()
    again = open_in_files(engine=engine)
    again._context.follower.index.set_meta(entries="")  # the derived index is rebuilt
    again._context.follower.follow()
    assert found() == []
    assert len(again.list()) == 6
    with pytest.raises(NotFound):
        again._context.store.get(merged.id)
    assert [event.kind for event in again.history(merged.id)][-1] == "forget"
    assert all(event.before is None and event.after is None for event in again.history(merged.id))
    with pytest.raises(EditConflict, match="cannot be restored"):
        again.undo(merged.id)


def small_limits() -> object:
    from memoriter.store.vectors.scan import ScanLimits

    return ScanLimits(threshold=2, tail_rows=1)


def test_control_a_plain_delete_leaves_the_text(entries: Entries, tmp_path: Path) -> None:
    entry = remember(entries, OLD)
    entries.undo(entry.id)  # removes the row, as a plain delete would
    assert entries.list() == []
    assert holders(tmp_path / "agent", SENTINEL) != []


class SlowEmbedder(HashEmbedder):
    """An embedder that pauses in the middle of its work until the test releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.slow = False

    def embed(self, texts: Sequence[str]) -> Any:
        if self.slow:
            self.begun.set()
            assert self.go_on.wait(120)
        return super().embed(texts)


def test_an_entry_forgotten_while_it_is_embedded_stays_forgotten(open_: Any, tmp_path: Path) -> None:
    writer = open_(HashEmbedder())
    entry = remember(writer, OLD)
    slow = SlowEmbedder()
    slow.slow = True
    reader = open_(slow)
    reader._context.follower.index.clear()
    reader._context.follower.index.erase([text_hash(OLD)], None)
    reader._context.follower.index.set_meta(entries="")
    thread = threading.Thread(target=reader._context.follower.follow)
    thread.start()
    assert slow.begun.wait(120)
    other = open_(HashEmbedder())
    other.erase(entry.id)
    slow.go_on.set()
    thread.join(120)
    forgetting.complete(reader._context)
    vector = np.asarray(HashEmbedder().embed([OLD])[0], dtype=np.float32).tobytes()
    assert holders(tmp_path / "agent", SENTINEL, CHINESE, blobs=[vector]) == []


def test_a_concurrent_store_does_not_restore_a_forgotten_text(open_: Any) -> None:
    entries, slow = open_(HashEmbedder()), SlowEmbedder()
    entry = remember(entries, OLD)
    late = open_(slow)
    slow.slow = True
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(late.add_draft(Draft(NEW, "fact"))))
    thread.start()
    assert slow.begun.wait(120)
    entries.add_draft(Draft(NEW, "fact"))
    entries.erase(entry.id)
    slow.go_on.set()
    thread.join(120)
    assert [done.action for done in results] == ["refused"]
    assert entries.list() == []


def test_a_tombstone_stops_capture_and_is_cleared_by_an_explicit_store(entries: Entries) -> None:
    entry = remember(entries, "My locker is 17")
    entries.erase(entry.id)
    again = entries.add_draft(Draft("my locker is 17!", on_purpose=False))
    assert (again.action, entries.list()) == ("refused", [])
    assert entries.add_draft(Draft("My locker is 17")).action == "added"
    assert entries.add_draft(Draft("my LOCKER is 17", on_purpose=False)).action == "repeated"


def test_an_interrupted_erasure_is_completed_at_the_next_opening(
    open_: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = open_()
    entry = remember(entries, OLD)
    monkeypatch.setattr(forgetting, "complete", lambda *_: ())  # killed before the derived copies were erased
    entries.erase(entry.id)
    monkeypatch.undo()
    assert holders(tmp_path / "agent", SENTINEL) != []
    entries.close()
    open_()
    assert holders(tmp_path / "agent", SENTINEL) == []


def test_an_undone_entry_stays_if_a_run_of_tidy_changed_it_beside_the_erased_one(entries: Entries) -> None:
    stays, ended, other = (
        remember(entries, text)
        for text in ("The office is in Ghent", "The depot is in Lyon", "Tea is in stock")
    )
    store = entries._context.store
    superseded = replace(ended, state="superseded", superseded_by=stays.id)
    store.apply(
        [Edit("supersede", superseded, ended), Edit("repeat", replace(other, repetitions=2), other)],
        at=1.0,
        by="tidy",
    )
    entries.undo()
    entries.undo()
    assert [entry.id for entry in entries.undone()] == [other.id]
    entries.erase(ended.id)
    assert [entry.text for entry in entries.undone()] == ["Tea is in stock"]


def test_a_query_forgets_one_certain_hit_and_otherwise_offers_candidates(entries: Entries) -> None:
    tea = remember(entries, "I drink green tea in the morning")
    remember(entries, "I drink black coffee in the morning")
    offered = entries.erase(Selection(query="drink morning"))
    assert offered.forgotten == ()
    assert {hit.entry.text for hit in offered.candidates} == {
        "I drink green tea in the morning",
        "I drink black coffee in the morning",
    }
    dry = entries.erase(Selection(query="i drink green tea in the morning"), dry_run=True)
    assert (dry.forgotten, dry.dry_run, len(entries.list())) == ((tea.id,), True, 2)
    assert entries.erase(Selection(query="i drink green tea in the morning")).forgotten == (tea.id,)
    assert [e.text for e in entries.list()] == ["I drink black coffee in the morning"]


def test_forgetting_by_session_source_and_time(entries: Entries, clock: Any) -> None:
    remember(entries, "First thing said", session="s1")
    remember(entries, "Second thing said", session="s2", source="web")
    middle = clock.at
    remember(entries, "Third thing said", session="s3")
    assert len(entries.erase(Selection(session="s1")).forgotten) == 1
    assert len(entries.erase(Selection(source="web")).forgotten) == 1
    assert len(entries.erase(Selection(since=middle)).forgotten) == 1
    assert entries.list() == []
    assert entries.erase(Selection(session="s1")).forgotten == ()
    with pytest.raises(WriteError, match="one way"):
        entries.erase(Selection())
    with pytest.raises(WriteError, match="one way"):
        entries.erase(Selection("abc", session="s1"))


def test_equal_lines_of_the_daily_log_are_erased_too(open_memory: Any, note: Any, tmp_path: Path) -> None:
    log = note(
        "memory/2026-02-08.md", f"# Day\n\n- 10:15 {OLD}.\n- {OLD}, and a word of my own\n- something else\n"
    )
    memory = open_memory()
    memory.sync()
    entry = memory.entries.add(OLD, "fact").entry
    receipt = memory.erase(entry.id)
    assert [at.path for at in receipt.note_lines] == ["memory/2026-02-08.md"]
    assert log.read_text() == f"# Day\n\n- {OLD}, and a word of my own\n- something else\n"
    log.write_text("# Day\n\n- something else\n")
    again = memory.entries.add(OLD, "fact").entry
    note("memory/2026-02-09.md", f"- {OLD}\n")
    memory.sync()
    assert holders(tmp_path / "state", SENTINEL)
    memory.erase(again.id)
    assert holders(tmp_path / "state", SENTINEL, CHINESE) == []


def test_an_agent_that_forgets_does_not_change_the_owners_log(open_memory: Any, note: Any) -> None:
    text = f"# Day\n\n- {OLD}\n"
    log = note("memory/2026-02-08.md", text)
    memory = open_memory()
    entry = memory.entries.add(OLD, "fact", trust="agent").entry
    receipt = memory.erase(entry.id, trust="agent")
    assert log.read_text() == text
    assert [line for line in receipt.not_covered if "2026-02-08.md" in line] == [
        "daily logs of the owner that say it, which only the owner may change: 2026-02-08.md"
    ]
    assert memory.entries.list() == []


def test_an_unreadable_log_is_named_and_does_not_stop_the_erasure(
    open_memory: Any, note: Any, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "memory/2026-02-06.md").write_bytes(b"- caf\xe9\n")
    (workspace / "memory/2026-02-07.md").symlink_to(tmp_path / "outside.md")
    log = note("memory/2026-02-08.md", f"- {OLD}\n- something else\n")
    memory = open_memory()
    memory.sync()
    left = "daily logs that could not be read or written and may contain it: 2026-02-06.md, 2026-02-07.md"
    receipt = memory.erase(memory.entries.add(OLD, "fact").entry.id)
    assert [at.path for at in receipt.note_lines] == ["memory/2026-02-08.md"]
    assert left in receipt.not_covered
    assert log.read_text() == "- something else\n"
    again = memory.erase(memory.entries.add(OLD, "fact").entry.id)
    assert left in again.not_covered
    assert holders(tmp_path / "state", SENTINEL, CHINESE) == []


@pytest.mark.parametrize("error", [WriteError("the disk is full"), PermissionError("the disk is full")])
def test_an_entry_is_erased_even_if_its_copies_elsewhere_cannot_be(
    entries: Entries, error: Exception
) -> None:
    def elsewhere(texts: Sequence[str]) -> Lines:
        raise error

    receipt = entries.erase(remember(entries, OLD).id, copies=Elsewhere(elsewhere))
    assert "the disk is full" in receipt.not_covered
    assert entries.list() == []


def test_what_others_recall_and_forget_at_the_same_time_leaves_no_words_in_the_ledger(
    open_: Any, tmp_path: Path
) -> None:
    """Entries and recalls are read before the transaction. What changes until then must be found too."""
    entries, other = open_(), open_()
    remember(entries, "The heron stands in the water")
    mine = remember(entries, f"The codename is {SENTINEL}")
    others = remember(entries, f"Anna said {SENTINEL} twice to Bob")

    def meanwhile(texts: Sequence[str]) -> Lines:
        assert texts == [mine.text]
        Injector(other).recall(f"what is the codename {SENTINEL}?", session="late")
        other.erase(others.id)
        return (), ()

    Injector(entries).recall(f"who said {SENTINEL} twice?", session="early")
    Injector(entries).recall("where does the heron stand?", session="heron")
    receipt = entries.erase(mine.id, copies=Elsewhere(meanwhile))
    assert receipt.forgotten == (mine.id,)
    queries = {one.session: one.query for one in entries.recalls().recalls}
    assert queries == {"early": "", "late": "", "heron": "where does the heron stand?"}
    assert holders(tmp_path / "agent", SENTINEL) == []


def test_a_version_that_is_merged_at_the_same_time_is_forgotten_too(open_: Any, tmp_path: Path) -> None:
    entries, other = open_(), open_()
    old = remember(entries, OLD)
    merged = list[str]()

    def meanwhile(texts: Sequence[str]) -> Lines:
        merged.append(remember(other, NEW).id)
        return (), ()

    receipt = entries.erase(old.id, copies=Elsewhere(meanwhile))
    assert sorted(receipt.forgotten) == sorted([old.id, *merged])
    assert entries.list(states=()) == []
    assert holders(tmp_path / "agent", SENTINEL, CHINESE) == []
