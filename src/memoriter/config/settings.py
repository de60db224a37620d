"""The settings themselves: every key with its type, its default, its limits and its meaning.

The page `docs/config.md` is made from the descriptions here. Where values come from is not decided here: see
`loading`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from memoriter.config import slots
from memoriter.config.base import (
    Duration,
    Number,
    Section,
    Share,
    Whole,
    did_you_mean,
    nearest,
    no_bool,
)
from memoriter.config.embedding import Embedding
from memoriter.config.gateway import Gateway
from memoriter.config.learning import Cleanup, EntriesSettings, Extraction, Retrieval
from memoriter.config.sessions import Llm, Sessions, Watch, Writing
from memoriter.errors import ConfigError


class Files(Section):
    """Which files are memories."""

    extra_paths: tuple[Path, ...] = Field(
        default=(),
        description="Files and folders to index beside `MEMORY.md` and `memory/`; "
        "a workspace's own file may name only paths inside it.",
    )
    patterns: tuple[str, ...] = Field(
        default=("**/*.md",),
        min_length=1,
        description="Which files count inside `memory/` and the extra folders.",
    )
    max_bytes: Whole = Field(
        default=4 * 1024 * 1024,
        ge=1024,
        description="Only this many bytes of a file are indexed, from its beginning.",
    )

    @field_validator("patterns")
    @classmethod
    def _stays_inside(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            path = PurePosixPath(pattern.replace("\\", "/"))
            if not pattern or "\0" in pattern or path.is_absolute() or ".." in path.parts:
                raise ValueError(
                    "must be patterns below a folder, such as '**/*.md', without '..' or a leading '/'"
                )
        return patterns


class Chunking(Section):
    """How notes are cut into the pieces that are found."""

    tokens: Whole = Field(default=512, ge=8, le=8192, description="Most tokens in a chunk.")
    target: Whole = Field(
        default=16,
        ge=1,
        description="After this many tokens a chunk ends at the next heading, paragraph or list item.",
    )
    overlap: Whole = Field(
        default=64, ge=0, description="Tokens repeated from the end of one chunk at the start of the next."
    )

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> Self:
        if self.overlap >= self.tokens:
            raise ValueError(f"overlap ({self.overlap}) must be smaller than tokens ({self.tokens})")
        return self


class Index(Section):
    """How the derived index is kept."""

    vector_engine: Literal["scan", "sqlite-vec"] = Field(
        default="scan",
        description="`scan` (numpy, needs nothing more) or `sqlite-vec` (the extra of that name).",
    )


class Search(Section):
    """How a query is answered."""

    max_results: Whole = Field(default=6, ge=1, le=1000, description="Most hits in an answer.")
    min_score: Share = Field(
        default=0.1, description="Hits below this score are left out, unless they match by exact keyword."
    )
    fusion: Literal["weighted", "rrf"] = Field(
        default="weighted",
        description="How the legs are joined: a `weighted` sum of scores, or `rrf` (reciprocal ranks).",
    )
    vector_weight: Share = Field(default=0.6, description="Weight of meaning in the `weighted` sum.")
    text_weight: Share = Field(default=0.4, description="Weight of keywords; the two weights sum to 1.")
    candidates: Whole = Field(
        default=200, ge=1, le=10_000, description="Candidates that each leg hands to the fusion."
    )
    snippet_chars: Whole = Field(
        default=700, ge=40, le=100_000, description="Most characters in a hit's snippet."
    )
    diversity: Share = Field(
        default=0.0, description="0: the best hits, however alike; towards 1: less repetition (MMR)."
    )
    half_life_days: Annotated[float, BeforeValidator(no_bool), Field(gt=0)] | None = Field(
        default=None,
        description="Dated notes lose half their weight in this many days; not set: age does not matter.",
    )
    sync_before: bool = Field(default=True, description="A search first takes in what changed on disk.")
    sync_interval_s: Number = Field(
        default=2.0, ge=0, description="Seconds within which a search does not look at the disk again."
    )

    @model_validator(mode="after")
    def _weights_sum_to_one(self) -> Self:
        if abs(self.vector_weight + self.text_weight - 1) > 1e-6:
            given = f"vector_weight ({self.vector_weight:g}) and text_weight ({self.text_weight:g})"
            raise ValueError(f"{given} must sum to 1: set both")
        return self


class ScopeRule(Section):
    """What is done with sessions of one kind, such as "allow chat_type=group channel=slack"."""

    action: Literal["allow", "deny"]
    channel: str | None = None
    chat_type: Literal["direct", "group", "channel", "unattended"] | None = None
    key_prefix: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if not isinstance(value, str):
            return _flat_rule(value)
        action, *conditions = value.split() or [""]
        if any("=" not in condition for condition in conditions):
            raise ValueError("must be a rule such as 'allow chat_type=group channel=slack'")
        return {"action": action, **dict(condition.split("=", 1) for condition in conditions)}

    def __str__(self) -> str:
        given = {name: getattr(self, name) for name in ("channel", "chat_type", "key_prefix")}
        return " ".join([self.action, *(f"{name}={value}" for name, value in given.items() if value)])

    def __repr__(self) -> str:
        return repr(str(self))


def _flat_rule(value: object) -> object:
    """A rule whose conditions stand under `match`, with names in camelCase, as other memories write it."""
    if not isinstance(value, dict):
        return value
    match = value.get("match")
    flat = {**value, **(match if isinstance(match, dict) else {})}
    flat.pop("match", None)
    also = {"chatType": "chat_type", "keyPrefix": "key_prefix"}
    return {also.get(str(name), name): item for name, item in flat.items()}


class ScopeSettings(Section):
    """Which sessions may search at all. The first rule that matches decides."""

    default: Literal["allow", "deny"] = Field(default="deny", description="What holds when no rule matches.")
    rules: tuple[ScopeRule, ...] = Field(
        default=(ScopeRule(action="allow", chat_type="direct"),),
        description="Rules such as `allow chat_type=direct` or `deny channel=slack key_prefix=slack:channel:`; "
        "conditions: `channel`, `chat_type` (`direct`, `group`, `channel`, `unattended`), `key_prefix`.",
    )


class QmdUpdate(Section):
    """When qmd takes in what changed. Times are seconds, or texts such as `500ms`, `15s`, `5m`, `1h`."""

    interval: Duration = Field(
        default=300.0, ge=0, description="An update at least so often; 0: only after changes."
    )
    debounce: Duration = Field(default=1.0, ge=0, description="Pause between two updates.")
    wait: Duration = Field(
        default=2.0,
        ge=0,
        description="A search waits so long for what was just written, at most half its time limit.",
    )
    command_timeout: Duration = Field(default=30.0, gt=0, description="Time limit of small commands.")
    update_timeout: Duration = Field(default=120.0, gt=0, description="Time limit of `qmd update`.")
    embed_interval: Duration = Field(
        default=3600.0, ge=0, description="Pause between two runs of `qmd embed`."
    )
    embed_timeout: Duration = Field(default=600.0, gt=0, description="Time limit of `qmd embed`.")


class QmdLimits(Section):
    """How much qmd may give, and how long it may take."""

    max_results: Whole = Field(default=6, ge=1, le=100, description="Most hits in an answer.")
    max_snippet_chars: Whole = Field(
        default=700, ge=40, le=100_000, description="Most characters in a snippet."
    )
    timeout_ms: Whole = Field(
        default=4000,
        ge=100,
        le=600_000,
        description="A search that takes longer has failed, and `builtin` answers.",
    )


class QmdSection(Section):
    """The outside engine `qmd`; used when `memory.backend` is `qmd`."""

    command: str = Field(
        default="qmd",
        min_length=1,
        description="The program: a name on the PATH, a file, or its script `qmd.js`.",
    )
    node: str = Field(default="node", min_length=1, description="What runs the script, if `command` is one.")
    search_mode: Literal["search", "vsearch", "query"] = Field(
        default="search",
        description="`search` (keywords), `query` (keywords and vectors), `vsearch` (vectors, after a language "
        "model rewrote the query; slow). The last two need a model.",
    )
    paths: tuple[Path, ...] = Field(
        default=(),
        description="Files and folders beside those of `files.extra_paths`, with this backend only.",
    )
    sessions: bool = Field(
        default=True, description="Export session transcripts for qmd, where there are any."
    )
    embed_model: str | None = Field(
        default=None,
        description="A `.gguf` file or `hf:` name; not set: qmd's own default, if it was downloaded.",
    )
    models_folder: Path | None = Field(
        default=None,
        description="Where the owner's qmd keeps its models, which are shared; not set: `~/.cache/qmd/models`.",
    )
    cool_down: Duration = Field(
        default=60.0, ge=0, description="After a failure qmd is left alone so long, then tried again."
    )
    update: QmdUpdate = Field(default_factory=QmdUpdate)
    limits: QmdLimits = Field(default_factory=QmdLimits)


class MemorySettings(Section):
    """Who answers, to whom, and how sources are shown."""

    backend: Literal["builtin", "qmd"] = Field(
        default="builtin",
        description="What searches: `builtin`, or `qmd` with `builtin` when it fails.",
    )
    citations: Literal["on", "off", "auto"] = Field(
        default="auto",
        description="`Source: path#L10-L25` under each hit: `on`, `off`, or `auto` (direct chats only).",
    )
    max_injected_chars: Whole = Field(
        default=4000,
        ge=100,
        description="Most characters of all snippets together that a tool gives to the model.",
    )
    scope: ScopeSettings = Field(default_factory=ScopeSettings)
    qmd: QmdSection = Field(default_factory=QmdSection)


class Slots(Section):
    """What fills the places that only one thing can fill."""

    memory: str = Field(
        default="memory-core",
        description="The agent's memory: `memory-core` (notes and sessions), `memory-lancedb` (what was learned in "
        "conversation), `memory-full` (both), a name that another package offers, or `none` to switch it off.",
    )

    @field_validator("memory")
    @classmethod
    def _is_known(cls, name: str) -> str:
        return slots.known(name)


class Plugins(Section):
    """What is plugged in."""

    slots: Slots = Field(default_factory=Slots)


class Logging(Section):
    """What is told on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning", description="Least level that is shown."
    )

    @field_validator("level", mode="before")
    @classmethod
    def _in_small_letters(cls, level: object) -> object:
        return level.lower() if isinstance(level, str) else level


