"""Plugins for the memory slot, and what the builtin ones do: sync, recall, capture, flush and summarise.

A session that `memory.scope` does not allow gets nothing from the memory, and nothing of it is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Protocol, runtime_checkable

from memoriter.agent.hooks import Effect, HookBus, Moment
from memoriter.agent.service import MemoryService, Written, question
from memoriter.build import entries_engine
from memoriter.config.settings import BUILTIN_MEMORIES, MEMORY_ENTRY_POINTS, installed_memories
from memoriter.errors import ConfigError
from memoriter.memory import parts_of
from memoriter.records import Remembered
from memoriter.sessions.messages import read_messages
from memoriter.sessions.outside_text import TrustRules
from memoriter.sessions.tail import read_new_turns

NONE = "none"


@runtime_checkable
class Plugin(Protocol):
    """Fills the memory slot: decides what happens automatically and which tools an agent has."""

    @property
    def name(self) -> str:
        """The name in warnings."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that an agent has while the plugin is active."""

    def register(self, bus: HookBus, service: MemoryService) -> None:
        """Register handlers for the events that the plugin acts on."""


def known_plugins() -> tuple[str, ...]:
    """Return every name that the slot accepts."""
    return (*BUILTIN_MEMORIES, *installed_memories())


def load_plugin(name: str) -> Plugin | None:
    """Return the plugin of this name, or None for `none`. Raises `ConfigError`."""
    if name == NONE:
        return None
    if name in BUILTIN_PLUGINS:
        return BUILTIN_PLUGINS[name]
    points = [point for point in metadata.entry_points(group=MEMORY_ENTRY_POINTS) if point.name == name]
    if not points:
        raise ConfigError(f"Unknown memory plugin {name!r}. Known: {', '.join(known_plugins())}.")
    return _load(points[0])


