"""The frozen values that the rooms of the package exchange.

They have no behaviour beyond what follows from their fields, and import nothing of the package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

#: Where a hit comes from: notes, session transcripts, or what was learned in conversation.
Source = Literal["memory", "sessions", "entries"]

#: Who wrote a text: the owner, an agent, or an outside source. It depends on how a text arrived, not on what it says.
Trust = Literal["owner", "agent", "untrusted"]

#: Every trust level, the most trusted first. This is the only place that orders them.
TRUST_LEVELS: tuple[Trust, ...] = ("owner", "agent", "untrusted")


def least_trusted(*levels: Trust) -> Trust:
    """Return the trust of a text that is made of texts with these levels."""
    return max(levels, key=TRUST_LEVELS.index)


def is_trusted_like(trust: Trust, other: Trust) -> bool:
    """Return whether the first level is trusted at least as much as the second."""
    return TRUST_LEVELS.index(trust) <= TRUST_LEVELS.index(other)


CitationMode = Literal["on", "off", "auto"]


# ---- files ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that was listed but not read yet."""

    #: Relative to the workspace, with "/". Absolute only for extra paths outside it.
    path: str
    source: Source
    absolute: Path
    mtime_ns: int
    #: In bytes.
    size: int


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said in a session, without tool calls, secrets and injected text."""

    role: Literal["user", "assistant"]
    text: str
    #: The line of the transcript, from 1.
    line: int
    #: In seconds since the epoch.
    time: float | None = None
    trust: Trust = "owner"


@dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive turns of a transcript as one text."""

    start_line: int
    end_line: int
    text: str
    date: str | None
    trust: Trust


