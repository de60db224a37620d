"""The index depends only on the transcripts, however they grew, were truncated, replaced or deleted."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memoriter import Memory
from memoriter.testing import FailingEmbedder, HashEmbedder

OpenMemory = Callable[..., Memory]


def line(text: str, role: str = "user") -> str:
    return json.dumps({"role": role, "content": text, "time": 1_770_544_800}, ensure_ascii=False) + "\n"


def rows(memory: Memory) -> list[tuple[object, ...]]:
    """Return everything that the index contains about the transcripts."""
    index = memory._parts.engine.index  # type: ignore[attr-defined]
    with index._database.read() as connection:
        found = connection.execute(
            "select path, start_line, end_line, id, text, date, trust, model, source from chunks"
            " order by path, start_line, id"
        )
        return list(found)


class GrowingSessions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        (self.root / "w/memory").mkdir(parents=True)
        self.sessions = self.root / "sessions"
        self.sessions.mkdir()
        self.memory = self.opened("state")

    def opened(self, state: str) -> Memory:
        overrides = {"sessions.paths": [str(self.sessions)], "chunking.tokens": 32, "chunking.overlap": 0}
        return Memory.open(
            self.root / "w",
            home=self.root / state,
            embedder=HashEmbedder(),
            overrides={**overrides, "chunking.target": 16},
        )

    names = st.sampled_from(["a.jsonl", "b.jsonl"])

    @rule(
        name=names,
        texts=st.lists(
            st.sampled_from(["heron", "苍鹭在沼泽里", "x " * 90, "", "yes"]), min_size=1, max_size=6
        ),
        role=st.sampled_from(["user", "assistant"]),
        end=st.sampled_from(["", "", '{"role": "user", "content": "half', "{broken\n", "\n"]),
    )
    def grow(self, name: str, texts: list[str], role: str, end: str) -> None:
        with (self.sessions / name).open("a", encoding="utf-8") as file:
            file.write("".join(line(text, role) for text in texts) + end)

    @rule(name=names, share=st.floats(0, 1))
    def cut(self, name: str, share: float) -> None:
        path = self.sessions / name
        if path.exists():
            path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])

    @rule(name=names)
    def delete(self, name: str) -> None:
        (self.sessions / name).unlink(missing_ok=True)

    @rule(name=names)
    def replace(self, name: str) -> None:
        other = self.sessions / "new.tmp"
        other.write_text(line("another session") * 3, encoding="utf-8")
        other.replace(self.sessions / name)

    @rule(force=st.booleans())
    def sync(self, force: bool) -> None:
        self.memory.sync(force=force)

    @rule()
    def restart(self) -> None:
        self.memory.close()
        self.memory = self.opened("state")

    @invariant()
    def nothing_is_damaged(self) -> None:
        assert not self.memory._parts.engine.index.check()  # type: ignore[attr-defined]

    def teardown(self) -> None:
        self.memory.sync()
        with self.opened("fresh") as fresh:
            fresh.sync()
            assert rows(self.memory) == rows(fresh)
        self.memory.close()
        self.folder.cleanup()


TestGrowingSessions = GrowingSessions.TestCase
TestGrowingSessions.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)


def test_missing_vectors_are_added_after_the_embedder_failed(open_memory: OpenMemory, tmp_path: Path) -> None:
    folder = tmp_path / "state/agents/main/sessions"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text(line("The heron stands in the marsh."), encoding="utf-8")
    embedder = FailingEmbedder()
    memory = open_memory(embedder)
    assert memory.sync().pending == 1
    source = memory._parts.engine.indexer.sessions  # type: ignore[attr-defined]
    (folder / "long.jsonl").write_text(line("x") * 3000, encoding="utf-8")
    assert memory.sync().pending > 1
    before = source.bytes_read
    with (folder / "a.jsonl").open("a", encoding="utf-8") as file:
        file.write(line("A stork came by."))
    embedder.heal()
    assert memory.sync().pending == 0
    assert source.bytes_read - before < 12_000, "what only lacked vectors was not read again"
    assert memory.search("heron", min_score=0).hits
    assert memory.search("stork", min_score=0).hits


def test_damaged_lines_are_reported_and_skipped(open_memory: OpenMemory, tmp_path: Path) -> None:
    folder = tmp_path / "state/agents/main/sessions"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text("{broken\n" + line("The heron stands.") + "\x00\x00\n", encoding="utf-8")
    report = open_memory().sync()
    assert (report.files, report.chunks, report.failed) == (1, 1, 0)
    assert [(one.path, one.reason) for one in report.problems] == [
        ("sessions/a.jsonl", "2 damaged lines were left out")
    ]


@pytest.mark.soak
def test_two_hundred_megabytes_that_grow_by_a_kilobyte(open_memory: OpenMemory, tmp_path: Path) -> None:
    folder = tmp_path / "state/agents/main/sessions"
    folder.mkdir(parents=True)
    transcript = folder / "a.jsonl"
    noise = json.dumps({"role": "tool", "content": "output of a tool " * 250}) + "\n"
    with transcript.open("w", encoding="utf-8") as file:
        for number in range(45_000):
            file.write(noise)
            if number % 10 == 0:
                file.write(line(f"number {number}: the heron moved to pond {number % 97}"))
    assert transcript.stat().st_size > 190_000_000
    memory = open_memory()
    memory.sync()
    source = memory._parts.engine.indexer.sessions  # type: ignore[attr-defined]
    before = source.bytes_read
    with transcript.open("a", encoding="utf-8") as file:
        file.write(line("A stork came by. " * 60))
    report = memory.sync()
    assert (report.changed, source.bytes_read - before < 6_000) == (1, True)
