"""Memory: opens the rooms, joins them, closes them. It holds no logic of its own.

`AsyncMemory` offers the same to programs that run an event loop, by forwarding to threads: files, SQLite and the
embedder block anyway, so there is one implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar

from recollect.indexing import Indexer, ProgressCallback, Rules
from recollect.managers import Manager
from recollect.managers.builtin import BuiltinManager, Conduct
from recollect.records import Answer, Excerpt, Source, Status, SyncReport
from recollect.retrieval import Options, Searcher
from recollect.sources import Workspace
from recollect.store.index import open_index

if TYPE_CHECKING:
    from recollect.config import Settings
    from recollect.embedding import Embedder
    from recollect.entries import Keeper

P = ParamSpec("P")
T = TypeVar("T")


class Memory:
    """The memory of one agent over one workspace."""

    def __init__(self, settings: Settings, manager: Manager) -> None:
        self.settings = settings
        self.manager = manager
        self._keeper: Keeper | None = None

    @classmethod
    def open(
        cls,
        workspace: Path | str | None = None,
        *,
        home: Path | str | None = None,
        agent: str | None = None,
        config: Path | str | None = None,
        overrides: Mapping[str, object] | None = None,
        embedder: Embedder | None = None,
    ) -> Memory:
        """Open the memory of a workspace.

        ``overrides`` sets single settings by their dotted key, such as ``{"search.max_results": 10}``; ``embedder``
        is used instead of the configured one.
        """
        from recollect.config import load

        given = {"workspace": workspace, "home": home, "agent": agent}
        arguments = {key: value for key, value in given.items() if value is not None} | dict(overrides or {})
        settings = load(config=Path(config) if config else None, arguments=arguments)
        return cls(settings, build_manager(settings, embedder))

    def sync(
        self, *, force: bool = False, verify: bool = False, progress: ProgressCallback | None = None
    ) -> SyncReport:
        """Make the index say what the files say; ``force`` builds it anew beside the old one."""
        return self.manager.sync(force=force, verify=verify, progress=progress)

    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        path_prefix: str | None = None,
        session_key: str | None = None,
    ) -> Answer:
        """The few lines that answer the query, best first, each with its place and its reasons."""
        return self.manager.search(
            query,
            max_results=max_results,
            min_score=min_score,
            source=source,
            path_prefix=path_prefix,
            session_key=session_key,
        )

    def read(self, path: str, start: int = 1, lines: int | None = None) -> Excerpt:
        """Some lines of a file that a hit cites."""
        return self.manager.read_file(path, start, lines)

    def status(self, *, deep: bool = False) -> Status:
        """What is indexed, by which embedder, and what is wrong."""
        return self.manager.status(deep=deep)

    @property
    def keeper(self) -> Keeper:
        """What was learned in conversation; opened at first use."""
        if self._keeper is None:
            self._keeper = build_keeper(self.settings, self.manager)
        return self._keeper

    def close(self) -> None:
        """Give back files and threads."""
        if self._keeper is not None:
            self._keeper.close()
        self.manager.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def build_manager(settings: Settings, embedder: Embedder | None = None) -> Manager:
    """Join the rooms as the settings say."""
    from recollect.embedding import Batched, Cached, Choice, resolve

    chosen = settings.embedding
    choice = (
        Choice.given(embedder)
        if embedder
        else resolve(chosen.provider, model_path=chosen.model_path, threads=chosen.threads)
    )
    index = open_index(settings.agent_folder, engine=settings.index.vector_engine)
    cached = None
    if choice.embedder:
        batched = Batched(
            choice.embedder,
            items=chosen.batch_items,
            tokens=chosen.batch_tokens,
            concurrency=chosen.concurrency,
        )
        cached = Cached(batched, index)
    workspace = Workspace(
        settings.workspace,
        extra_paths=settings.files.extra_paths,
        patterns=settings.files.patterns,
        max_bytes=settings.files.max_bytes,
    )
    rules = Rules(
        settings.chunking.tokens, settings.chunking.overlap, settings.embedding.cache_limit_mb * 1024 * 1024
    )
    search = settings.search
    options = Options(
        fusion=search.fusion,
        vector_weight=search.vector_weight,
        text_weight=search.text_weight,
        candidates=search.candidates,
        min_score=search.min_score,
        snippet_chars=search.snippet_chars,
        diversity=search.diversity,
        half_life_days=search.half_life_days,
    )
    conduct = Conduct(
        max_results=search.max_results,
        citations=settings.memory.citations,
        sync_before=search.sync_before,
        sync_interval_s=search.sync_interval_s,
    )
    return BuiltinManager(
        workspace,
        index,
        choice,
        Indexer(workspace, index, cached, rules=rules),
        Searcher(index, choice.embedder, options),
        conduct,
    )


async def _in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    from asyncio import to_thread  # loaded already wherever this runs; a plain `Memory` does not pay for it

    return await to_thread(call, *args, **kwargs)


def build_keeper(settings: Settings, manager: Manager) -> Keeper:
    """The keeper of the agent's entries; it shares the embedder of a builtin manager."""
    from recollect.embedding import resolve
    from recollect.entries import Ways
    from recollect.entries.opening import open_keeper

    chosen = settings.embedding
    choice = (
        manager.choice
        if isinstance(manager, BuiltinManager)
        else resolve(chosen.provider, model_path=chosen.model_path, threads=chosen.threads)
    )
    ways = Ways(threshold=settings.retrieval.similarity_threshold)
    return open_keeper(
        settings.agent_folder, choice.embedder, engine=settings.entries.vector_engine, ways=ways
    )


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
            await _in_thread(
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
        self, *, force: bool = False, verify: bool = False, progress: ProgressCallback | None = None
    ) -> SyncReport:
        """As `Memory.sync`."""
        return await _in_thread(self.memory.sync, force=force, verify=verify, progress=progress)

    async def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        path_prefix: str | None = None,
        session_key: str | None = None,
    ) -> Answer:
        """As `Memory.search`."""
        return await _in_thread(
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
        return await _in_thread(self.memory.read, path, start, lines)

    async def status(self, *, deep: bool = False) -> Status:
        """As `Memory.status`."""
        return await _in_thread(self.memory.status, deep=deep)

    async def close(self) -> None:
        """As `Memory.close`."""
        await _in_thread(self.memory.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
