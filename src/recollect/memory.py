"""Memory: opens the rooms, joins them, closes them. It holds no logic of its own.

`AsyncMemory` offers the same to programs that run an event loop, by forwarding to threads: files, SQLite and the
embedder block anyway, so there is one implementation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from recollect.errors import MemoryDisabled, RecollectError
from recollect.indexing import Indexer, ProgressCallback, Rules
from recollect.managers import Manager
from recollect.managers.builtin import BuiltinManager, Conduct
from recollect.managers.cancel import cancellable
from recollect.managers.scope import Guard, Rule, Scope
from recollect.managers.select import Managers, Selection, builtin_only, cache_key, warm_up
from recollect.recall import Language, for_prompt, memory_section, shows_citations
from recollect.records import Answer, Excerpt, Receipt, Remembered, Saved, Source, Status, SyncReport, Turn
from recollect.retrieval import Options, Searcher
from recollect.sources import Transcripts, Workspace
from recollect.store import Index, open_index

if TYPE_CHECKING:
    from recollect.config import Settings
    from recollect.embedding import Cached, Choice, Embedder, Wish
    from recollect.entries import Keeper
    from recollect.entries.extract import Extractor
    from recollect.managers.qmd import QmdSettings
    from recollect.recall.inject import Injector, Recalled
    from recollect.writing import Scribe

P = ParamSpec("P")
T = TypeVar("T")
SavedOrNone = TypeVar("SavedOrNone", Saved, Saved | None)

_managers: dict[float, Managers] = {}  #: of outside engines, by how long a failed one is left alone


class Memory:
    """The memory of one agent over one workspace."""

    def __init__(self, settings: Settings, manager: Manager) -> None:
        self.settings = settings
        self.manager = manager
        self._keeper: Keeper | None = None
        self._injector: Injector | None = None
        self._extractor: Extractor | None = None
        self._scribe: Scribe | None = None
        self._guard: Guard | None = None
        self._closed = False

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
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        progress: ProgressCallback | None = None,
    ) -> SyncReport:
        """Make the index say what the files say; ``force`` builds it anew beside the old one.

        ``batch`` embeds through the provider's batch API, where it has one: cheaper, and slower.
        """
        if batch and isinstance(self.manager, BuiltinManager):
            return self.manager.sync(force=force, verify=verify, batch=True, progress=progress)
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
        """The few lines that answer the query, best first, each with its place and its reasons.

        Notes, sessions and entries are searched together, unless ``source`` names one of them.
        """
        answer = self.manager.search(
            query,
            max_results=0 if source == "entries" else max_results,
            min_score=min_score,
            source=source,
            path_prefix=path_prefix,
            session_key=session_key,
        )
        if source in (None, "entries") and path_prefix is None and self._has_entries(session_key):
            answer = self._with_entries(answer, query, max_results, min_score)
        return answer

    def _has_entries(self, session_key: str | None) -> bool:
        """Whether anything was learned that this session may see; asked without opening what is not there."""
        known = self._keeper is not None or (self.settings.agent_folder / "memory.db").exists()
        return known and self.admits(session_key)

    def _with_entries(
        self, answer: Answer, query: str, max_results: int | None, min_score: float | None
    ) -> Answer:
        from recollect.entries.joined import joined

        limit = self.settings.search.max_results if max_results is None else max_results
        try:
            return joined(answer, self.keeper.search(query, limit=limit, threshold=min_score), limit)
        except RecollectError as error:  # memory never breaks the agent: the failure is part of the answer
            return replace(answer, degraded=f"{answer.degraded or ''} Without entries: {error}".strip())

    def search_for_prompt(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        session_key: str | None = None,
    ) -> Answer:
        """As `search`, for a model to read: places under snippets, together within `memory.max_injected_chars`."""
        answer = self.search(
            query, max_results=max_results, min_score=min_score, source=source, session_key=session_key
        )
        return for_prompt(answer, self.settings.memory.max_injected_chars)

    def admits(self, session_key: str | None) -> bool:
        """Whether this session may use the memory at all (`memory.scope`)."""
        if self._guard is None:
            self._guard = Guard(_scope(self.settings))
        return self._guard.admits(session_key)

    def prompt_section(
        self, hints: Mapping[str, str], *, language: Language = "en", session_key: str | None = None
    ) -> str:
        """What the system prompt says of the memory to an agent with these tools; nothing to one who may not use it."""
        cited = shows_citations(self.settings.memory.citations, session_key)
        return memory_section(hints, language=language, citations=cited) if self.admits(session_key) else ""

    def changed(self) -> None:
        """Say that a note was just written: the next search takes it in first."""
        self.manager.changed()

    def start(self) -> str | None:
        """Warm up an outside engine; one sentence when it does not work, which `status` repeats."""
        return None if self.settings.memory.backend == "builtin" else warm_up(self.manager)

    def read(self, path: str, start: int = 1, lines: int | None = None) -> Excerpt:
        """Some lines of a file that a hit cites."""
        return self.manager.read_file(path, start, lines)

    def status(self, *, deep: bool = False) -> Status:
        """What is indexed, by which embedder, and what is wrong."""
        return self.manager.status(deep=deep)

    def save(
        self, content: str, title: str = "", tags: Sequence[str] = (), category: str | None = None
    ) -> Saved:
        """Write something down for good: into the day's log, or into `memory/<category>/<title>.md`."""
        return self._written(self.scribe.save(content, title, tags, category))

    def summarise(self, messages: Iterable[Mapping[str, object]], session: str) -> Saved | None:
        """Write the summary of a session that has ended; None when nothing was said."""
        return self._written(self.scribe.summarise(messages, session))

    def summarise_transcript(self, transcript: Path | str) -> Saved | None:
        """The same from a transcript: a file, or as it is cited."""
        return self._written(self.scribe.summarise_transcript(transcript))

    def flush(
        self,
        messages: Iterable[Mapping[str, object]],
        session: str,
        *,
        window: int,
        tokens: int | None = None,
    ) -> Saved | None:
        """Before a conversation is shortened: write down what it would lose, once for each overflow."""
        if not self.settings.writing.flush:
            return None
        return self._written(self.scribe.flush(messages, session, window=window, tokens=tokens))

    def _written(self, saved: SavedOrNone) -> SavedOrNone:
        if saved is not None and not saved.already:
            self.changed()
        return saved

    @property
    def scribe(self) -> Scribe:
        """What is written down; opened at first use."""
        if self._scribe is None:
            self._scribe = build_scribe(self.settings)
        return self._scribe

    @property
    def keeper(self) -> Keeper:
        """What was learned in conversation; opened at first use."""
        if self._keeper is None:
            self._keeper = build_keeper(self.settings, self.manager)
        return self._keeper

    def capture(self, turns: Sequence[Turn], *, session: str) -> list[Remembered]:
        """Remember what turns are worth: by a language model where `extraction.auto_extract` is on, else by rules."""
        if self.settings.extraction.auto_extract:
            return self.extractor.observe(turns, session=session)
        return self.keeper.capture(turns, session=session)

    def session_ended(self, session: str) -> list[Remembered]:
        """Let the language model see the turns that still wait for it."""
        return self.extractor.end(session=session) if self.settings.extraction.auto_extract else []

    @property
    def extractor(self) -> Extractor:
        """What a language model learns from conversations; opened at first use."""
        if self._extractor is None:
            from recollect.entries.extract import Extractor, Gates

            wanted = self.settings.extraction
            trigger = wanted.trigger
            gates = Gates(
                wanted.min_confidence, wanted.min_importance, trigger.message_interval, trigger.on_session_end
            )
            self._extractor = Extractor(self.keeper, self.scribe.chat, gates)
        return self._extractor

    def forget(self, entry_id: str | None = None, **what: Any) -> Receipt:
        """Erase entries, named as `Keeper.forget` takes it, and the lines of the day's logs that say just the same."""
        return self.keeper.forget(entry_id, elsewhere=self._strike, **what)

    def _strike(self, texts: Sequence[str]) -> tuple[str, ...]:
        from recollect.writing.strike import strike

        changed = strike(self.settings.workspace, texts)
        if not changed:
            return ()
        self.sync()
        if isinstance(self.manager, BuiltinManager):
            embedder = self.manager.choice.embedder
            self.manager.index.prune(0)
            self.manager.index.erase([], embedder.identity if embedder else None)
        return (f"lines that said just this, in {', '.join(changed)}",)

    def entry_stats(self) -> dict[str, object] | None:
        """Counts and averages of what was learned; None when nothing was yet."""
        return self.keeper.stats() if self._has_entries(None) else None

    @property
    def injector(self) -> Injector:
        """What is put before the agent by itself; opened at first use."""
        if self._injector is None:
            from recollect.recall.inject import Injector

            self._injector = Injector(self.keeper, self._notes)
        return self._injector

    def _notes(self, query: str, limit: int) -> Answer:
        return self.manager.search(query, max_results=limit)

    def recall(
        self, query: str, *, session_key: str | None = None, door: str = "recall", tokens: int | None = None
    ) -> Recalled:
        """The fenced block that tells the agent what is remembered about this; empty when nothing is."""
        from recollect.recall.inject import Budget, Recalled

        if not self.admits(session_key):
            return Recalled("", "")
        wanted = self.settings.retrieval
        budget = Budget(
            max_entries=wanted.max_memories,
            threshold=wanted.similarity_threshold,
            characters=self.settings.memory.max_injected_chars,
            tokens=tokens,
        )
        places = shows_citations(self.settings.memory.citations, session_key)
        return self.injector.recall(query, budget=budget, door=door, session=session_key, show_places=places)

    def close(self) -> None:
        """Give back files and threads; closing again does nothing, for others may hold the same manager."""
        if self._closed:
            return
        self._closed = True
        if self._keeper is not None:
            self._keeper.close()
        if self._scribe is not None:
            self._scribe.close()
        self.manager.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def build_manager(settings: Settings, embedder: Embedder | None = None) -> Manager:
    """The manager that the settings name; raises what stands in its way."""
    selection = select_manager(settings, embedder)
    if selection.manager is None:
        raise selection.cause or RecollectError(selection.error)
    return selection.manager


