"""All settings: every key with its type, default, limits and meaning.

`docs/config.md` is generated from the descriptions in this package.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    create_model,
    field_validator,
)
from pydantic.fields import FieldInfo

from memoriter.config.conversations import (
    CleanupSettings,
    EntrySettings,
    ExtractionSettings,
    RetrievalSettings,
    SessionSettings,
    WatchSettings,
    WritingSettings,
)
from memoriter.config.fields import Section, check_name, described, did_you_mean, nearest
from memoriter.config.gateway import GatewaySettings, ResidentSettings
from memoriter.config.models import EmbeddingSettings, LlmSettings
from memoriter.config.search import (
    ChunkingSettings,
    CollectionSettings,
    FileSettings,
    IndexSettings,
    MemorySettings,
    ScopeRuleSettings,
    SearchSettings,
    check_collections,
)
from memoriter.config.store import StoreSettings, store_folder
from memoriter.errors import ConfigError
from memoriter.extension import extensions, resolve
from memoriter.records import Trust

S = TypeVar("S", bound=Section)
T = TypeVar("T")

#: The entry point group in which installed packages offer a memory for the slot.
MEMORY_ENTRY_POINTS = "memoriter.memory"
BUILTIN_MEMORIES = ("memory-core", "memory-lancedb", "memory-full", "none")


def installed_memories() -> tuple[str, ...]:
    """Return the names of memories that installed packages offer. They cannot replace a builtin name."""
    from importlib.metadata import entry_points

    names = {point.name for point in entry_points(group=MEMORY_ENTRY_POINTS)}
    return tuple(sorted(names - set(BUILTIN_MEMORIES)))


class SlotSettings(Section):
    """Slots, each of which holds exactly one plugin."""

    memory: str = described(
        "memory-core",
        "The agent's memory: `memory-core` (notes and sessions), `memory-lancedb` (entries learned in "
        "conversations), `memory-full` (both), a memory that an installed package offers, or `none` to disable it.",
    )

    @field_validator("memory")
    @classmethod
    def _is_known(cls, name: str) -> str:
        # Reading the metadata of all installed packages is slow, so only unknown names trigger it.
        if name in BUILTIN_MEMORIES or name in (others := installed_memories()):
            return name
        raise ValueError(f"must be one of {', '.join((*BUILTIN_MEMORIES, *others))}")


class PluginSettings(Section):
    """Plugins."""

    slots: SlotSettings = Field(default_factory=SlotSettings)


class LoggingSettings(Section):
    """Logging to standard error."""

    level: Literal["debug", "info", "warning", "error"] = described(
        "warning", "Minimum level of messages to show."
    )

    @field_validator("level", mode="before")
    @classmethod
    def _in_lower_case(cls, level: object) -> object:
        return level.lower() if isinstance(level, str) else level


class Setting(NamedTuple):
    """One line of `Settings.describe`."""

    key: str
    #: Plain data; a secret is "***".
    value: object
    origin: str


class ExtraPath(NamedTuple):
    """A file or folder that is indexed besides the notes of the workspace."""

    path: Path
    name: str | None = None
    pattern: str | None = None
    trust: Trust = "owner"


class Settings(Section):
    """All settings, with the origin of each value."""

    model_config = ConfigDict(validate_default=True)

    workspace: Path = described(
        Path("~/.memoriter/workspace"),
        "The folder with your notes, for commands that are not run in a workspace. Default: the current "
        "folder if it contains `MEMORY.md` or `memory/`, else `workspace` in the home.",
    )
    home: Path = described(Path("~/.memoriter"), "The folder for the index and all other files of memoriter.")
    workspaces: Mapping[str, Path] = described(
        {}, "Names of folders with notes, such as `{work: ~/work-notes}`, for `--workspace NAME`."
    )
    agent: Annotated[str, AfterValidator(check_name)] = described(
        "main", "Name of the agent. Each agent has a folder in the home.", max_length=64
    )
    collections: Annotated[Mapping[str, CollectionSettings], AfterValidator(check_collections)] = described(
        {},
        "Named folders of notes that are indexed and searched together with the workspace, such as "
        "`{journal: ~/journal, docs: {path: ~/docs, pattern: '**/*.md'}}`. `trust: agent` says that an agent wrote the "
        "notes of a folder, and `trust: untrusted` that they come from others.",
    )
    store: StoreSettings = Field(default_factory=StoreSettings)
    files: FileSettings = Field(default_factory=FileSettings)
    chunking: ChunkingSettings = Field(default_factory=ChunkingSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    index: IndexSettings = Field(default_factory=IndexSettings)
    search: SearchSettings = Field(default_factory=SearchSettings)
    memory: MemorySettings = Field(default_factory=MemorySettings)
    entries: EntrySettings = Field(default_factory=EntrySettings)
    extraction: ExtractionSettings = Field(default_factory=ExtractionSettings)
    retrieval: RetrievalSettings = Field(default_factory=RetrievalSettings)
    cleanup: CleanupSettings = Field(default_factory=CleanupSettings)
    sessions: SessionSettings = Field(default_factory=SessionSettings)
    watch: WatchSettings = Field(default_factory=WatchSettings)
    writing: WritingSettings = Field(default_factory=WritingSettings)
    llm: LlmSettings = Field(default_factory=LlmSettings)
    plugins: PluginSettings = Field(default_factory=PluginSettings)
    gateway: GatewaySettings = Field(default_factory=GatewaySettings)
    resident: ResidentSettings = Field(default_factory=ResidentSettings)
    logging: LoggingSettings = Field(default_factory=LoggingSettings)

    _origins: Mapping[str, str] = PrivateAttr(default_factory=dict)

    @field_validator("workspace", "home")
    @classmethod
    def _expand_user(cls, path: Path) -> Path:
        return path.expanduser()

    @property
    def store_folder(self) -> Path:
        """The folder of the memory: the home, or the working copies of what a server holds."""
        return store_folder(self.home, self.store.name)

    @property
    def agent_folder(self) -> Path:
        """The folder of this agent's entries, transcripts and indexes."""
        return self.store_folder / "agents" / self.agent

    @property
    def workspace_name(self) -> str:
        """The name by which entries and indexes know the workspace: its path, or the same on every gateway."""
        return "store" if self.store.is_shared else os.path.realpath(self.workspace)

    @property
    def index_folder(self) -> Path:
        """The folder of the index of this workspace. Each workspace has its own, named after its path."""
        root = os.path.realpath(self.workspace)
        digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(root).name).strip("-")[:32]
        return self.agent_folder / "workspaces" / f"{name or 'workspace'}-{digest}"

    def other_indexes(self) -> list[Path]:
        """Return the folders of the indexes of this agent's other workspaces."""
        folders = self.index_folder.parent
        return [path for path in folders.glob("*") if path != self.index_folder and path.is_dir()]

    @property
    def extra_paths(self) -> tuple[ExtraPath, ...]:
        """Files and folders beside the workspace: extra paths, collections, and `paths` of the engine."""
        of_engine = getattr(getattr(self.memory, self.memory.backend, None), "paths", ())
        return (
            *(ExtraPath(path) for path in self.files.extra_paths),
            *(
                ExtraPath(folder.path, name, folder.pattern, folder.trust)
                for name, folder in self.collections.items()
            ),
            *(
                ExtraPath(extra.path, getattr(extra, "name", None), extra.pattern, extra.trust)
                for extra in of_engine
            ),
        )

    @property
    def entries_database(self) -> Path:
        """The database of this agent's entries."""
        return self._place(self.entries.database, "memory.db")

    @property
    def entries_index(self) -> Path:
        """The folder of the derived index of this agent's entries."""
        return self._place(self.entries.index_folder, "entries")

    def _place(self, chosen: Path | None, name: str) -> Path:
        """Return a chosen place. Agents never share one, so other agents than `main` add their name to it."""
        if chosen is None:
            return self.agent_folder / name
        return chosen if self.agent == "main" else chosen.with_stem(f"{chosen.stem}-{self.agent}")

    def origin(self, key: str) -> str:
        """Return where a value came from: "default", a file's path, or the name of a variable or argument."""
        if key not in keys():
            raise ConfigError(f"Unknown setting {key!r}{did_you_mean(nearest(key, keys()))}")
        return self._origins.get(key, "default")

    def describe(self) -> list[Setting]:
        """Return every setting with its value and origin, in the order of the reference page."""
        return [Setting(key, _plain(self._value(key)), self.origin(key)) for key in keys()]

    def section(self, kind: type[T]) -> T:
        """Return the settings of an extension by the class that declares them."""
        for extension in extensions():
            for place, code in extension.settings.items():
                if resolve(code) is kind and isinstance(found := self._value(place), kind):
                    return found
        raise ConfigError(f"No installed extension declares {kind.__name__}.")

    def _value(self, key: str) -> object:
        value: object = self
        for name in key.split("."):
            value = getattr(value, name)
        return value


