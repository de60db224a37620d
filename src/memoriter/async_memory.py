"""AsyncMemory: `Memory` for programs that run an event loop.

Files, SQLite and the embedder block, so there is one implementation, and every call runs in a thread.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from memoriter.background import cancellable
from memoriter.entries.collection import Entries
from memoriter.memory import Memory
from memoriter.notes.collection import Notes

if TYPE_CHECKING:
    from memoriter.config import Settings

P = ParamSpec("P")
T = TypeVar("T")
Target = TypeVar("Target")

Forwarded = Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Make the call in a thread and return its result. A caller that is cancelled stops waiting immediately."""
    cancelled = threading.Event()
    with cancellable(cancelled):
        try:
            return await asyncio.to_thread(call, *args, **kwargs)
        except asyncio.CancelledError:
            cancelled.set()  # stops an external program that works for the call; the thread itself cannot be stopped
            raise


def forward(method: Callable[Concatenate[Any, P], T]) -> Forwarded[P, T]:
    """Return the method as a coroutine function with the same signature."""

    @functools.wraps(method)
    async def call(self: _Forwarding[Any], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await in_thread(lambda: method(self._target(), *args, **kwargs))

    return call


def forward_list(method: Callable[Concatenate[Any, P], Iterable[T]]) -> Forwarded[P, list[T]]:
    """Do the same for a method that yields its results one by one: return all of them."""

    @functools.wraps(method)
    async def call(self: _Forwarding[Any], /, *args: P.args, **kwargs: P.kwargs) -> list[T]:
        return await in_thread(lambda: list(method(self._target(), *args, **kwargs)))

    return call


def opening(open_memory: Callable[P, Memory]) -> Callable[P, Opening]:
    """Return a function with the same signature whose result is awaited, or used with ``async with``."""

    @functools.wraps(open_memory)
    def call(*args: P.args, **kwargs: P.kwargs) -> Opening:
        return Opening(lambda: open_memory(*args, **kwargs))

    call.__signature__ = inspect.signature(open_memory).replace(return_annotation="Opening")  # type: ignore[attr-defined]
    return staticmethod(call)


class _Forwarding(Generic[Target]):
    """Calls the methods of another object in threads. The object is looked up there, because opening it may block."""

    def __init__(self, target: Callable[[], Target]) -> None:
        self._target = target


class AsyncEntries(_Forwarding[Entries]):
    """`Entries` for event loops."""

    add = forward(Entries.add)
    add_draft = forward(Entries.add_draft)
    capture = forward(Entries.capture)
    get = forward(Entries.get)
    get_many = forward(Entries.get_many)
    detail = forward(Entries.detail)
    list = forward(Entries.list)
    page = forward(Entries.page)
    search = forward(Entries.search)
    mark_used = forward(Entries.mark_used)
    replaced_by = forward(Entries.replaced_by)
    update = forward(Entries.update)
    merge = forward(Entries.merge)
    supersede = forward(Entries.supersede)
    history = forward(Entries.history)
    undo = forward(Entries.undo)
    redo = forward(Entries.redo)
    approve = forward(Entries.approve)
    reject = forward(Entries.reject)
    says_forgotten = forward(Entries.says_forgotten)
    forget = forward(Entries.forget)
    erase = forward(Entries.erase)
    cleanup = forward(Entries.cleanup)
    repair_index = forward(Entries.repair_index)
    undone = forward(Entries.undone)
    export = forward_list(Entries.export)
    import_ = forward(Entries.import_)
    undo_import = forward(Entries.undo_import)
    stats = forward(Entries.stats)
    facets = forward(Entries.facets)
    missing_vectors = forward(Entries.missing_vectors)
    timeline = forward(Entries.timeline)
    recalls = forward(Entries.recalls)
    get_recall = forward(Entries.get_recall)


class AsyncNotes(_Forwarding[Notes]):
    """`Notes` for event loops."""

    list = forward(Notes.list)
    paths = forward(Notes.paths)
    collections = forward(Notes.collections)
    get = forward(Notes.get)
    read = forward(Notes.read)
    chunks = forward(Notes.chunks)
    save = forward(Notes.save)
    text = forward(Notes.text)
    put = forward(Notes.put)
    move = forward(Notes.move)
    remove = forward(Notes.remove)
    pending = forward(Notes.pending)
    approve = forward(Notes.approve)
    mark_relayed = forward(Notes.mark_relayed)
    erase_lines = forward(Notes.erase_lines)
    find_quote = forward(Notes.find_quote)


class AsyncMemory(_Forwarding[Memory]):
    """`Memory` for event loops: every method runs in a thread and can be awaited.

    async with AsyncMemory.open("~/notes") as memory:
        answer = await memory.search("indentation?")
    """

    def __init__(self, memory: Memory) -> None:
        super().__init__(lambda: memory)
        #: The memory that answers.
        self.memory = memory
        #: `Memory.entries`, with methods to await.
        self.entries = AsyncEntries(lambda: memory.entries)
        #: `Memory.notes`, with methods to await.
        self.notes = AsyncNotes(lambda: memory.notes)

    open = opening(Memory.open)

    @property
    def settings(self) -> Settings:
        """The settings that this memory was opened with."""
        return self.memory.settings

    @property
    def has_entries(self) -> bool:
        """Whether anything was ever learned, as `Memory.has_entries`."""
        return self.memory.has_entries

    close = forward(Memory.close)
    search = forward(Memory.search)
    read = forward(Memory.read)
    sync = forward(Memory.sync)
    remember = forward(Memory.remember)
    forget = forward(Memory.forget)
    erase = forward(Memory.erase)
    recall = forward(Memory.recall)
    brief = forward(Memory.brief)
    profile = forward(Memory.profile)
    capture = forward(Memory.capture)
    capture_messages = forward(Memory.capture_messages)
    session_ended = forward(Memory.session_ended)
    save = forward(Memory.save)
    summarise = forward(Memory.summarise)
    summarise_transcript = forward(Memory.summarise_transcript)
    flush = forward(Memory.flush)
    transcript_writer = forward(Memory.transcript_writer)
    mark_changed = forward(Memory.mark_changed)
    status = forward(Memory.status)
    count_stale = forward(Memory.count_stale)
    maintain = forward(Memory.maintain)
    allows = forward(Memory.allows)
    prompt_section = forward(Memory.prompt_section)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class Opening:
    """A memory that is about to be opened: await it, or use it with ``async with``."""

    def __init__(self, open_memory: Callable[[], Memory]) -> None:
        self._open_memory = open_memory
        self._memory: AsyncMemory | None = None

    async def _open(self) -> AsyncMemory:
        return AsyncMemory(await in_thread(self._open_memory))

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncMemory:
        self._memory = await self._open()
        return self._memory

    async def __aexit__(self, *error: object) -> None:
        if self._memory is not None:
            await self._memory.close()