def select_manager(settings: Settings, embedder: Embedder | None = None) -> Selection:
    """The manager that the settings name, or builtin in its stead, or one sentence why there is none."""
    if settings.plugins.slots.memory == "none":
        off = MemoryDisabled("Memory is switched off: `plugins.slots.memory` is `none`.")
        return Selection(None, str(off), off)
    guard = Guard(_scope(settings))

    def builtin() -> Manager:
        return build_builtin(settings, embedder, guard)

    if settings.memory.backend == "builtin":
        return builtin_only(builtin)
    from recollect.managers.fallback import CoolDown
    from recollect.managers.qmd import Exports, QmdManager

    wanted = _qmd_settings(settings)

    def qmd() -> Manager:
        sessions = _sessions(settings) if wanted.sessions else None
        exports = Exports(sessions, wanted.folder / "sessions") if sessions else None
        return QmdManager.create(wanted, _workspace(settings), exports=exports, guard=guard)

    pause = settings.memory.qmd.cool_down
    managers = _managers.setdefault(pause, Managers(cool_down=CoolDown(pause, max(pause, 600.0))))
    return managers.get(cache_key(settings.agent, (wanted, guard.scope)), qmd, builtin)


def _scope(settings: Settings) -> Scope:
    given = settings.memory.scope
    rules = (Rule(rule.action, rule.channel, rule.chat_type, rule.key_prefix) for rule in given.rules)
    return Scope(tuple(rules), given.default)