class Setting(NamedTuple):
    """One line of `Settings.describe`."""

    key: str
    value: object  #: plain data; a secret is "***"
    origin: str


class Settings(Section):
    """All settings, each knowing where it came from."""

    model_config = ConfigDict(validate_default=True)

    workspace: Path = Field(
        default=Path("~/.memoriter/workspace"),
        description="The folder with `MEMORY.md` and `memory/`. Not set: the current folder if it "
        "holds one of them, else `workspace` in the home.",
    )
    home: Path = Field(
        default=Path("~/.memoriter"),
        description="Where the index and everything else of memoriter's own is kept.",
    )
    agent: str = Field(
        default="main", max_length=64, description="Whose memory this is; names a folder in the home."
    )
    files: Files = Field(default_factory=Files)
    chunking: Chunking = Field(default_factory=Chunking)
    embedding: Embedding = Field(default_factory=Embedding)
    index: Index = Field(default_factory=Index)
    search: Search = Field(default_factory=Search)
    memory: MemorySettings = Field(default_factory=MemorySettings)
    entries: EntriesSettings = Field(default_factory=EntriesSettings)
    extraction: Extraction = Field(default_factory=Extraction)
    retrieval: Retrieval = Field(default_factory=Retrieval)
    cleanup: Cleanup = Field(default_factory=Cleanup)
    sessions: Sessions = Field(default_factory=Sessions)
    watch: Watch = Field(default_factory=Watch)
    writing: Writing = Field(default_factory=Writing)
    llm: Llm = Field(default_factory=Llm)
    plugins: Plugins = Field(default_factory=Plugins)
    gateway: Gateway = Field(default_factory=Gateway)
    logging: Logging = Field(default_factory=Logging)

    _origins: Mapping[str, str] = PrivateAttr(default_factory=dict)

    @field_validator("workspace", "home")
    @classmethod
    def _from_the_users_home(cls, path: Path) -> Path:
        return path.expanduser()

    @field_validator("agent")
    @classmethod
    def _is_a_folder_name(cls, agent: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", agent, re.ASCII):
            raise ValueError("must be letters, digits, '-', '_' and '.', not starting with '.'")
        return agent

    @property
    def agent_folder(self) -> Path:
        """Where this agent's index and truth are kept."""
        return self.home / "agents" / self.agent

    def origin(self, key: str) -> str:
        """Where a value came from: "default", a file's path, a variable's name or an argument's."""
        if key not in keys():
            raise ConfigError(f"unknown setting {key!r}{did_you_mean(nearest(key, keys()))}")
        return self._origins.get(key, "default")

    def describe(self) -> list[Setting]:
        """Every setting with its value and origin, in the order of the reference page."""
        return [Setting(key, _plain(self._value(key)), self.origin(key)) for key in keys()]

    def _value(self, key: str) -> object:
        value: object = self
        for name in key.split("."):
            value = getattr(value, name)
        return value


@cache
def keys() -> Mapping[str, FieldInfo]:
    """Every setting by its dotted key, such as "search.max_results"."""
    return dict(_walk(Settings, ""))


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
        case Path():
            return str(value)
        case ScopeRule():
            return str(value)
        case tuple():
            return [_plain(item) for item in value]
        case Mapping():
            return {name: _plain(item) for name, item in value.items()}
        case _:
            return value
