"""Make the parts as the settings say, and join them. Using them is `memory`'s duty.

This is the only place that knows both the settings and the rooms: a room is handed plain values.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.engines import Engine
from memoriter.engines.builtin import BuiltinEngine, EngineOptions
from memoriter.engines.fallback import EnginePool, Selection, builtin_only, cache_key
from memoriter.errors import MemoriterError, MemoryDisabled, StoreError
from memoriter.index.sync import Indexer, Rules
from memoriter.notes.workspace import Workspace
from memoriter.search import Options, Searcher
from memoriter.sessions.scope import Guard, Rule, Scope
from memoriter.sessions.transcripts import Transcripts
from memoriter.store import Index, open_index

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.embedding import Cached, Choice, Embedder, EmbedderSpec
    from memoriter.engines.qmd import QmdSettings
    from memoriter.entries import Entries
    from memoriter.entries.extract import Extractor
    from memoriter.integrations.items import Items
    from memoriter.llm import Chat
    from memoriter.notes.browse import Notes
    from memoriter.notes.writer import NoteWriter

log = logs.get("assembly")

ENGINE = "entries.vector_engine"

_engines: dict[float, EnginePool] = {}  #: of outside engines, by how long a failed one is left alone


def build_engine(settings: Settings, embedder: Embedder | None = None) -> Engine:
    """The engine that the settings name; raises what stands in its way."""
    selection = select_engine(settings, embedder)
    if selection.engine is None:
        raise selection.cause or MemoriterError(selection.error)
    return selection.engine


def select_engine(settings: Settings, embedder: Embedder | None = None) -> Selection:
    """The engine that the settings name, or builtin in its stead, or one sentence why there is none."""
    if settings.plugins.slots.memory == "none":
        off = MemoryDisabled("Memory is switched off: `plugins.slots.memory` is `none`.")
        return Selection(None, str(off), off)
    guard = Guard(scope_of(settings))

    def builtin() -> Engine:
        return build_builtin(settings, embedder, guard)

    if settings.memory.backend == "builtin":
        return builtin_only(builtin)
    from memoriter.engines.fallback import CoolDown
    from memoriter.engines.qmd import Exports, QmdEngine

    wanted = _qmd_settings(settings)

    def qmd() -> Engine:
        sessions = _sessions(settings) if wanted.sessions else None
        exports = Exports(sessions, wanted.folder / "sessions") if sessions else None
        return QmdEngine.create(wanted, _workspace(settings), exports=exports, guard=guard)

    pause = settings.memory.qmd.cool_down
    engines = _engines.setdefault(pause, EnginePool(cool_down=CoolDown(pause, max(pause, 600.0))))
    return engines.get(cache_key(settings.agent, (wanted, guard.scope)), qmd, builtin)


def scope_of(settings: Settings) -> Scope:
    """Which sessions may use the memory."""
    given = settings.memory.scope
    rules = (Rule(rule.action, rule.channel, rule.chat_type, rule.key_prefix) for rule in given.rules)
    return Scope(tuple(rules), given.default)


def _qmd_settings(settings: Settings) -> QmdSettings:
    from memoriter.engines.qmd import QmdSettings, Schedule

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


def embedder_spec(settings: Settings) -> EmbedderSpec:
    """What the settings ask of the embedding room."""
    from memoriter.embedding import EmbedderSpec

    chosen = settings.embedding
    keys = {"openai": chosen.openai_api_key, "gemini": chosen.gemini_api_key, "voyage": chosen.voyage_api_key}
    urls = {"openai": chosen.openai_base_url, "ollama": chosen.ollama_base_url}
    if chosen.provider not in ("auto", "none"):
        urls |= {chosen.provider: chosen.base_url or urls.get(chosen.provider)}
    return EmbedderSpec(
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
    from memoriter.embedding import Batched, Cached, Jobs

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


def build_builtin(settings: Settings, embedder: Embedder | None, guard: Guard) -> BuiltinEngine:
    """Join the rooms as the settings say."""
    from memoriter.embedding import Choice, remake, resolve

    wish = embedder_spec(settings)
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
        max_results=search.max_results,
        min_score=search.min_score,
        snippet_chars=search.snippet_chars,
        diversity=search.diversity,
        half_life_days=search.half_life_days,
    )
    options_of_engine = EngineOptions(
        citations=settings.memory.citations,
        sync_before=search.sync_before,
        sync_interval_s=search.sync_interval_s,
        background=settings.embedding.background,
    )
    return BuiltinEngine(
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
        Searcher(index, choice.embedder, options, today=_today(settings.writing.timezone)),
        options_of_engine,
        guard=guard,
        remake=lambda recipe: remake(wish, recipe),
    )


def _today(zone: str) -> Callable[[], date]:
    """The day that it is where notes are written, so that a query's "yesterday" is the day of yesterday's note."""
    if not zone:
        return date.today
    from zoneinfo import ZoneInfo

    return lambda: datetime.now(ZoneInfo(zone)).date()


def build_notes(settings: Settings, engine: Engine) -> Notes:
    """The notes and transcripts, to look through; what is known of them is the builtin index's."""
    from memoriter.notes.browse import Notes

    return Notes(_workspace(settings), _sessions(settings), lambda: engine.index)


