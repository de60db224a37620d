"""A search is complete, or it says what is missing. It never waits for all vectors, and the next one continues."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memoriter import Memory
from memoriter.engines.builtin import BuiltinEngine
from memoriter.files.locks import file_lock
from memoriter.records import SyncBudget
from memoriter.testing import FailingEmbedder, HashEmbedder

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix

ONE_SHOT = {"embedding__background": False}


class SlowEmbedder(HashEmbedder):
    """An embedder that needs a quarter of a second for each text, on a clock of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.seconds = 0.25

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.now += self.seconds * len(texts)
        return super().embed(texts)


def engine_of(memory: Memory) -> BuiltinEngine:
    assert isinstance(memory._parts.engine, BuiltinEngine)
    return memory._parts.engine


def open_slow(open_memory, **options: object) -> tuple[Memory, SlowEmbedder]:
    """Open a memory whose searches have time for eight vectors."""
    embedder = SlowEmbedder()
    memory = open_memory(embedder, **options)
    engine_of(memory).indexer.vectors._clock = lambda: embedder.now
    return memory, embedder


def missing(count: int, total: int, what_next: str) -> str:
    return f"{count} of {total} chunks have no vector yet, so only keywords find them. {what_next}"


CONTINUE = "Each search embeds some of them, and `memoriter index` embeds all."


@pytest.fixture
def twenty_notes(note) -> None:
    for number in range(20):
        note(f"memory/{number:02}.md", f"The heron number {number} has ring {number * 7919}.\n")


def by_meaning(memory: Memory, query: str = "heron ring") -> int:
    hits = memory.search(query, max_results=100, min_score=0).hits
    return sum(any(part.name == "vector" for part in hit.explain.parts) for hit in hits)


# ---- missing vectors ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("twenty_notes")
@pytest.mark.parametrize("deleted", [False, True])
def test_each_search_embeds_a_part_and_says_how_much_is_missing(
    open_memory, tmp_path: Path, deleted: bool
) -> None:
    memory, embedder = open_slow(open_memory, **ONE_SHOT)
    if deleted:
        memory.sync()
        memory.close()
        (database,) = tmp_path.glob("state/agents/main/workspaces/*/index.db")
        database.unlink()
        memory, embedder = open_slow(open_memory, **ONE_SHOT)
    seen = []
    for _ in range(4):
        answer = memory.search("ring 7919")
        assert answer.hits[0].path == "memory/01.md"
        assert memory.status().degraded == answer.degraded
        seen.append((answer.degraded, embedder.texts))
    assert seen == [
        (missing(11, 20, CONTINUE), 9),  # two seconds for files that changed
        (missing(9, 20, CONTINUE), 11),  # 0.3 seconds for others
        (missing(7, 20, CONTINUE), 13),
        (missing(5, 20, CONTINUE), 15),
    ]
    memory.sync()
    assert (by_meaning(memory), embedder.texts) == (20, 20)


@pytest.mark.usefixtures("twenty_notes")
def test_a_search_ends_when_the_time_is_too_short_for_one_more_vector(open_memory) -> None:
    memory, embedder = open_slow(open_memory, **ONE_SHOT)
    embedder.seconds = 0.24
    assert memory.search("ring 7919").degraded == missing(11, 20, CONTINUE)


@pytest.mark.usefixtures("twenty_notes")
def test_the_work_continues_in_the_next_process(open_memory) -> None:
    first, _ = open_slow(open_memory, **ONE_SHOT)
    first.search("heron")
    first.close()
    second, embedder = open_slow(open_memory, **ONE_SHOT)
    assert second.search("heron").degraded == missing(9, 20, CONTINUE)
    assert embedder.texts == 2


def test_one_long_note_is_found_by_keyword_before_it_has_vectors(note, open_memory) -> None:
    note("memory/long.md", "".join(f"- The stork number {n} wears ring {n * 7919}.\n\n" for n in range(200)))
    memory, embedder = open_slow(open_memory, **ONE_SHOT)
    answer = memory.search(f"ring {150 * 7919}")
    assert str(150 * 7919) in answer.hits[0].snippet
    assert answer.degraded is not None
    assert answer.degraded.endswith(CONTINUE)
    status = memory.status()
    assert (status.embedded, embedder.texts) == (9, 9)