def _qmd_settings(settings: Settings) -> QmdSettings:
    from recollect.managers.qmd import QmdSettings, Schedule

    qmd = settings.memory.qmd
    update = qmd.update
    return QmdSettings(
        folder=settings.agent_folder / "qmd",
        workspace=settings.workspace,
        extra_paths=_extra_paths(settings),
        patterns=settings.files.patterns,
        command=qmd.command,
        node=qmd.node,
        search_mode=qmd.search_mode,
        embed_model=qmd.embed_model,
        models_folder=qmd.models_folder or Path("~/.cache/qmd/models").expanduser(),
        sessions=(settings.agent_folder / "sessions", *settings.sessions.paths) if qmd.sessions else (),
        max_results=qmd.limits.max_results,
        max_snippet_chars=qmd.limits.max_snippet_chars,
        timeout_s=qmd.limits.timeout_ms / 1000,
        command_timeout_s=update.command_timeout,
        citations=settings.memory.citations,
        schedule=Schedule(
            interval_s=update.interval,
            debounce_s=update.debounce,
            wait_s=update.wait,
            update_timeout_s=update.update_timeout,
            embed_interval_s=update.embed_interval,
            embed_timeout_s=update.embed_timeout,
        ),
    )


def _extra_paths(settings: Settings) -> tuple[Path, ...]:
    """What is indexed beside the workspace's own files; by both engines, so that a fallback finds the same."""
    more = settings.memory.qmd.paths if settings.memory.backend == "qmd" else ()
    return (*settings.files.extra_paths, *more)