@dataclass(frozen=True, slots=True)
class Document:
    """The text of one file when it was read."""

    path: str
    source: Source
    text: str
    #: The digest of the bytes on disk.
    sha256: str
    mtime_ns: int
    size: int
    #: A remark for people, such as "read as gb18030" or "only the first 4 MiB".
    note: str | None = None
    #: The passages of a transcript, instead of a text.
    passages: tuple[Passage, ...] = ()
    #: Lines before this one are indexed already and were not read again.
    from_line: int = 1
    #: Where reading continues when the file has grown.
    state: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive lines of one document: the unit that is indexed, found and cited."""

    #: Stable: the same path and text have the same id, wherever the lines are in the file.
    id: str
    path: str
    source: Source
    #: Counted from 1.
    start_line: int
    #: Inclusive.
    end_line: int
    text: str
    #: The headings above the first line, outermost first, after what the front matter says.
    headings: tuple[str, ...] = ()
    #: The day of the note, "YYYY-MM-DD", from its front matter or name.
    date: str | None = None
    trust: Trust = "owner"

    @property
    def embedding_text(self) -> str:
        """The text for the embedder: the lines below their headings, which say what the lines are about."""
        return f"{' > '.join(self.headings)}\n{self.text}" if self.headings else self.text

    @property
    def hash(self) -> str:
        """The key of the vector in the cache. Equal text is embedded once."""
        return hashlib.sha256(self.embedding_text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Identity:
    """What made some vectors. Vectors of different identities are never compared."""

    provider: str
    model: str
    dimensions: int
    #: A digest of everything else that changes vectors, such as weights, prefixes and length.
    key: str = ""

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}/{self.dimensions}" + (f"/{self.key[:12]}" if self.key else "")


# ---- searching ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    """A search request. None means the configured default, or no restriction."""

    text: str
    max_results: int | None = None
    min_score: float | None = None
    source: Source | None = None
    #: Search only files whose path starts with this prefix.
    path_prefix: str | None = None
    #: The session that asks. It decides whether the memory may be used and whether citations are shown.
    session_key: str | None = None

    @classmethod
    def of(cls, query: str | Query, **fields: Any) -> Query:
        """Return the query with these fields. A field that is None does not replace one that is set."""
        given = {name: value for name, value in fields.items() if value is not None}
        return cls(query, **given) if isinstance(query, str) else replace(query, **given)


@dataclass(frozen=True, slots=True)
class Part:
    """One term of a hit's score. The contributions of all parts sum to the score."""

    #: "vector", "keyword", "decay" and others.
    name: str
    #: The measure of this part, 0 to 1.
    value: float
    weight: float
    contribution: float
    #: Matched terms, rank or age, as text.
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How the score of a hit was computed."""

    fusion: str
    parts: tuple[Part, ...]
    #: Tokens of the query that the chunk contains.
    matched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk or entry that answers a query, with its citation, its score and the reasons for it."""

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: Source
    #: Such as "memory/2026-02-08.md#L10-L25". None if this session does not see citations.
    citation: str | None
    explain: Explanation
    chunk_id: str = ""
    date: str | None = None
    trust: Trust = "owner"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a search: the hits, the embedder that was used, and what is missing."""

    hits: tuple[Hit, ...]
    #: The provider of the vectors, such as "local" or "none".
    provider: str
    model: str
    #: Whether another provider or backend than the configured one answered. ``degraded`` says why.
    fallback: bool = False
    #: Whether this session sees citations.
    citations: bool = True
    #: What is missing from this answer, as text.
    degraded: str | None = None

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __bool__(self) -> bool:
        return bool(self.hits)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines read from one file of the workspace."""

    path: str
    text: str
    start_line: int
    end_line: int
    total_lines: int
    #: Whose words the file holds.
    trust: Trust = "owner"


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A note or a transcript in a list."""

    path: str
    source: Source
    #: In bytes.
    size: int
    #: In seconds since the epoch.
    mtime: float
    #: 0 until the file is indexed.
    chunks: int
    trust: Trust


@dataclass(frozen=True, slots=True)
class NoteChunk:
    """A chunk of a note, without its text."""

    id: str
    start_line: int
    end_line: int
    headings: tuple[str, ...]
    date: str | None
    trust: Trust
    tokens: int
    embedded: bool


# ---- entries --------------------------------------------------------------------------------------------------

EntryType = Literal[
    "user_preference",
    "project_context",
    "technical_decision",
    "workflow",
    "fact",
    "skill",
    "relationship",
    "other",
]
#: Only active entries are found. A staged entry waits for the owner's approval, and a rejected one was refused.
EntryState = Literal["active", "staged", "superseded", "expired", "rejected", "forgotten"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One short typed statement that was learned. Times are in seconds since the epoch."""

    #: A UUID.
    id: str
    text: str
    type: EntryType = "other"
    category: str | None = None
    #: 1 to 5.
    importance: float = 3.0
    #: 0 to 1.
    confidence: float = 1.0
    trust: Trust = "owner"
    state: EntryState = "active"
    #: The session in which it was learned.
    session: str | None = None
    #: The place in the session, or the interface that added it.
    source: str | None = None
    created_at: float = 0.0
    updated_at: float = 0.0
    #: When it became true.
    valid_from: float = 0.0
    #: None means never.
    expires_at: float | None = None
    superseded_by: str | None = None
    last_accessed_at: float | None = None
    access_count: int = 0
    #: How often it was said.
    repetitions: int = 1
    related: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    #: The sequence number of the last event that changed it.
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one entry. It has no texts if the entry was forgotten."""

    seq: int
    #: Events of one change have the same number.
    change: int
    at: float
    #: "add", "stage", "approve", "reject", "repeat", "merge", "supersede", "update", "expire", "forget" and others.
    kind: str
    entry_id: str
    by: str
    note: str
    before: Entry | None
    after: Entry | None


@dataclass(frozen=True, slots=True)
class Remembered:
    """The result of remembering a statement."""

    #: The entry that holds the statement now. None if it was refused.
    entry: Entry | None
    action: Literal["added", "repeated", "merged", "superseded", "staged", "refused"]
    #: The id of the entry that was superseded.
    replaced: str | None = None
    #: The reason, as text.
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import of entries."""

    added: int
    #: Entries that existed already and were not changed.
    already: int


@dataclass(frozen=True, slots=True)
class EntryHit:
    """An entry that answers a query, with its score and the reasons for it."""

    entry: Entry
    score: float
    #: How well it matches the query, 0 to 1, whatever its importance.
    similarity: float
    explain: Explanation