def test_a_limited_sync_indexes_all_keywords_and_estimates_the_rest(note, open_memory) -> None:
    note("memory/a-log.md", "".join(f"- The stork number {n} wears ring {n * 7919}.\n\n" for n in range(600)))
    note("memory/note.md", "The heron nests on the island.\n")
    memory, _ = open_slow(open_memory, **ONE_SHOT)
    report = memory.sync(vectors_s=2.0)
    assert (report.chunks, report.embedded, report.pending, report.waiting) == (301, 9, 292, 0)
    assert report.remaining_s is not None
    assert (
        memory.search("island", max_results=1).hits[0].explain.parts[0].name == "vector"
    )  # before the long log
    assert memory.sync().pending == 0


def test_a_sync_without_time_for_vectors_embeds_nothing(note, open_memory) -> None:
    note("memory/note.md", "The heron nests on the island.\n")
    memory, embedder = open_slow(open_memory, **ONE_SHOT)
    report = memory.sync(vectors_s=0)
    assert (report.chunks, report.pending, report.remaining_s, embedder.texts) == (1, 1, None, 0)


def test_a_chunk_without_a_vector_is_not_ranked_below_worse_ones_that_have_one(note, open_memory) -> None:
    note("memory/long.md", "".join(f"- The stork number {n} wears ring {n * 7919}.\n\n" for n in range(200)))
    memory, _ = open_slow(open_memory, **ONE_SHOT)
    (hit, *_) = memory.search(f"The stork number 150 wears ring {150 * 7919}").hits
    assert str(150 * 7919) in hit.snippet
    assert hit.score == pytest.approx(sum(part.contribution for part in hit.explain.parts))
    assert [part.detail for part in hit.explain.parts if part.name == "vector"] == [
        "no vector yet: its words count instead"
    ]


@pytest.mark.usefixtures("twenty_notes")
def test_a_failing_embedder_is_reported_by_every_search_and_by_the_status(open_memory) -> None:
    memory = open_memory(FailingEmbedder(message="the model is broken"), **ONE_SHOT)
    why = "20 of 20 chunks have no vector, so only keywords find them: the model is broken"
    for _ in range(2):
        answer = memory.search("ring 7919")
        assert (answer.hits[0].path, why in (answer.degraded or "")) == ("memory/01.md", True)
    assert memory.status().degraded == why
    report = memory.sync()
    assert (report.pending, report.degraded) == (20, why)


@pytest.mark.usefixtures("twenty_notes")
def test_an_open_memory_computes_the_missing_vectors_in_the_background(open_memory) -> None:
    memory = open_memory()
    engine = engine_of(memory)
    engine.options = replace(engine.options, budget=SyncBudget(vectors_s=0))
    with file_lock(engine.index.path.with_name("vectors.lock")):
        answer = memory.search("ring 7919")
        assert answer.hits[0].path == "memory/01.md"
        assert answer.degraded == missing(20, 20, "They are embedded in the background.")
        engine.background.wait(120)
    memory.sync()
    assert (memory.search("ring 7919").degraded, by_meaning(memory)) == (None, 20)


@pytest.mark.usefixtures("twenty_notes")
def test_a_new_note_is_complete_while_another_process_embeds(note, open_memory) -> None:
    memory, _ = open_slow(open_memory, **ONE_SHOT)
    memory.search("heron")
    with file_lock(engine_of(memory).index.path.with_name("vectors.lock")):
        note("memory/otter.md", "The otter sleeps under the bridge.\n")
        answer = memory.search("otter bridge")
    assert [part.name for part in answer.hits[0].explain.parts][:2] == ["vector", "keyword"]
    assert answer.degraded == missing(11, 21, CONTINUE)


@pytest.mark.usefixtures("twenty_notes")
def test_lines_around_a_hit_count_also_while_vectors_are_added(note, open_memory) -> None:
    """A chunk moves to a new row when it gets its vector, and still has the same neighbours."""
    note("memory/long.md", "".join(f"- The stork number {n} wears ring {n * 7919}.\n\n" for n in range(40)))
    memory, _ = open_slow(open_memory, **ONE_SHOT)
    index = engine_of(memory).index

    def neighbours() -> dict[int, list[int]]:
        rows = {stored.rowid: stored.chunk.start_line for stored in index.stored_of("memory/long.md")}
        found = index.around(rows, reach=2)
        return {rows[row]: sorted(rows[other] for other in near.all) for row, near in found.items()}

    memory.search("stork")
    lines = sorted(neighbours())
    expected = {line: lines[max(0, at - 2) : at + 3] for at, line in enumerate(lines)}
    while memory.search("stork").degraded:
        assert neighbours() == expected
    assert neighbours() == expected


