"""AsyncMemory: `Memory` for programs that run an event loop.

It forwards to threads: files, SQLite and the embedder block anyway, so there is one implementation.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar

from memoriter.background import cancellable
from memoriter.memory import Memory
from memoriter.records import (
    Answer,
    Excerpt,
    ProgressCallback,
    Query,
    Saved,
    Source,
    Status,
    SyncReport,
    Trust,
)

if TYPE_CHECKING:
    from memoriter.embedding import Embedder

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the call gives, without keeping the event loop; who is cancelled stops waiting at once."""
    given_up = threading.Event()
    with cancellable(given_up):
        try:
            return await asyncio.to_thread(call, *args, **kwargs)
        except asyncio.CancelledError:
            given_up.set()  # an outside program that works for us is stopped; the thread itself cannot be
            raise


class AsyncMemory:
    """`Memory` for event loops: every call runs in a thread and can be awaited."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    @classmethod
    async def open(
        cls,
        workspace: Path | str | None = None,
        *,
        home: Path | str | None = None,
        agent: str | None = None,
        config: Path | str | None = None,
        overrides: Mapping[str, object] | None = None,
        embedder: Embedder | None = None,
    ) -> AsyncMemory:
        """Open the memory of a workspace, as `Memory.open` does."""
        return cls(
            await in_thread(
                Memory.open,
                workspace,
                home=home,
                agent=agent,
                config=config,
                overrides=overrides,
                embedder=embedder,
            )
        )

    async def sync(
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        progress: ProgressCallback | None = None,
    ) -> SyncReport:
        """As `Memory.sync`."""
        return await in_thread(self.memory.sync, force=force, verify=verify, batch=batch, progress=progress)

    async def search(
        self,
        query: str | Query,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        path_prefix: str | None = None,
        session_key: str | None = None,
    ) -> Answer:
        """As `Memory.search`."""
        return await in_thread(
            self.memory.search,
            query,
            max_results=max_results,
            min_score=min_score,
            source=source,
            path_prefix=path_prefix,
            session_key=session_key,
        )

    async def read(self, path: str, start: int = 1, lines: int | None = None) -> Excerpt:
        """As `Memory.read`."""
        return await in_thread(self.memory.read, path, start, lines)

    async def save(
        self,
        content: str,
        title: str = "",
        tags: Sequence[str] = (),
        category: str | None = None,
        *,
        trust: Trust = "owner",
    ) -> Saved:
        """As `Memory.save`."""
        return await in_thread(self.memory.save, content, title, tags, category, trust=trust)

    async def summarise(self, messages: Iterable[Mapping[str, object]], session: str) -> Saved | None:
        """As `Memory.summarise`."""
        return await in_thread(self.memory.summarise, messages, session)

    async def flush(
        self,
        messages: Iterable[Mapping[str, object]],
        session: str,
        *,
        window: int | None,
        tokens: int | None = None,
    ) -> Saved | None:
        """As `Memory.flush`."""
        return await in_thread(self.memory.flush, messages, session, window=window, tokens=tokens)

    async def status(self, *, deep: bool = False) -> Status:
        """As `Memory.status`."""
        return await in_thread(self.memory.status, deep=deep)

    async def close(self) -> None:
        """As `Memory.close`."""
        await in_thread(self.memory.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
