"""The settings of search: which files are indexed, how they are chunked and ranked, and which engine answers whom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from memoriter.config.fields import Fraction, Section, Whole, described, offered, reject_bool


def check_pattern(pattern: str) -> str:
    """Return the pattern, or raise if it could match files outside of its folder."""
    path = PurePosixPath(pattern.replace("\\", "/"))
    if not pattern or "\0" in pattern or path.is_absolute() or ".." in path.parts:
        raise ValueError("must be patterns below a folder, such as '**/*.md', without '..' or a leading '/'")
    return pattern


class FileSettings(Section):
    """Files that are indexed."""

    extra_paths: tuple[Path, ...] = described(
        (),
        "More files and folders to index, besides `MEMORY.md` and `memory/`. `.` indexes every note of the "
        "workspace. A workspace's file may only name paths inside the workspace.",
    )
    folder: str = described(
        "memory",
        "Folder of the workspace that new notes are written to. Its notes are indexed. `.` is the "
        "workspace itself.",
    )
    patterns: tuple[str, ...] = described(
        ("**/*.md", "**/*.markdown", "**/*.mdx", "**/*.txt"),
        "Which files to index inside the extra folders and collections.",
        min_length=1,
    )

    @field_validator("folder")
    @classmethod
    def _is_inside(cls, folder: str) -> str:
        path = PurePosixPath(folder.replace("\\", "/"))
        if not folder or path.is_absolute() or any(part.startswith(".") for part in path.parts):
            raise ValueError("must be a folder of the workspace, such as 'memory' or 'notes/daily', or '.'")
        return str(path)

    @field_validator("patterns")
    @classmethod
    def _stays_inside(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(check_pattern, patterns))


class ChunkingSettings(Section):
    """Options for splitting notes into chunks."""

    tokens: Whole = described(512, "Maximum number of tokens in a chunk.", ge=8, le=8192)
    target: Whole = described(
        16, "After this many tokens, a chunk ends at the next heading, paragraph or list item.", ge=1
    )
    overlap: Whole = described(
        64, "Tokens repeated from the end of one chunk at the start of the next.", ge=0
    )

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> Self:
        if self.overlap >= self.tokens:
            raise ValueError(f"overlap ({self.overlap}) must be smaller than tokens ({self.tokens})")
        return self


#: `scan`, or a vector engine that an extension offers.
VectorEngine = Annotated[str, offered("vector_engines", "scan", noun="vector engine")]


class IndexSettings(Section):
    """Storage of the index."""

    vector_engine: VectorEngine = described(
        "scan",
        "Engine that searches the vectors of notes and sessions: `scan` (numpy, always available), or "
        "one that an extension offers, see [engines](engines.md).",
    )


class SearchSettings(Section):
    """Options for answering a query."""

    max_results: Whole = described(6, "Maximum number of results.", ge=1, le=1000)
    min_score: Fraction = described(
        0.1, "Drop results with a lower score, unless they match an exact keyword."
    )
    fusion: Literal["weighted", "rrf"] = described(
        "weighted",
        "How vector and keyword results are combined: by a `weighted` sum of scores, or by reciprocal rank "
        "fusion (`rrf`).",
    )
    vector_weight: Fraction = described(0.6, "Weight of semantic similarity in the `weighted` sum.")
    text_weight: Fraction = described(0.4, "Weight of keywords. The two weights must sum to 1.")
    rerank: bool = described(
        True,
        "Whether a small model reads the best candidates and orders them again. `off` saves about 50 ms "
        "for each search. Without an embedder it is not used.",
    )
    reranker: Annotated[str, offered("rerankers", "bundled", "none", noun="reranker")] = described(
        "bundled",
        "The model that reads them: `bundled`, `none`, or [your own](embedders.md#bring-a-reranker).",
    )
    snippet_chars: Whole = described(700, "Maximum number of characters in a snippet.", ge=40, le=100_000)
    hits_per_file: Whole = described(
        2, "Maximum number of separate results from one file before the best result of another file.", ge=1
    )
    diversity: Fraction = described(
        0.0, "0 returns the best results even if they repeat; towards 1 repeats less (MMR)."
    )
    half_life_days: Annotated[float, BeforeValidator(reject_bool), Field(gt=0)] | None = described(
        None, "Days after which a dated note counts half. Default: age does not matter."
    )
    sync_before: bool = described(True, "Index changed files before a search.")

    @model_validator(mode="after")
    def _weights_sum_to_one(self) -> Self:
        if abs(self.vector_weight + self.text_weight - 1) > 1e-6:
            weights = f"vector_weight ({self.vector_weight:g}) and text_weight ({self.text_weight:g})"
            raise ValueError(f"{weights} must sum to 1: set both")
        return self


class ScopeRuleSettings(Section):
    """Allow or deny search for sessions of one kind, such as "allow chat_type=group channel=slack"."""

    action: Literal["allow", "deny"]
    channel: str | None = None
    chat_type: Literal["direct", "group", "channel", "unattended", "unknown"] | None = None
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
        conditions = {name: getattr(self, name) for name in ("channel", "chat_type", "key_prefix")}
        return " ".join([self.action, *(f"{name}={value}" for name, value in conditions.items() if value)])

    def __repr__(self) -> str:
        return repr(str(self))


def _flat_rule(value: object) -> object:
    """Flatten a rule with conditions below `match` and names in camelCase."""
    if not isinstance(value, dict):
        return value
    match = value.get("match")
    flat = {**value, **(match if isinstance(match, dict) else {})}
    flat.pop("match", None)
    names = {"chatType": "chat_type", "keyPrefix": "key_prefix"}
    return {names.get(str(name), name): item for name, item in flat.items()}


class ScopeSettings(Section):
    """Sessions that may search. The first matching rule decides."""

    default: Literal["allow", "deny"] = described("deny", "Action when no rule matches.")
    rules: tuple[ScopeRuleSettings, ...] = described(
        (ScopeRuleSettings(action="allow", chat_type="direct"),),
        "Rules such as `allow chat_type=direct` or `deny channel=slack key_prefix=slack:channel:`. "
        "Conditions: `channel`, `chat_type` (`direct`, `group`, `channel`, `unattended`, `unknown`), `key_prefix`.",
    )


#: Names that engines give to the folders of the workspace itself.
TAKEN_NAMES = re.compile(r"memory|memory-root|sessions|extra-\d+")


class CollectionSettings(Section):
    """A folder of notes. A path alone is enough."""

    path: Path
    pattern: str | None = None
    trust: Literal["owner", "agent", "untrusted"] = "owner"

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: object) -> object:
        if isinstance(value, str | Path):
            return {"path": value}
        if not isinstance(value, dict):
            names = [f"`{name}`" for name in cls.model_fields]
            raise ValueError(f"must be a path, or an object with {', '.join(names[:-1])} and {names[-1]}")  # noqa: TRY004
        return value

    @field_validator("pattern")
    @classmethod
    def _stays_inside(cls, pattern: str | None) -> str | None:
        return pattern if pattern is None else check_pattern(pattern)

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return repr(str(self))


def check_collections(collections: Mapping[str, CollectionSettings]) -> Mapping[str, CollectionSettings]:
    """Return the collections, or raise if a name or a folder cannot be told from another."""
    for name in collections:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name, re.ASCII) or TAKEN_NAMES.fullmatch(name):
            raise ValueError(
                f"{name[:80]!r} cannot be the name of a collection: use letters, digits, '-' and '_', "
                "and not memory, memory-root, sessions or extra-1"
            )
    known = dict[Path, str]()
    for name, collection in collections.items():
        first = known.setdefault(collection.path, name)
        if first != name:
            raise ValueError(
                f"{collection.path} is already the collection {first!r}; choose another folder for {name!r}, or run "
                f"`memoriter collection remove {first}` first"
            )
    return collections


class MemorySettings(Section):
    """The search engine, the sessions that may use it, and the display of results."""

    backend: Annotated[str, offered("engines", "builtin", noun="engine")] = described(
        "builtin", "Search engine: `builtin`, or one that an extension offers."
    )
    citations: Literal["on", "off", "auto"] = described(
        "auto",
        "Whether to add `Source: path#L10-L25` to each result: `on`, `off`, or `auto` (only in direct "
        "chats).",
    )
    max_injected_chars: Whole = described(
        4000,
        "Maximum number of characters of all snippets together that a tool returns to the model.",
        ge=100,
    )
    scope: ScopeSettings = Field(default_factory=ScopeSettings)
