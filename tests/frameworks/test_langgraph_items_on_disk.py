"""Items of MemoriterStore on disk: a killed process, a damaged index, and erasure."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from memoriter import Memory
from memoriter.extensions.langgraph.items import items_of
from memoriter.extensions.langgraph.store import MemoriterStore

OpenMemory = Callable[..., Memory]


def test_items_survive_a_killed_process(tmp_path: Path, workspace: Path) -> None:
    script = f"""
        import os
        from memoriter import Memory
        from memoriter.extensions.langgraph.store import MemoriterStore
        from memoriter.testing import HashEmbedder
        memory = Memory.open({str(workspace)!r}, home={str(tmp_path / "state")!r}, embedder=HashEmbedder())
        MemoriterStore(memory).put(("users", "1"), "prefs", {{"text": "prefers green tea"}})
        print("saved", flush=True)
        os._exit(9)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (9, "saved\n"), done.stderr
    with Memory.open(workspace, home=tmp_path / "state", overrides={"embedding.provider": "none"}) as memory:
        found = MemoriterStore(memory).search(("users",), query="tea")
        assert [(item.key, item.value) for item in found] == [("prefs", {"text": "prefers green tea"})]


def test_a_missing_or_damaged_index_is_rebuilt_from_the_items(
    open_memory: OpenMemory, tmp_path: Path
) -> None:
    with open_memory() as memory:
        store = MemoriterStore(memory)
        for number in range(5):
            store.put(("d",), str(number), {"text": f"word{number} is here"})
    (index,) = (tmp_path / "state").glob("agents/*/items/index.db")
    index.write_bytes(b"not a database" * 1000)
    memory = open_memory()
    assert MemoriterStore(memory).search(("d",), query="word3")[0].key == "3"


def vectors_in(folder: Path) -> set[bytes]:
    """Return every vector in the index of items."""
    (index,) = folder.glob("agents/*/items/index.db")
    with apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        rows: Any = connection.execute("select vector from embedding_cache")
        return {row[0] for row in rows.fetchall()}


def files_with(folder: Path, *contents: bytes) -> list[Path]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if any(content in file.read_bytes() for content in contents)]


def test_replaced_and_deleted_values_leave_no_bytes(open_memory: OpenMemory, tmp_path: Path) -> None:
    first, second = (f"canary{uuid.uuid4().hex}" for _ in range(2))
    state = tmp_path / "state"
    with open_memory() as memory:
        store = MemoriterStore(memory)
        store.put(("d",), "keep", {"text": "something else"})
        kept = vectors_in(state)
        store.put(("d",), "gone", {"text": f"the password word is {first}"})
        old = vectors_in(state) - kept
        store.put(("d",), "gone", {"text": f"now it is {second}"})
        assert len(old) == 1
        items_of(memory).settle()
        assert files_with(state, first.encode(), *old) == []
        new = vectors_in(state) - kept
        assert len(new) == 1
        assert store.search(("d",), query=second)[0].key == "gone"
        store.delete(("d",), "gone")
        items_of(memory).settle()
        assert vectors_in(state) == kept
        assert store.search(("d",), query=second)[0].key == "keep"
    assert files_with(state, first.encode(), second.encode(), *old, *new) == []


def test_a_vector_is_erased_with_the_last_item_that_uses_it(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory()
    store = MemoriterStore(memory)
    store.put(("d",), "one", {"text": "the same"})
    store.put(("d",), "two", {"text": "the same"})
    held = vectors_in(tmp_path / "state")
    store.put(("d",), "one", {"text": "the same", "note": None})  # its searchable text does not change
    assert vectors_in(tmp_path / "state") == held
    store.put(("d",), "one", {"text": "another"})
    items_of(memory).settle()
    assert held < vectors_in(tmp_path / "state")
    store.delete(("d",), "two")
    items_of(memory).settle()
    assert not held & vectors_in(tmp_path / "state")


def test_an_interrupted_erasure_is_completed_at_the_next_opening(open_memory: OpenMemory) -> None:
    with open_memory() as memory:
        store = MemoriterStore(memory)
        store.put(("d",), "gone", {"text": "unfinished business"})
        item = items_of(memory).get(("d",), "gone")
        assert item is not None
        with items_of(memory).store.database.write():  # like a process that is killed right after
            items_of(memory).store.delete(item)
            items_of(memory).store.mark_for_erasure(item, ["0" * 64])
    memory = open_memory()
    assert items_of(memory).store.unfinished() == []
    assert items_of(memory).index.index.files() == {}
