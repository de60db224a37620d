"""What our own plugins do at a moment: bring the index up to date, recall, capture, flush, summarise.

Each asks the memory and says in an `Effect` what came of it. A session that `memory.scope` does not admit is neither
told anything nor listened to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from memoriter.agent.moments import Effect, Moment
from memoriter.agent.service import Written, question
from memoriter.background import is_cancelled
from memoriter.build import entries_engine
from memoriter.config.settings import BUILTIN_MEMORIES, MEMORY_ENTRY_POINTS, installed_memories
from memoriter.errors import ConfigError
from memoriter.sessions.messages import turns_of_messages
from memoriter.sessions.tail import read_new_turns

if TYPE_CHECKING:
    from memoriter.agent.hooks import HookBus
    from memoriter.agent.service import MemoryService
    from memoriter.records import Remembered


NONE = "none"


@runtime_checkable
class Plugin(Protocol):
    """What fills the slot: it decides what happens by itself and which tools an agent has, never what is kept."""

    @property
    def name(self) -> str:
        """Its name in warnings."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that an agent gets while it is active."""

    def register(self, bus: HookBus, service: MemoryService) -> None:
        """Say on which events it acts."""


def known_plugins() -> tuple[str, ...]:
    """Every name that the slot takes."""
    return (*BUILTIN_MEMORIES, *installed_memories())


def load_plugin(name: str) -> Plugin | None:
    """The plugin of this name; None for `none`. Raises `ConfigError`, one sentence."""
    if name == NONE:
        return None

    if name in OWN:
        return OWN[name]
    points = [point for point in metadata.entry_points(group=MEMORY_ENTRY_POINTS) if point.name == name]
    if not points:
        raise ConfigError(f"There is no memory plugin {name!r}; there are {', '.join(known_plugins())}.")
    return _loaded(points[0])