def _load(point: metadata.EntryPoint) -> Plugin:
    subject = f"The memory plugin {point.name!r} ({point.value})"
    try:
        loaded = point.load()
        plugin = loaded if isinstance(loaded, Plugin) and not isinstance(loaded, type) else loaded()
    except Exception as error:  # code of another package
        raise ConfigError(f"{subject} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(plugin, Plugin) or not callable(plugin.register):
        raise ConfigError(f"{subject} is not a plugin: it needs a name, tools and register.")
    if not isinstance(plugin.tools, tuple) or not all(isinstance(name, str) for name in plugin.tools):
        raise ConfigError(f"{subject} is not a plugin: its tools must be a tuple of names.")
    return plugin


Message = Mapping[str, object]


def conversation_of(moment: Moment, rules: TrustRules) -> Sequence[Message]:
    """Return the messages of a moment, or the end of its transcript."""
    if moment.messages or moment.transcript is None:
        return _messages(moment)
    return read_new_turns(moment.transcript, rules=rules).records


def question_of(moment: Moment) -> str:
    """Return the current question of the user: the prompt, or their last message."""
    prompt = moment.prompt if isinstance(moment.prompt, str) else ""
    if not prompt.strip():
        return question(_messages(moment))
    return question([*_messages(moment), {"role": "user", "content": prompt}])


def _messages(moment: Moment) -> list[Message]:
    """Return the valid messages among the values that the host sent."""
    return [message for message in moment.messages or () if isinstance(message, Mapping)]


@dataclass(frozen=True, slots=True)
class Share:
    """Numbers of entries and notes that are recalled automatically. None: as many as the settings say."""

    entries: int | None = None
    notes: int | None = None


class Handlers:
    """The handlers of a builtin plugin for one memory."""

    def __init__(self, service: MemoryService, plugin: BuiltinPlugin) -> None:
        self._service = service
        self._memory = service.memory
        self._parts = parts_of(service.memory)
        self._plugin = plugin

    def session_start(self, moment: Moment) -> Effect:
        """Index what changed since the last session."""
        if self._plugin.entries:
            self._parts.session_began(moment.session)
        synced = self._service.session_started() if self._plugin.notes else None
        warnings = (synced.error if synced else None, entries_engine(self._memory.settings)[1])
        return Effect(tools=self._plugin.tools, warnings=tuple(warning for warning in warnings if warning))

    def transcript_update(self, moment: Moment) -> Effect | None:
        """Index a transcript that has grown."""
        if moment.transcript is not None:
            self._service.transcript_grew(moment.transcript)
        return None

    def recall(self, moment: Moment) -> Effect | None:
        """Return the memories that are relevant to the user's message."""
        options = self._memory.settings.retrieval
        query = question_of(moment)
        if not query or not options.inject_on_query or not self._allows(moment):
            return None
        recalled = self._parts.search.recall(
            query,
            key=moment.session_key,
            session=moment.session,
            interface="hook",
            tokens=_token_budget(moment, options.budget_ratio),
            entries=self._max_entries(),
            notes=self._plugin.share.notes,
            check=moment.check,
        )
        warnings = (recalled.degraded,) if recalled.degraded else ()
        return Effect(prepend_context=recalled.text, recall_id=recalled.id, warnings=warnings)

    def _max_entries(self) -> int | None:
        """Return the number of the plugin, unless the owner has set one."""
        named = self._memory.settings.origin("retrieval.max_memories") != "default"
        return None if named and self._plugin.share.entries != 0 else self._plugin.share.entries

    def _allows(self, moment: Moment) -> bool:
        """Return whether the session of a moment may use the memory, by its key and by its name."""
        return self._parts.allows(moment.session_key) and self._parts.allows_name(moment.session)

    def capture(self, moment: Moment) -> Effect | None:
        """Capture statements from the turns since the last capture of this session, and label what the agent wrote."""
        if not self._allows(moment):
            return None
        if not self._plugin.entries:
            self._parts.mark_relayed(read_messages(_messages(moment), self._parts.trust_rules).relayed)
            return None
        return Effect(remembered=tuple(self._capture(moment)))

    def _capture(self, moment: Moment) -> list[Remembered]:
        return self._memory.capture_messages(
            conversation_of(moment, self._parts.trust_rules), session=moment.session, wait=True
        )

    def flush(self, moment: Moment) -> Effect | None:
        """Write a note about the turns that the conversation is about to lose."""
        if not self._allows(moment):
            return None
        return _effect(
            self._service.maybe_flush_memory(
                moment.tokens, moment.window, conversation_of(moment, self._parts.trust_rules), moment.session
            )
        )

    def end(self, moment: Moment) -> Effect | None:
        """End a session: process turns that still wait, and write the summary."""
        if not self._allows(moment):
            return None
        remembered: list[Remembered] = []
        if self._plugin.entries:
            new = [] if moment.captured else self._capture(moment)
            remembered = [*new, *self._memory.session_ended(moment.session)]
        messages = conversation_of(moment, self._parts.trust_rules) if self._plugin.notes else ()
        summary = self._service.save_conversation_memory(messages, moment.session) if messages else Written()
        return replace(_effect(summary), remembered=tuple(remembered))


def _effect(result: Written) -> Effect:
    new = (result.saved,) if result.saved and not result.saved.already else ()
    notes = (result.error, *(saved.note for saved in new))  # such as that the language model failed
    return Effect(written=new, warnings=tuple(note for note in notes if note))


def _token_budget(moment: Moment, ratio: float) -> int | None:
    """Return how many tokens recalled text may have, if the host says how large the context window is."""
    if moment.window is None:
        return None
    left = moment.window if moment.tokens is None else max(0, moment.window - moment.tokens)
    return min(left, round(moment.window * ratio))


NOTE_TOOLS = ("memory_search", "memory_get", "memory_save", "memory_stats")
ENTRY_TOOLS = ("memory_recall", "memory_store", "memory_forget", "memory")


@dataclass(frozen=True, slots=True)
class BuiltinPlugin:
    """A plugin of this package."""

    name: str
    tools: tuple[str, ...]
    #: Whether it handles notes and sessions.
    notes: bool
    #: Whether it handles entries.
    entries: bool
    share: Share

    def register(self, bus: HookBus, service: MemoryService) -> None:
        """Register handlers for the events that the plugin acts on."""
        handlers = Handlers(service, self)
        bus.on("session_start", handlers.session_start, name=self.name)
        bus.on("before_agent_start", handlers.recall, name=self.name)
        if self.notes:
            bus.on("before_compaction", handlers.flush, name=self.name)
            bus.on("transcript_update", handlers.transcript_update, name=self.name)
            bus.on("command_new", handlers.end, name=self.name)
        bus.on("agent_end", handlers.capture, name=self.name)
        bus.on("session_end", handlers.end, name=self.name)


BUILTIN_PLUGINS: Mapping[str, Plugin] = {
    plugin.name: plugin
    for plugin in (
        BuiltinPlugin("memory-core", NOTE_TOOLS, notes=True, entries=False, share=Share(entries=0)),
        BuiltinPlugin(
            "memory-lancedb", ENTRY_TOOLS, notes=False, entries=True, share=Share(entries=3, notes=0)
        ),
        BuiltinPlugin("memory-full", (*NOTE_TOOLS, *ENTRY_TOOLS), notes=True, entries=True, share=Share()),
    )
}