def _sessions(settings: Settings) -> Transcripts | None:
    return transcripts_of(settings) if settings.sessions.enabled else None


def transcripts_of(settings: Settings) -> Transcripts:
    """The transcripts that hosts hand us, and those of the folders that the settings name."""
    chunking = settings.chunking
    roots = (settings.agent_folder / "sessions", *settings.sessions.paths)
    return Transcripts(roots, tokens=chunking.tokens, target=chunking.target)


def _workspace(settings: Settings) -> Workspace:
    return Workspace(
        settings.workspace,
        extra_paths=_extra_paths(settings),
        patterns=settings.files.patterns,
        max_bytes=settings.files.max_bytes,
    )


def wish_of(settings: Settings) -> Wish:
    """What the settings ask of the embedding room."""
    from recollect.embedding import Wish

    chosen = settings.embedding
    keys = {"openai": chosen.openai_api_key, "gemini": chosen.gemini_api_key, "voyage": chosen.voyage_api_key}
    urls = {"openai": chosen.openai_base_url, "ollama": chosen.ollama_base_url}
    if chosen.provider not in ("auto", "none"):
        urls |= {chosen.provider: chosen.base_url or urls.get(chosen.provider)}
    return Wish(
        provider=chosen.provider,
        model=chosen.model,
        dimensions=chosen.dimensions,
        model_path=chosen.model_path,
        base_urls={name: url for name, url in urls.items() if url},
        keys={name: key.get_secret_value() for name, key in keys.items() if key},
        fallback=chosen.fallback,
        redact=chosen.redact,
        threads=chosen.threads,
        attempts=chosen.attempts,
        query_s=chosen.query_timeout_s,
        batch_s=chosen.batch_timeout_s,
        local_query_s=chosen.local_query_timeout_s,
        local_batch_s=chosen.local_batch_timeout_s,
    )


def _cached(choice: Choice | None, index: Index, settings: Settings) -> Cached | None:
    """The embedder as the indexer uses it: in batches, and never twice for the same text."""
    from recollect.embedding import Batched, Cached, Jobs

    if choice is None or choice.embedder is None:
        return None
    chosen, limits = settings.embedding, choice.limits
    budgets = {"items": chosen.batch_items, "tokens": chosen.batch_tokens, "bytes": chosen.batch_bytes}
    if limits:
        budgets = {name: min(budget, getattr(limits, name)) for name, budget in budgets.items()}
    jobs = Jobs(choice.remote, index) if choice.remote and Jobs.offered_by(choice.remote) else None
    batched = Batched(choice.embedder, **budgets, concurrency=chosen.concurrency)
    hasty = Batched(choice.hasty, **budgets, concurrency=chosen.concurrency) if choice.hasty else None
    return Cached(batched, index, hasty=hasty, recipe=choice.recipe, jobs=jobs)