@dataclass(frozen=True, slots=True)
class Receipt:
    """Which entries were forgotten, which copies were erased, and which could not be."""

    #: Ids of the erased entries.
    forgotten: tuple[str, ...]
    covered: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    #: Possible matches, if no match was certain.
    candidates: tuple[EntryHit, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """The result of a cleanup."""

    expired: int
    purged: int


EntrySort = Literal["created", "updated", "importance", "score"]


@dataclass(frozen=True, slots=True)
class EntryPage:
    """One page of entries."""

    entries: tuple[Entry, ...]
    #: All matching entries, on this page or not.
    total: int
    #: Where the next page starts. None on the last page.
    after: tuple[float, str] | None = None
    #: Scores by id, if there was a query.
    scores: Mapping[str, float] = field(default_factory=dict)
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Facets:
    """How many entries there are of each kind."""

    total: int
    types: Mapping[str, int]
    states: Mapping[str, int]
    trust: Mapping[str, int]
    #: The most frequent tags.
    tags: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Bucket:
    """Counts of what happened in a span of time."""

    start: float
    end: float
    captured: int = 0
    superseded: int = 0
    forgotten: int = 0
    recalls: int = 0


@dataclass(frozen=True, slots=True)
class Point:
    """The place of an entry on the map, between -1 and 1."""

    entry: Entry
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class EntryMap:
    """Entries as points. Entries with similar meaning are near each other."""

    points: tuple[Point, ...]
    #: Entries in force. More than the points if some have no vector or there are too many.
    total: int
    #: The sequence number of the newest change on the map.
    generation: int
    method: str = "pca"
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Considered:
    """One thing that was considered for a prompt, and whether it was added."""

    #: "entry" or "note".
    kind: str
    #: The id of the entry, or the citation of the note.
    ref: str
    entered: bool
    #: As text.
    reason: str
    score: float
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Recall:
    """One recall, as the ledger records it."""

    id: str
    at: float
    interface: str
    session: str | None
    #: Empty if something in it was forgotten later.
    query: str
    characters: int
    tokens: int
    considered: tuple[Considered, ...]


@dataclass(frozen=True, slots=True)
class RecallHead:
    """One recall in a list."""

    id: str
    at: float
    interface: str
    session: str | None
    query: str
    characters: int
    tokens: int
    #: How many things were added to the prompt.
    entered: int
    left_out: int


@dataclass(frozen=True, slots=True)
class RecallPage:
    """One page of recalls, newest first."""

    recalls: tuple[RecallHead, ...]
    total: int
    after: tuple[float, str] | None = None


# ---- writing --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Saved:
    """The place of a note that is on disk."""

    #: Relative to the workspace.
    path: str
    start_line: int
    end_line: int
    #: Whether the note contained it before, so that nothing was written.
    already: bool = False
    #: A remark for people, such as that secrets were removed or no model was used.
    note: str | None = None

    @property
    def citation(self) -> str:
        return f"{self.path}#L{self.start_line}-L{self.end_line}"


# ---- reports --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Problem:
    """One file that could not be used, or only in part."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long task has come, for callbacks."""

    #: "scan", "embed" or "write".
    stage: str
    done: int
    total: int
    path: str = ""


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The result of a sync. ``files`` and ``chunks`` count what the index holds afterwards."""

    files: int = 0
    chunks: int = 0
    #: Files that this sync indexed.
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    #: Files that could not be read.
    failed: int = 0
    #: Chunks whose vectors were computed.
    embedded: int = 0
    #: Chunks whose vectors were in the cache.
    cached: int = 0
    #: Chunks without a vector, which only keyword search finds.
    pending: int = 0
    rebuilt: bool = False
    seconds: float = 0.0
    problems: tuple[Problem, ...] = ()
    degraded: str | None = None
    #: What was wrong with the index that this sync replaced.
    healed: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """The state of an engine."""

    backend: str
    workspace: str
    files: int
    chunks: int
    #: Chunks with a vector of the current embedder.
    embedded: int
    provider: str
    model: str
    vector_engine: str
    index_path: str
    index_bytes: int
    #: In seconds since the epoch.
    last_sync: float | None = None
    fallback: bool = False
    degraded: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)