def was_there(engine: Engine) -> bool:
    """Whether the workspace has had notes, as far as the builtin index knows."""
    try:
        return engine.knows_notes
    except StoreError:
        return False


def build_writer(settings: Settings, engine: Engine) -> NoteWriter:
    """What writes for the agent, with the language model that the settings name."""
    from memoriter.llm import Deferred, NoChat, open_chat
    from memoriter.llm.budget import Budgeted
    from memoriter.notes.flush import Threshold
    from memoriter.notes.notebook import Notebook, clock_of
    from memoriter.notes.writer import NoteWriter

    llm, writing = settings.llm, settings.writing
    key = llm.api_key.get_secret_value() if llm.api_key else None

    def opening() -> Chat:
        where = {"base_url": llm.base_url, "api_key": key}
        return open_chat(llm.provider, model=llm.model, **where, timeout_s=llm.timeout_s, retries=llm.retries)

    chat: Chat = NoChat()
    if llm.provider != "none":
        deferred = Deferred(f"{llm.provider}/{llm.model}", opening)
        chat = Budgeted(deferred, settings.agent_folder / "tokens.json", daily_tokens=llm.daily_tokens)
    threshold = Threshold(
        writing.flush_rule,
        writing.flush_reserve_tokens,
        writing.flush_soft_tokens,
        writing.flush_margin_tokens,
    )
    notebook = Notebook(
        settings.workspace, now=clock_of(writing.timezone), was_there=lambda: was_there(engine)
    )
    sessions = transcripts_of(settings)
    return NoteWriter(notebook, chat, state=settings.agent_folder, threshold=threshold, sessions=sessions)


def build_entries(settings: Settings, engine: Engine) -> Entries:
    """The keeper of the agent's entries; it shares the embedder of a builtin engine."""
    from memoriter.embedding import resolve
    from memoriter.entries import EntryOptions
    from memoriter.entries.capture import CaptureLimits
    from memoriter.entries.collection import open_entries
    from memoriter.entries.lifecycle import CleanupOptions

    choice = engine.choice or resolve(embedder_spec(settings))
    learning, cleanup = settings.entries, settings.cleanup
    options = EntryOptions(
        threshold=settings.retrieval.similarity_threshold,
        approval=learning.approval,
        cleanup=CleanupOptions(
            cleanup.auto_cleanup,
            cleanup.interval,
            cleanup.retention_days,
            cleanup.ledger_days,
            cleanup.ledger_recalls,
        ),
        capture=CaptureLimits(
            learning.capture_max_chars, learning.capture_max_per_turn if learning.capture else 0
        ),
    )
    vector_engine, without = entries_engine(settings)
    if without:
        log.warning("%s", without)
    return open_entries(settings.agent_folder, choice.embedder, engine=vector_engine, options=options)


def entries_engine(settings: Settings) -> tuple[str, str | None]:
    """Where the vectors of entries are searched, and what is missing for what the slot would have.

    The plugin `memory-lancedb` means LanceDB, unless the owner has named another engine.
    """
    wanted = settings.entries.vector_engine
    if settings.plugins.slots.memory != "memory-lancedb" or settings.origin(ENGINE) != "default":
        return wanted, None
    if find_spec("lancedb"):
        return "lancedb", None
    return wanted, (
        f"LanceDB is not installed, `{wanted}` searches the vectors of entries: pip install 'memoriter[lancedb]', "
        f"or name an engine in `{ENGINE}`."
    )


def build_items(settings: Settings, engine: Engine) -> Items:
    """What programs keep by name; it shares the embedder of a builtin engine."""
    from memoriter.embedding import resolve
    from memoriter.integrations.items import Items

    choice = engine.choice or resolve(embedder_spec(settings))
    return Items(settings.agent_folder, choice.embedder, engine=settings.index.vector_engine)


def build_extractor(settings: Settings, entries: Entries, chat: Chat) -> Extractor:
    """What learns from conversations by a language model."""
    from memoriter.entries.extract import Extractor, Gates

    wanted, trigger = settings.extraction, settings.extraction.trigger
    gates = Gates(
        wanted.min_confidence, wanted.min_importance, trigger.message_interval, trigger.on_session_end
    )
    return Extractor(entries, chat, gates)