@cache
def full_settings() -> type[Settings]:
    """Return the class of the settings with the sections of every installed extension."""
    added = dict[str, list[type[Section]]]()
    for extension in extensions():
        for place, code in extension.settings.items():
            added.setdefault(place, []).append(resolve(code))
    return _extended(Settings, "", added)


def _extended(section: type[S], place: str, added: Mapping[str, list[type[Section]]]) -> type[S]:
    """Return a section with the fields and sections that extensions add to it and below it."""
    inside = {other for other in added if other.startswith(place) and other != place.rstrip(".")}
    bases: list[Any] = added.get(place.rstrip("."), [])
    if not inside and not bases:
        return section
    fields = dict[str, Any]()
    for name in dict.fromkeys(other.removeprefix(place).partition(".")[0] for other in sorted(inside)):
        own = section.model_fields.get(name)
        kind = own.annotation if own else added[f"{place}{name}"].pop(0)
        assert isinstance(kind, type)
        assert issubclass(kind, Section)
        child = _extended(kind, f"{place}{name}.", added)
        fields[name] = (child, Field(default_factory=child))
    extended: type[S] = create_model(
        section.__name__, __base__=(*bases, section), __doc__=section.__doc__, **fields
    )
    return extended


@cache
def keys() -> Mapping[str, FieldInfo]:
    """Return every setting by its dotted key, such as "search.max_results"."""
    return dict(_walk(full_settings(), ""))


def _walk(section: type[BaseModel], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from _walk(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def _plain(value: object) -> object:
    match value:
        case SecretStr():
            return "***"
        case Path() | ScopeRuleSettings():
            return str(value)
        case CollectionSettings():
            more = {name: item for name in ("name", "pattern") if (item := getattr(value, name, None))}
            more |= {"trust": value.trust} if value.trust != "owner" else {}
            return {"path": str(value.path), **more} if more else str(value.path)
        case tuple():
            return [_plain(item) for item in value]
        case Mapping():
            return {name: _plain(item) for name, item in value.items()}
        case _:
            return value