def _loaded(point: metadata.EntryPoint) -> Plugin:
    what = f"The memory plugin {point.name!r} ({point.value})"
    try:
        found = point.load()
        plugin = found if isinstance(found, Plugin) and not isinstance(found, type) else found()
    except Exception as error:  # it is somebody else's code
        raise ConfigError(f"{what} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(plugin, Plugin) or not callable(plugin.register):
        raise ConfigError(f"{what} is no plugin: it needs a name, tools and register.")
    if not isinstance(plugin.tools, tuple) or not all(isinstance(name, str) for name in plugin.tools):
        raise ConfigError(f"{what} is no plugin: its tools must be a tuple of names.")
    return plugin


Message = Mapping[str, object]


def said_at(moment: Moment) -> Sequence[Message]:
    """The conversation; of a long transcript its end."""
    if moment.messages or moment.transcript is None:
        return _messages(moment)
    return read_new_turns(moment.transcript).records


def question_of(moment: Moment) -> str:
    """What the user wants now: the prompt, or else what they said last."""
    prompt = moment.prompt if isinstance(moment.prompt, str) else ""
    if not prompt.strip():
        return question(_messages(moment))
    return question([*_messages(moment), {"role": "user", "content": prompt}])


def _messages(moment: Moment) -> list[Message]:
    """What is a message of what the host sent: one that is none must not cost the others."""
    return [message for message in moment.messages or () if isinstance(message, Mapping)]


@dataclass(frozen=True, slots=True)
class Share:
    """How much of each kind is put before the agent; None: as the settings say."""

    entries: int | None = None
    notes: int | None = None


class Acts:
    """What one plugin does over one memory."""

    def __init__(
        self, service: MemoryService, tools: tuple[str, ...], *, notes: bool, entries: bool, share: Share
    ) -> None:
        self._service = service
        self._memory = service.memory
        self._tools = tools
        self._notes, self._entries = notes, entries
        self._share = share

    def session_start(self, moment: Moment) -> Effect:
        """Take in what changed since the last session."""
        if self._entries:
            self._memory.session_began(moment.session)
        synced = self._service.session_started() if self._notes else None
        without = entries_engine(self._memory.settings)[1]
        found = (synced.error if synced else None, without)
        return Effect(tools=self._tools, warnings=tuple(sentence for sentence in found if sentence))

    def transcript_update(self, moment: Moment) -> Effect | None:
        """A transcript grew."""
        if moment.transcript is not None:
            self._service.transcript_grew(moment.transcript)
        return None

    def recall(self, moment: Moment) -> Effect | None:
        """What is remembered about what the user says now."""
        wanted = self._memory.settings.retrieval
        query = question_of(moment)
        if not query or not wanted.inject_on_query:
            return None
        told = self._memory.recall(
            query,
            session_key=moment.session_key,
            session=moment.session,
            interface="hook",
            tokens=_room(moment, wanted.budget_ratio),
            entries=self._most_entries(),
            notes=self._share.notes,
            given_up=is_cancelled,
        )
        warnings = (told.degraded,) if told.degraded else ()
        return Effect(prepend_context=told.text, recall_id=told.id, warnings=warnings)

    def _most_entries(self) -> int | None:
        """The plugin's own number, unless the owner has named one."""
        named = self._memory.settings.origin("retrieval.max_memories") != "default"
        return None if named and self._share.entries != 0 else self._share.entries

    def capture(self, moment: Moment) -> Effect | None:
        """Remember what was said since the last capture of this session."""
        if not self._memory.allows(moment.session_key):
            return None
        return Effect(remembered=tuple(self._captured(moment)))

    def _captured(self, moment: Moment) -> list[Remembered]:
        return self._memory.capture(turns_of_messages(said_at(moment)), session=moment.session)

    def flush(self, moment: Moment) -> Effect | None:
        """Write down what the conversation is about to lose."""
        if not self._memory.allows(moment.session_key):
            return None
        return _effect(
            self._service.maybe_flush_memory(moment.tokens, moment.window, said_at(moment), moment.session)
        )

    def end(self, moment: Moment) -> Effect | None:
        """A session is over: what waited is learned, and its summary is written."""
        if not self._memory.allows(moment.session_key):
            return None
        remembered: list[Remembered] = []
        if self._entries:
            new = [] if moment.heard else self._captured(moment)
            remembered = [*new, *self._memory.session_ended(moment.session)]
        said = said_at(moment) if self._notes else ()
        summary = self._service.save_conversation_memory(said, moment.session) if said else Written()
        return replace(_effect(summary), remembered=tuple(remembered))


def _effect(done: Written) -> Effect:
    new = done.saved is not None and not done.saved.already
    return Effect(
        written=(done.saved,) if done.saved and new else (), warnings=(done.error,) if done.error else ()
    )


def _room(moment: Moment, ratio: float) -> int | None:
    """Tokens that recalled text may take, where the host says how many there are."""
    if moment.window is None:
        return None
    left = moment.window if moment.tokens is None else max(0, moment.window - moment.tokens)
    return min(left, round(moment.window * ratio))


NOTE_TOOLS = ("memory_search", "memory_get", "memory_save", "memory_stats")
ENTRY_TOOLS = ("memory_recall", "memory_store", "memory_forget", "memory")


@dataclass(frozen=True, slots=True)
class OwnPlugin:
    """One of ours."""

    name: str
    tools: tuple[str, ...]
    notes: bool  #: whether it watches over notes and sessions
    entries: bool  #: and over what is learned in conversation
    share: Share

    def register(self, bus: HookBus, service: MemoryService) -> None:
        """Say on which events it acts."""
        acts = Acts(service, self.tools, notes=self.notes, entries=self.entries, share=self.share)
        bus.on("session_start", acts.session_start, name=self.name)
        bus.on("before_agent_start", acts.recall, name=self.name)
        if self.notes:
            bus.on("before_compaction", acts.flush, name=self.name)
            bus.on("transcript_update", acts.transcript_update, name=self.name)
            bus.on("command_new", acts.end, name=self.name)
        if self.entries:
            bus.on("agent_end", acts.capture, name=self.name)
        bus.on("session_end", acts.end, name=self.name)


OWN: Mapping[str, Plugin] = {
    plugin.name: plugin
    for plugin in (
        OwnPlugin("memory-core", NOTE_TOOLS, notes=True, entries=False, share=Share(entries=0)),
        OwnPlugin("memory-lancedb", ENTRY_TOOLS, notes=False, entries=True, share=Share(entries=3, notes=0)),
        OwnPlugin("memory-full", (*NOTE_TOOLS, *ENTRY_TOOLS), notes=True, entries=True, share=Share()),
    )
}
