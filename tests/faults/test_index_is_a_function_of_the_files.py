"""After any changes of files and any crashes, the index equals a complete rebuild."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import apsw
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from memoriter import Memory
from memoriter.testing import FailingEmbedder, HashEmbedder

NAMES = st.sampled_from(
    ["MEMORY.md", "memory/a.md", "memory/b.md", "memory/deep/c.md", "memory/2026-02-08.md"]
)
TEXTS = st.sampled_from(
    [
        "",
        "one\n",
        "two\n",
        "# A\n\nheron\n\n# B\n\nstork\n",
        "数据库备份\n" * 40,
        "x" * 5000,
        "# A\n\nheron\n",
    ]
)
SOAK = bool(os.environ.get("MEMORITER_SOAK"))


class Crash(Exception):
    """The process is killed here."""


def rows(memory: Memory) -> dict[str, list[tuple[object, ...]]]:
    """Return the contents of the index without row numbers and times, which may differ."""
    db = apsw.Connection(memory.status().index_path, flags=apsw.SQLITE_OPEN_READONLY)
    tables = {
        "files": "SELECT path, source, size, sha256 FROM files ORDER BY path",
        "chunks": "SELECT id, path, source, start_line, end_line, text, headings, date, hash, model"
        " FROM chunks ORDER BY path, start_line, id",
        "terms": "SELECT term, doc, cnt FROM chunks_terms ORDER BY term",
    }
    contents = {name: db.execute(query).fetchall() for name, query in tables.items()}
    db.close()
    return contents


class FilesAndIndex(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.workspace = self.root / "workspace"
        (self.workspace / "memory").mkdir(parents=True)
        self.open(HashEmbedder())

    def open(self, embedder) -> None:
        self.memory = Memory.open(
            self.workspace,
            home=self.root / "state",
            embedder=embedder,
            overrides={"chunking.tokens": 64, "chunking.overlap": 8},
        )

    @rule(name=NAMES, text=TEXTS)
    def write(self, name: str, text: str) -> None:
        file = self.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    @rule(name=NAMES, text=TEXTS)
    def append(self, name: str, text: str) -> None:
        if (self.workspace / name).is_file():
            with (self.workspace / name).open("a", encoding="utf-8") as opened:
                opened.write(text)

    @rule(old=NAMES, new=NAMES)
    def rename(self, old: str, new: str) -> None:
        if (self.workspace / old).is_file():
            (self.workspace / new).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / old).replace(self.workspace / new)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        (self.workspace / name).unlink(missing_ok=True)

    @rule(force=st.booleans())
    def sync(self, force: bool) -> None:
        self.memory.sync(force=force)

    @rule(step=st.integers(1, 4))
    def die_during_a_sync(self, step: int) -> None:
        def crash(progress) -> None:
            if progress.done == step:
                raise Crash

        try:
            self.memory.sync(progress=crash)
        except Crash:
            self.memory.close()
            self.open(HashEmbedder())

    @rule()
    def the_embedder_is_down_for_one_sync(self) -> None:
        self.memory.close()
        self.open(FailingEmbedder(after=0))
        self.memory.sync()
        self.memory.close()
        self.open(HashEmbedder())

    @rule()
    def the_index_is_deleted(self) -> None:
        self.memory.close()
        for file in (self.root / "state/agents/main/workspaces").glob("*/index.db*"):
            file.unlink()
        self.open(HashEmbedder())

    @rule()
    def index_equals_a_rebuild(self) -> None:
        self.memory.sync()
        with Memory.open(
            self.workspace,
            home=self.root / "fresh",
            embedder=HashEmbedder(),
            overrides={"chunking.tokens": 64, "chunking.overlap": 8},
        ) as fresh:
            fresh.sync()
            assert rows(self.memory) == rows(fresh)
        shutil.rmtree(self.root / "fresh")

    def teardown(self) -> None:
        if not hasattr(self, "memory"):
            return
        self.index_equals_a_rebuild()
        self.memory.close()
        shutil.rmtree(self.root)


TestFilesAndIndex = pytest.mark.timeout(3600)(FilesAndIndex.TestCase)
TestFilesAndIndex.settings = settings(
    max_examples=400 if SOAK else 30, stateful_step_count=30 if SOAK else 10, deadline=None
)