def test_the_first_search_with_another_vector_engine_is_complete(note, open_memory) -> None:
    pytest.importorskip("sqlite_vec", reason="the extra sqlite-vec is not installed")
    note("memory/heron.md", "The heron stands in the river.\n")
    open_memory().sync()
    memory = open_memory(index__vector_engine="sqlite-vec")
    hit = memory.search("heron river").hits[0]
    assert [part.name for part in hit.explain.parts][:2] == ["vector", "keyword"]


# ---- files --------------------------------------------------------------------------------------------------------


def settle(workspace: Path) -> None:
    """Make every file and folder look as if it was last changed an hour ago."""
    for path in (workspace, *workspace.rglob("*")):
        then = path.stat().st_mtime - 3600
        os.utime(path, (then, then))


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("settled", [True, False])
def test_every_kind_of_change_is_found_by_the_next_search(
    note, open_memory, workspace: Path, settled: bool
) -> None:
    note("memory/bird.md", "The heron stands in the river.\n")
    note("memory/kite.md", "The kite circles above.\n")
    memory = open_memory()

    def paths(query: str) -> list[str]:
        found = [hit.path for hit in memory.search(query, min_score=0.4).hits]
        if settled:
            settle(workspace)
            memory.search(query)
        return found

    assert paths("heron") == ["memory/bird.md"]
    note("memory/bird.md", "The otter sleeps in the river.\n")  # same size, same folder
    assert (paths("otter"), paths("heron")) == (["memory/bird.md"], [])
    note("memory/deep/er/newt.md", "The newt hides.\n")
    assert paths("newt hides") == ["memory/deep/er/newt.md"]
    (workspace / "memory/kite.md").rename(workspace / "memory/deep/kite.md")
    assert paths("kite circles") == ["memory/deep/kite.md"]
    (workspace / "memory/deep/er/newt.md").unlink()
    assert paths("newt hides") == []
    note("MEMORY.md", "The stork nests.\n")
    assert paths("stork nests") == ["MEMORY.md"]


def test_an_edit_within_the_resolution_of_the_clock_is_found(note, open_memory) -> None:
    file = note("memory/bird.md", "The heron stands.\n")
    memory = open_memory()
    memory.search("heron")
    stat = file.stat()
    file.write_text("The stork stands.\n", encoding="utf-8")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert [hit.path for hit in memory.search("stork", min_score=0.5).hits] == ["memory/bird.md"]


