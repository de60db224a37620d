"""Build the parts of a memory from the settings.

This is the only module that knows both the settings and the parts; a part receives plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memoriter import logs
from memoriter.engines import Engine
from memoriter.engines.builtin import BuiltinEngine, EngineOptions
from memoriter.errors import MemoryDisabled, StoreError
from memoriter.extension import Offer, offers
from memoriter.index.sync import Indexer
from memoriter.notes.chunking import Rules
from memoriter.notes.workspace import Workspace
from memoriter.search import Options, Searcher
from memoriter.sessions.outside_text import TrustRules
from memoriter.sessions.scope import Scope, ScopeCheck, ScopeRule
from memoriter.sessions.transcripts import Transcripts
from memoriter.store import Index
from memoriter.store.opening import FileStore, Store, StoreContext, open_store
from memoriter.store.vectors import find_engine

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.config.search import SearchSettings
    from memoriter.embedding import Cached, Choice, Embedder, EmbedderSpec
    from memoriter.entries import Entries
    from memoriter.entries.extract import Extractor
    from memoriter.llm import Chat
    from memoriter.notes.collection import Notes
    from memoriter.notes.notebook import Notebook
    from memoriter.search.changes import Judge
    from memoriter.search.rerank import Reranker

log = logs.get("build")

#: The setting that chooses where the vectors of entries are searched.
VECTOR_ENGINE_KEY = "entries.vector_engine"
#: The files of an agent that every gateway needs. The rest of its folder is a cache of one machine.
SHARED_FILES = ("workspace", "sessions", "queue", "hooks", "seen_turns", "flushes", "tokens.json")
#: The files of the gateways of a tenant. No agent can have the name under which they are stored.
GATEWAY_FILES, GATEWAY = ("tokens.json", "tickets"), ".gateway"


def load_settings(
    workspace: Path | str | None = None,
    *,
    home: Path | str | None = None,
    agent: str | None = None,
    config: Path | str | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Load the settings. The arguments are those of `Memory.open`."""
    from memoriter.config import load

    places = {"workspace": workspace, "home": home, "agent": agent}
    named = {key: value for key, value in places.items() if value is not None}
    return load(config=Path(config) if config else None, arguments={**named, **(overrides or {})})


def build_store(settings: Settings) -> Store:
    """Return the store of the agent: files of the home, or what an extension offers for the URL of the settings."""
    store = settings.store
    if store.url is not None:
        return open_store(StoreContext(store.url.get_secret_value(), store.tenant, settings))
    databases = {"entries": settings.entries_database, "items": settings.agent_folder / "items.db"}
    return FileStore(databases, settings)


def share_files(settings: Settings, store: Store) -> Callable[[], None]:
    """Let all machines that use the store share the files of an agent. Return a function that ends this."""
    return store.share_files(settings.agent_folder, SHARED_FILES, settings.agent)


@contextmanager
def gateway_files(settings: Settings) -> Iterator[Path]:
    """Use the folder with tokens and tickets. Gateways that use one server share it."""
    release = build_store(settings).share_files(settings.store_folder / "gateway", GATEWAY_FILES, GATEWAY)
    try:
        yield settings.store_folder
    finally:
        release()


class OpenEngine(Protocol):
    """The code of an engine that an extension offers. Its name is the value of `memory.backend`.

    The section of settings `memory.NAME` may have `paths` (`CollectionSettings`), which are indexed besides the notes.
    """

    def __call__(
        self,
        settings: Settings,
        *,
        workspace: Workspace,
        sessions: Transcripts | None,
        scope: ScopeCheck,
        builtin: Callable[[], Engine],
    ) -> Engine:
        """Return the engine. ``builtin`` opens the builtin engine, in case it has to answer instead."""


def build_engine(settings: Settings, embedder: Embedder | None = None) -> Engine:
    """Build the engine that the settings name: the builtin one, or one that an extension offers."""
    if settings.plugins.slots.memory == "none":
        raise MemoryDisabled("Memory is switched off: `plugins.slots.memory` is `none`.")
    scope = ScopeCheck(scope_of(settings))

    def builtin() -> Engine:
        return build_builtin(settings, embedder, scope)

    if settings.memory.backend == "builtin":
        return builtin()
    open_engine: OpenEngine = offers("engines")[settings.memory.backend].load()
    return open_engine(
        settings,
        workspace=build_workspace(settings),
        sessions=_sessions(settings),
        scope=scope,
        builtin=builtin,
    )


def scope_of(settings: Settings) -> Scope:
    """Return which sessions may use the memory."""
    scope = settings.memory.scope
    rules = (ScopeRule(rule.action, rule.channel, rule.chat_type, rule.key_prefix) for rule in scope.rules)
    return Scope(tuple(rules), scope.default)


def _sessions(settings: Settings) -> Transcripts | None:
    return transcripts_of(settings) if settings.sessions.enabled else None