def build_builtin(settings: Settings, embedder: Embedder | None, guard: Guard) -> BuiltinManager:
    """Join the rooms as the settings say."""
    from recollect.embedding import Choice, remake, resolve

    wish = wish_of(settings)
    choice = Choice.given(embedder, wish) if embedder else resolve(wish)
    index = open_index(settings.agent_folder, engine=settings.index.vector_engine)
    workspace = _workspace(settings)
    rules = Rules(
        tokens=settings.chunking.tokens,
        overlap=settings.chunking.overlap,
        target=settings.chunking.target,
        cache_limit_bytes=settings.embedding.cache_limit_mb * 1024 * 1024,
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
        background=settings.embedding.background,
    )
    return BuiltinManager(
        workspace,
        index,
        choice,
        Indexer(
            workspace,
            index,
            _cached(choice, index, settings),
            fallback=_cached(choice.fallback, index, settings),
            sessions=_sessions(settings),
            rules=rules,
        ),
        Searcher(index, choice.embedder, options),
        conduct,
        guard=guard,
        remake=lambda recipe: remake(wish, recipe),
    )


async def _in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    import asyncio  # loaded already wherever this runs; a plain `Memory` does not pay for it

    given_up = threading.Event()
    with cancellable(given_up):
        try:
            return await asyncio.to_thread(call, *args, **kwargs)
        except asyncio.CancelledError:
            given_up.set()  # an outside program that works for us is stopped; the thread itself cannot be
            raise


def build_scribe(settings: Settings) -> Scribe:
    """What writes for the agent, with the language model that the settings name."""
    from recollect.llm import Chat, Deferred, Nobody, open_chat
    from recollect.llm.budget import Budgeted
    from recollect.writing import Notebook, Scribe, Threshold
    from recollect.writing.notebook import clock_of

    llm, writing = settings.llm, settings.writing
    key = llm.api_key.get_secret_value() if llm.api_key else None

    def opening() -> Chat:
        where = {"base_url": llm.base_url, "api_key": key}
        return open_chat(llm.provider, model=llm.model, **where, timeout_s=llm.timeout_s, retries=llm.retries)

    chat: Chat = Nobody()
    if llm.provider != "none":
        deferred = Deferred(f"{llm.provider}/{llm.model}", opening)
        chat = Budgeted(deferred, settings.agent_folder / "tokens.json", daily_tokens=llm.daily_tokens)
    threshold = Threshold(
        writing.flush_rule,
        writing.flush_reserve_tokens,
        writing.flush_soft_tokens,
        writing.flush_margin_tokens,
    )
    notebook = Notebook(settings.workspace, now=clock_of(writing.timezone))
    sessions = transcripts_of(settings)
    return Scribe(notebook, chat, state=settings.agent_folder, threshold=threshold, sessions=sessions)


def build_keeper(settings: Settings, manager: Manager) -> Keeper:
    """The keeper of the agent's entries; it shares the embedder of a builtin manager."""
    from recollect.embedding import resolve
    from recollect.entries import Ways
    from recollect.entries.capture import Limits
    from recollect.entries.lifecycle import Upkeep
    from recollect.entries.opening import open_keeper

    choice = manager.choice if isinstance(manager, BuiltinManager) else resolve(wish_of(settings))
    learning, cleanup = settings.entries, settings.cleanup
    ways = Ways(
        threshold=settings.retrieval.similarity_threshold,
        upkeep=Upkeep(cleanup.auto_cleanup, cleanup.interval, cleanup.retention_days),
        capture=Limits(learning.capture_max_chars, learning.capture_max_per_turn if learning.capture else 0),
    )
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
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        progress: ProgressCallback | None = None,
    ) -> SyncReport:
        """As `Memory.sync`."""
        return await _in_thread(self.memory.sync, force=force, verify=verify, batch=batch, progress=progress)

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

    async def save(
        self, content: str, title: str = "", tags: Sequence[str] = (), category: str | None = None
    ) -> Saved:
        """As `Memory.save`."""
        return await _in_thread(self.memory.save, content, title, tags, category)

    async def summarise(self, messages: Iterable[Mapping[str, object]], session: str) -> Saved | None:
        """As `Memory.summarise`."""
        return await _in_thread(self.memory.summarise, messages, session)

    async def flush(
        self,
        messages: Iterable[Mapping[str, object]],
        session: str,
        *,
        window: int,
        tokens: int | None = None,
    ) -> Saved | None:
        """As `Memory.flush`."""
        return await _in_thread(self.memory.flush, messages, session, window=window, tokens=tokens)

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