def test_a_search_that_finds_nothing_changed_does_not_open_the_files(
    note, open_memory, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        note(f"memory/{number}.md", f"heron {number}\n")
    settle(workspace)
    memory = open_memory()
    memory.search("heron")
    engine = engine_of(memory)
    monkeypatch.setattr(
        type(engine.workspace), "scan", lambda _: pytest.fail("the folders were listed again")
    )
    assert len(memory.search("heron", max_results=10).hits) == 10


def test_more_files_than_fit_into_the_time_are_counted_and_indexed_newest_first(
    note, open_memory, workspace: Path
) -> None:
    for number in range(300):
        file = note(f"memory/{number:03}.md", f"heron ring{number}\n")
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    memory = open_memory(**ONE_SHOT)
    engine = engine_of(memory)
    engine.options = replace(engine.options, budget=SyncBudget(rows_s=0))
    answer = memory.search("ring299")
    assert [hit.path for hit in answer.hits][:1] == ["memory/299.md"]
    assert answer.degraded == (
        "299 of 300 files are not indexed yet. The next search continues, and `memoriter index` indexes all."
    )
    engine.options = replace(engine.options, budget=SyncBudget(rows_s=600))
    answer = memory.search("ring0")
    assert ([hit.path for hit in answer.hits][:1], answer.degraded) == (["memory/000.md"], None)


def test_a_search_that_may_not_index_says_that_nothing_is_indexed(note, open_memory) -> None:
    note("memory/heron.md", "The heron stands in the river.\n")
    memory = open_memory(search__sync_before=False, **ONE_SHOT)
    answer = memory.search("heron")
    assert (answer.hits, answer.degraded) == (
        (),
        "Nothing is indexed yet. Files that wait for the first search or for `memoriter index`: 1.",
    )
    memory.sync()
    assert memory.search("heron").degraded is None


def test_the_status_before_the_first_index_says_that_nothing_is_indexed(note, open_memory) -> None:
    note("memory/heron.md", "The heron stands in the river.\n")
    memory = open_memory()
    assert memory.status().degraded == (
        "Nothing is indexed yet. Files that wait for the first search or for `memoriter index`: 1."
    )
    memory.search("heron")
    assert memory.status().degraded is None


def test_a_search_on_a_full_disk_answers_from_the_index_and_says_what_it_lacks(note, open_memory) -> None:
    for number in range(20):
        note(f"memory/{number:02}.md", f"The heron number {number} has ring {number * 7919}.\n")
    memory = open_memory()
    memory.sync()
    database = engine_of(memory).index._database
    assert database._writer is not None
    pages = database._writer.connection.execute("pragma page_count").fetchall()[0][0]
    database._writer.connection.execute(f"pragma max_page_count = {pages}").fetchall()
    note("memory/05.md", "The stork is back.\n" * 20_000)
    for _ in range(2):
        answer = memory.search("ring 7919")
        assert answer.hits[0].path == "memory/01.md"
        assert answer.degraded == (
            f"Files that changed recently are not indexed: Cannot write {database.path}: the disk is full."
        )
    database._writer.connection.execute("pragma max_page_count = 1000000").fetchall()
    answer = memory.search("stork")
    assert (answer.hits[0].path, answer.degraded) == ("memory/05.md", None)


# ---- entries ------------------------------------------------------------------------------------------------------


def test_the_first_search_after_a_large_import_answers_from_keywords_and_counts_missing_vectors(
    open_memory,
) -> None:
    memory, embedder = open_slow(open_memory, **ONE_SHOT)
    entries = memory.entries
    entries._context.follower._clock = lambda: embedder.now
    texts = [f"The stork with the ring {number * 7919} is called Nr{number * 31}." for number in range(20)]
    entries.import_(json.dumps(texts))
    seen = [entries.missing_vectors()]
    for _ in range(3):
        answer = memory.search("ring 7919", source="entries")
        assert "ring 7919 " in answer.hits[0].snippet
        assert (answer.degraded, entries._context.count_pending()["vectors"]) == (
            entries.missing_vectors(),
            20 - embedder.texts,
        )
        seen.append(answer.degraded)

    def sentence(count: int) -> str:
        return (
            f"{count} of 20 entries have no vector yet, so only keywords find them. "
            "They are embedded in the background and by the next searches."
        )

    assert seen == [
        sentence(15),
        sentence(10),
        sentence(5),
        None,
    ]  # the import embeds what fits into its time


def test_an_open_memory_embeds_imported_entries_in_the_background(open_memory) -> None:
    memory, embedder = open_slow(open_memory)
    entries = memory.entries
    for number in range(3):
        entries.add(f"The stork with the ring {number * 7919} is called Nr{number * 31}.", "fact")
    with entries._context.follower.index.transaction():
        entries._context.follower.index.clear()
        entries._context.follower.index.set_meta(entries="")
    follower = entries._context.follower
    follower._clock = lambda: embedder.now
    embedder.now += 1000
    assert follower._background is not None
    memory.search("stork", source="entries")
    follower._background.wait(120)
    assert (memory.search("stork", source="entries").degraded, follower.count_missing()) == (None, (0, 3))


class WaitingEmbedder(HashEmbedder):
    """An embedder that computes vectors of documents only after a sign."""

    def __init__(self) -> None:
        super().__init__()
        self.may_continue = threading.Event()

    def embed(self, texts: Sequence[str]) -> Matrix:
        assert self.may_continue.wait(60)
        return super().embed(texts)


def test_after_a_large_import_a_search_leaves_all_vectors_to_the_background(open_memory) -> None:
    embedder = WaitingEmbedder()
    memory = open_memory(embedder)
    follower = memory.entries._context.follower
    follower._block = 4
    texts = [f"The stork with the ring {number * 7919} is called Nr{number * 31}." for number in range(20)]
    memory.entries.import_(json.dumps(texts))
    answer = memory.search("ring 7919", source="entries")
    embedder.may_continue.set()  # neither the import nor the search has waited for this
    assert "ring 7919 " in answer.hits[0].snippet
    assert answer.degraded == (
        "20 of 20 entries have no vector yet, so only keywords find them. "
        "They are embedded in the background and by the next searches."
    )
    assert follower._background is not None
    follower._background.wait(120)
    assert memory.search("stork", source="entries").degraded is None