def transcripts_of(settings: Settings) -> Transcripts:
    """Return the transcripts in the agent's own folder and in the folders that the settings name."""
    chunking = settings.chunking
    roots = (settings.agent_folder / "sessions", *settings.sessions.paths)
    return Transcripts(
        roots,
        tokens=chunking.tokens,
        target=chunking.target,
        rules=trust_rules(settings),
        compares_inodes=not settings.store.is_shared,
    )


def trust_rules(settings: Settings) -> TrustRules:
    """Return whose words the turns of a conversation are, by the tools that were used and the names of speakers."""
    return TrustRules(settings.sessions.local_tools, settings.sessions.owner_names)


def build_workspace(settings: Settings, *, documents: bool = False) -> Workspace:
    """Build the workspace that the settings describe, with ``documents`` that extensions read besides notes."""
    found = offers("readers").items() if documents else ()
    extra_paths = settings.extra_paths
    return Workspace(
        settings.workspace,
        extra_paths=[extra.path for extra in extra_paths],
        patterns=settings.files.patterns,
        own_patterns={extra.path: extra.pattern for extra in extra_paths if extra.pattern},
        names={extra.path: extra.name for extra in extra_paths if extra.name},
        trusts={extra.path: extra.trust for extra in extra_paths if extra.trust != "owner"},
        folder=settings.files.folder,
        readers={suffix: partial(_read, offer) for suffix, offer in found if offer.is_installed()},
        name=settings.workspace_name,
    )


def _read(offer: Offer, data: bytes) -> tuple[str, str | None]:
    """Return the text of a document and a remark. The reader is imported at the first one."""
    found: tuple[str, str | None] = offer.load()(data)
    return found


def embedder_spec(settings: Settings) -> EmbedderSpec:
    """Return the embedder that the settings describe."""
    from memoriter.embedding import EmbedderSpec

    chosen = settings.embedding
    # The key and the address of a provider are settings of its extension with its name.
    providers = offers("embedders")
    keys = {name: getattr(chosen, f"{name}_api_key", None) for name in providers}
    urls = {name: getattr(chosen, f"{name}_base_url", None) for name in providers}
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
        dimensions_file=settings.home / "embedding_dimensions.json",
        redact=chosen.redact,
        query_s=chosen.query_timeout_s,
    )


def _make_cached(choice: Choice | None, index: Index, settings: Settings) -> Cached | None:
    """Return the embedder for the indexer, which sends batches and embeds no text twice."""
    from memoriter.embedding import Batched, Cached
    from memoriter.embedding.cache import budgets

    if choice is None or choice.embedder is None:
        return None
    size, concurrency = budgets(choice.limits), settings.embedding.concurrency
    limit_s = settings.embedding.batch_timeout_minutes * 60
    jobs = choice.remote.jobs(index, limit_s=limit_s) if choice.remote else None
    batched = Batched(choice.embedder, **size, concurrency=concurrency)
    without_retry = (
        Batched(choice.without_retry, **size, concurrency=concurrency) if choice.without_retry else None
    )
    return Cached(batched, index, without_retry=without_retry, recipe=choice.recipe, jobs=jobs)


def build_builtin(settings: Settings, embedder: Embedder | None, scope: ScopeCheck) -> BuiltinEngine:
    """Build the builtin engine with its index, indexer and searcher."""
    from memoriter.embedding import Choice, remake, resolve
    from memoriter.notes.notebook import clock_of

    zone = settings.writing.timezone  # "yesterday" means yesterday's note where notes are written
    spec = embedder_spec(settings)
    choice = Choice.of_embedder(embedder, spec) if embedder else resolve(spec)
    index = build_store(settings).open_index("notes", settings.index_folder, settings.index.vector_engine)
    workspace, chunking = build_workspace(settings, documents=True), settings.chunking
    return BuiltinEngine(
        workspace,
        index,
        choice,
        Indexer(
            workspace,
            index,
            _make_cached(choice, index, settings),
            fallback=_make_cached(choice.fallback, index, settings),
            sessions=_sessions(settings),
            rules=Rules(
                tokens=chunking.tokens,
                overlap=chunking.overlap,
                target=chunking.target,
                lowered=tuple(f"{trust} {path}" for path, trust in workspace.trusts.items()),
            ),
        ),
        Searcher(
            index,
            choice.embedder,
            _search_options(settings.search),
            reranker=build_reranker(settings),
            today=(lambda: clock_of(zone)().date()) if zone else date.today,
        ),
        EngineOptions(
            citations=settings.memory.citations,
            sync_before=settings.search.sync_before,
            background=settings.embedding.background,
        ),
        scope=scope,
        remake=lambda recipe: remake(spec, recipe),
    )


def _search_options(search: SearchSettings) -> Options:
    """Return the options that are settings. The others are for evaluations."""
    named = (field.name for field in fields(Options) if field.name in type(search).model_fields)
    return Options(**{name: getattr(search, name) for name in named})


def build_reranker(settings: Settings) -> Reranker | None:
    """Return the reranker, unless the settings switch it off. It loads its model at first use."""
    from memoriter.search.rerank import bundled

    if not settings.search.rerank or settings.search.reranker == "none":
        return None
    if settings.search.reranker == "bundled":
        return bundled()
    reranker: Reranker = offers("rerankers")[settings.search.reranker].load()(settings)
    return reranker


