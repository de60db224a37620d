"""AsyncMemory: every public method of `Memory`, `Entries` and `Notes`, with the same arguments, to be awaited."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path
from typing import Any

import pytest

from memoriter import AsyncMemory, Entries, Memory, MemoryClosed, Notes, NotFound
from memoriter.async_memory import AsyncEntries, AsyncNotes, in_thread
from memoriter.testing import HashEmbedder

#: `Memory` closes its entries, and `open`, which gives no coroutine, has a test of its own.
OTHERS = {("Entries", "close"), ("AsyncMemory", "open")}


def public_methods(kind: type) -> dict[str, Any]:
    return {
        name: value
        for name, value in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and (kind.__name__, name) not in OTHERS
    }


PAIRS = [(Memory, AsyncMemory), (Entries, AsyncEntries), (Notes, AsyncNotes)]


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS, ids=lambda kind: kind.__name__)
def test_no_method_is_missing(blocking: type, awaited: type) -> None:
    assert public_methods(awaited).keys() == public_methods(blocking).keys()


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS, ids=lambda kind: kind.__name__)
def test_every_method_takes_the_same_arguments_and_can_be_awaited(blocking: type, awaited: type) -> None:
    for name, method in public_methods(blocking).items():
        forwarded = getattr(awaited, name)
        assert inspect.signature(forwarded).parameters == inspect.signature(method).parameters, name
        assert inspect.iscoroutinefunction(forwarded), name
        assert forwarded.__doc__ == method.__doc__


def test_open_takes_the_same_arguments() -> None:
    assert inspect.signature(AsyncMemory.open).parameters == inspect.signature(Memory.open).parameters


def test_every_property_exists(open_memory) -> None:
    members = inspect.getmembers(Memory, lambda value: isinstance(value, property))
    properties = {name for name, _ in members if not name.startswith("_")}
    memory = AsyncMemory(open_memory())
    assert {name for name in properties if not hasattr(memory, name)} == set()
    assert memory.settings is memory.memory.settings


def open_async(workspace: Path, tmp_path: Path) -> Any:
    return AsyncMemory.open(workspace, home=tmp_path / "state", embedder=HashEmbedder())


def test_a_story_in_an_event_loop(note, workspace: Path, tmp_path: Path) -> None:
    note("memory/a.md", "The heron stands in the water.")

    async def story() -> None:
        async with open_async(workspace, tmp_path) as memory:
            assert (await memory.sync()).files == 1
            answer = await memory.search("heron")
            assert [hit.path for hit in answer] == ["memory/a.md"]
            assert (await memory.read("memory/a.md")).text == "The heron stands in the water."
            remembered = await memory.remember("The user prefers tabs.", type="user_preference")
            assert remembered.entry is not None
            assert [entry.id for entry in await memory.entries.list()] == [remembered.entry.id]
            assert len(await memory.entries.export()) == 2  # a header and the entry
            assert "tabs" in (await memory.recall("Does the user prefer tabs?")).text
            assert [file.path for file in await memory.notes.list()] == ["memory/a.md"]
            receipt = await memory.erase(remembered.entry.id)
            assert receipt.forgotten == (remembered.entry.id,)
            with pytest.raises(NotFound):
                await memory.read("memory/missing.md")
        with pytest.raises(MemoryClosed):
            await memory.search("heron")

    asyncio.run(story())


def test_an_awaited_memory_is_closed_by_its_owner(workspace: Path, tmp_path: Path) -> None:
    async def story() -> None:
        async with await open_async(workspace, tmp_path) as memory:
            await memory.status()
        with pytest.raises(MemoryClosed):
            await memory.status()

    asyncio.run(story())


def test_searches_run_at_the_same_time(note, workspace: Path, tmp_path: Path) -> None:
    note("memory/a.md", "The heron stands in the water.")

    async def story() -> list[int]:
        async with open_async(workspace, tmp_path) as memory:
            return [
                len(answer) for answer in await asyncio.gather(*[memory.search("heron") for _ in range(8)])
            ]

    assert asyncio.run(story()) == [1] * 8


def test_a_cancelled_call_tells_the_work_to_stop() -> None:
    from memoriter.background import is_cancelled

    running, release, states = threading.Event(), threading.Event(), list[bool]()

    def call() -> None:
        running.set()
        release.wait(10)
        states.append(is_cancelled())

    async def story() -> None:
        task = asyncio.create_task(in_thread(call))
        await asyncio.to_thread(running.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()

    asyncio.run(story())
    assert states == [True]
