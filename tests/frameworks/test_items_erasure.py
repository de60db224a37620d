"""Deleting items is cheap, and their bytes are erased soon: automatically, at the end, or at the next opening."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from memoriter import Memory
from memoriter.extensions.langgraph.items import DelayedWork, items_of
from memoriter.extensions.langgraph.items.store import ItemStore, Put
from memoriter.extensions.langgraph.store import MemoriterStore
from memoriter.store.item_schema import open_items_file

OpenMemory = Callable[..., Memory]
DEADLINE_S = 60.0


@pytest.fixture
def canary() -> str:
    return f"canary{uuid.uuid4().hex}"


def holding(folder: Path, text: str) -> list[Path]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if text.encode() in file.read_bytes()]


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_deleted_items_are_hidden_immediately_and_erased_together(
    open_memory: OpenMemory, tmp_path: Path
) -> None:
    memory = open_memory()
    store = MemoriterStore(memory)
    words = [f"word{uuid.uuid4().hex}" for _ in range(10)]
    for number, word in enumerate(words):
        store.put(("d",), str(number), {"text": f"the word is {word}"})
    for number in range(9):
        store.delete(("d",), str(number))
    assert [item.key for item in store.search(("d",), query=words[0])] == ["9"]
    assert len(items_of(memory).store.unfinished()) == 18  # nine items and nine vectors, none erased yet
    items_of(memory).settle()
    assert items_of(memory).store.unfinished() == []
    assert [word for word in words if holding(tmp_path / "state", word)] == words[9:]


def test_bytes_are_erased_automatically_while_the_program_runs(
    open_memory: OpenMemory, tmp_path: Path, canary: str
) -> None:
    store = MemoriterStore(open_memory())
    store.put(("d",), "gone", {"text": f"the word is {canary}"})
    assert holding(tmp_path / "state", canary)
    store.delete(("d",), "gone")
    until(lambda: not holding(tmp_path / "state", canary))


def test_bytes_are_erased_when_a_program_ends_without_closing(
    workspace: Path, tmp_path: Path, canary: str
) -> None:
    program = textwrap.dedent("""
        import sys
        from memoriter import Memory
        from memoriter.extensions.langgraph.store import MemoriterStore
        memory = Memory.open(sys.argv[1], home=sys.argv[2], overrides={"embedding.provider": "none"})
        store = MemoriterStore(memory)
        store.put(("d",), "gone", {"text": sys.argv[3]})
        store.delete(("d",), "gone")
    """)
    state = tmp_path / "state"
    subprocess.run([sys.executable, "-c", program, workspace, state, canary], check=True, timeout=600)
    assert list(state.glob("agents/*/items.db"))
    assert holding(state, canary) == []


def test_an_erasure_is_not_complete_while_another_process_reads(tmp_path: Path) -> None:
    file = tmp_path / "items.db"
    store = ItemStore(open_items_file(file, timeout_s=0.1))
    store.put(Put(("d",), "gone", {"text": "x"}), at=1.0)
    item = store.get(("d",), "gone", now=2.0)
    assert item is not None
    reader = apsw.Connection(str(file))
    reader.execute("begin")
    reader.execute("select count(*) from items").fetchall()
    store.delete(item)
    store.mark_for_erasure(item, ["0" * 64])
    unfinished = store.unfinished()
    assert not store.finish(unfinished, store.seq())
    assert store.unfinished() == unfinished
    reader.close()
    assert store.finish(unfinished, store.seq())
    assert (store.unfinished(), store.changed_since(0)) == ([], {})
    store.close()


def test_an_item_deleted_again_during_its_erasure_is_erased_again(tmp_path: Path) -> None:
    store = ItemStore(open_items_file(tmp_path / "items.db"))
    store.put(Put(("alice",), "note", {"text": "x"}, ("x",)), at=1.0)
    item = store.get(("alice",), "note", now=2.0)
    assert item is not None
    store.put(Put(("alice",), "note", {"text": "y"}, ("y",)), at=3.0)
    store.mark_for_erasure(item, ["0" * 64])
    names, seq = store.unfinished(), store.seq()
    store.delete(item)  # by another thread, before the first erasure ends
    store.mark_for_erasure(item, ["0" * 64])
    assert store.finish(names, seq)
    left = store.unfinished()
    assert [name.partition(" ")[0] for name in left] == sorted(["0" * 64, item.id])
    assert store.finish(left, store.seq())
    assert (store.unfinished(), store.changed_since(0)) == ([], {})
    store.close()


def test_many_requests_run_the_work_once_and_running_work_is_awaited() -> None:
    begun, go, done = threading.Event(), threading.Event(), []

    def work() -> bool:
        begun.set()
        assert go.wait(DEADLINE_S)
        done.append(1)
        return True

    delayed = DelayedWork(work, delay_s=0.01)
    for _ in range(5):
        delayed.request()
    assert begun.wait(DEADLINE_S)
    delayed.request()  # after it started, so it must run once more
    go.set()
    delayed.close()
    assert done == [1, 1]
    delayed.request()
    delayed.run_now()
    assert done == [1, 1]


def test_failed_work_is_retried() -> None:
    tries: list[int] = []
    enough = threading.Event()

    def work() -> bool:
        tries.append(1)
        if len(tries) == 3:
            enough.set()
        return len(tries) >= 3

    delayed = DelayedWork(work, delay_s=0.01)
    delayed.request()
    assert enough.wait(DEADLINE_S)
    delayed.close()
    assert len(tries) == 3


def test_failed_work_runs_again_when_it_is_closed() -> None:
    tries: list[int] = []

    def work() -> bool:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("the disk is full")
        return True

    delayed = DelayedWork(work, delay_s=DEADLINE_S)
    delayed.request()
    with pytest.raises(OSError, match="the disk is full"):
        delayed.run_now()
    delayed.close()
    assert len(tries) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_does_not_wait_for_work_of_its_parent() -> None:
    begun, go = threading.Event(), threading.Event()
    done: list[int] = []

    def work() -> bool:
        begun.set()
        done.append(os.getpid())
        return go.wait(DEADLINE_S)

    delayed = DelayedWork(work, delay_s=0.01)
    delayed.request()
    assert begun.wait(DEADLINE_S)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(30)  # ends a child that waits forever
        go.set()
        delayed.run_now()  # nothing was requested in the child
        delayed.request()
        delayed.close()
        os._exit(done.count(os.getpid()))
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    go.set()
    delayed.close()
    assert (ended, done) == (1, [os.getpid()])