def build_judge(settings: Settings) -> Judge | None:
    """Return the judge of changes, unless the settings switch its models off. It loads at first use."""
    from memoriter.search.changes import reader

    return reader() if settings.search.rerank else None


def build_notes(settings: Settings, engine: Engine, notebook: Callable[[], Notebook]) -> Notes:
    """Build the collection of notes and transcripts. The builtin index, if there is one, adds details."""
    from memoriter.notes.collection import Notes
    from memoriter.notes.editing import NoteEditor

    workspace = build_workspace(settings, documents=settings.memory.backend == "builtin")
    editor = NoteEditor(workspace, changed=engine.mark_changed, was_there=lambda: was_there(engine))
    return Notes(workspace, _sessions(settings), lambda: engine.index, notebook, editor)


def was_there(engine: Engine) -> bool:
    """Return whether the workspace had notes, as far as the builtin index knows."""
    try:
        return engine.knows_notes
    except StoreError:
        return False


def build_notebook(settings: Settings, engine: Engine) -> Notebook:
    """Build the notebook, which writes notes into the workspace."""
    from memoriter.notes.notebook import Notebook, clock_of

    return Notebook(
        settings.workspace,
        folder=settings.files.folder,
        now=clock_of(settings.writing.timezone),
        was_there=lambda: was_there(engine),
        changed=engine.mark_changed,
        holds_agents=settings.entries.approval != "none",
    )


def build_chat(settings: Settings) -> Chat:
    """Build the language model that the settings name, within its budget."""
    from memoriter.llm import Deferred, NoChat, open_chat
    from memoriter.llm.chat import Budgeted

    llm = settings.llm
    if llm.provider == "none":
        return NoChat()
    key = llm.api_key.get_secret_value() if llm.api_key else None

    def connect() -> Chat:
        return open_chat(
            llm.provider, model=llm.model, base_url=llm.base_url, api_key=key, timeout_s=llm.timeout_s
        )

    deferred = Deferred(f"{llm.provider}/{llm.model}", connect)
    return Budgeted(deferred, settings.agent_folder / "tokens.json", daily_tokens=llm.daily_tokens)


def build_entries(settings: Settings, engine: Engine) -> Entries:
    """Build the collection of entries. It shares the embedder of a builtin engine."""
    from memoriter.entries import EntryOptions
    from memoriter.entries.capture import CaptureLimits
    from memoriter.entries.collection import connect_entries
    from memoriter.entries.context import CleanupOptions
    from memoriter.search.rank import Weights

    learning, cleanup = settings.entries, settings.cleanup
    options = EntryOptions(
        threshold=settings.retrieval.similarity_threshold,
        weights=Weights(settings.search.vector_weight, settings.search.text_weight),
        importance_weight=settings.retrieval.importance_weight,
        reranker=build_reranker(settings),
        judge=build_judge(settings),
        approval=learning.approval,
        cleanup=CleanupOptions(
            cleanup.auto_cleanup, cleanup.interval, cleanup.retention_days, cleanup.ledger_days
        ),
        capture=CaptureLimits() if learning.capture else CaptureLimits(per_turn=0),
        background=settings.embedding.background,
        workspace=settings.workspace_name,
        workspace_only=learning.workspace_only,
    )
    vector_engine, without = entries_engine(settings)
    if without:
        log.warning("%s", without)
    embedder = shared_embedder(settings, engine)
    store = build_store(settings)
    index = store.open_index("entries", settings.entries_index, vector_engine)
    return connect_entries(lambda: store.open_rows("entries", index), index, embedder, options=options)


def shared_embedder(settings: Settings, engine: Engine) -> Embedder | None:
    """Return the embedder of the engine, or the one that the settings name if an external engine has none."""
    from memoriter.embedding import resolve

    return (engine.choice or resolve(embedder_spec(settings))).embedder


def entries_engine(settings: Settings) -> tuple[str, str | None]:
    """Return where the vectors of entries are searched, and a warning if that is not what the plugin asks for.

    A plugin that is named after an engine means that engine, unless the owner has named another one.
    """
    configured, named = settings.entries.vector_engine, settings.plugins.slots.memory.removeprefix("memory-")
    offer = offers("vector_engines").get(named)
    if offer is None or settings.origin(VECTOR_ENGINE_KEY) != "default":
        return configured, None
    if offer.is_installed():
        return named, None
    return configured, (
        f"{find_engine(named).label} is not installed, so `{configured}` searches the vectors of entries. Run "
        f"`{offer.install}`, or name an engine in `{VECTOR_ENGINE_KEY}`."
    )


def build_extractor(settings: Settings, entries: Entries, chat: Chat) -> Extractor:
    """Build the extractor, which learns from conversations with a language model."""
    from memoriter.entries.extract import Extractor, Gates

    extraction, trigger = settings.extraction, settings.extraction.trigger
    gates = Gates(
        extraction.min_confidence, extraction.min_importance, trigger.message_interval, trigger.on_session_end
    )
    return Extractor(entries, chat, gates)
