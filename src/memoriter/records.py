"""The frozen values that pass between rooms.

Every room speaks in these: a leaf takes and gives them, a joiner hands them on, a door prints them. They hold
no behaviour beyond what follows from their own fields, and they import nothing of the package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

Source = Literal["memory", "sessions", "entries"]
"""Where a hit comes from: people's own files, session transcripts, or what was learned in conversation."""

Trust = Literal["owner", "agent", "untrusted"]
"""Whose words a text is made of: the owner's, an agent's, or those of an outside source.

It is decided by the way in which a text arrived, never by what the text says.
"""

#: Every trust level, the most trusted first. This is the only place that orders them.
TRUST_LEVELS: tuple[Trust, ...] = ("owner", "agent", "untrusted")


def least_trusted(*levels: Trust) -> Trust:
    """Return the trust of a text that is made of texts with these levels."""
    return max(levels, key=TRUST_LEVELS.index)


def is_trusted_like(trust: Trust, other: Trust) -> bool:
    """Return whether the first level is trusted at least as much as the second."""
    return TRUST_LEVELS.index(trust) <= TRUST_LEVELS.index(other)


CitationMode = Literal["on", "off", "auto"]


# ---- what is read ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that a source lists: known by its stat alone, not yet read."""

    path: str  #: as people cite it: relative to the workspace, with "/"; absolute only for extra paths outside it
    source: Source
    absolute: Path
    mtime_ns: int
    size: int  #: bytes


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said in a session, cleaned: no tool noise, no secrets, no text that we injected ourselves."""

    role: Literal["user", "assistant"]
    text: str
    line: int  #: of the transcript, 1-based
    time: float | None = None  #: seconds since the epoch
    trust: Trust = "owner"


@dataclass(frozen=True, slots=True)
class Passage:
    """Turns of a transcript that stand together, as one text with its place."""

    start_line: int
    end_line: int
    text: str
    date: str | None
    trust: Trust


@dataclass(frozen=True, slots=True)
class Document:
    """One file's text, as it was at one moment."""

    path: str
    source: Source
    text: str
    sha256: str  #: of the bytes on disk
    mtime_ns: int
    size: int
    note: str | None = None  #: on the reading, for people: "read as gb18030", "only the first 4 MiB"
    passages: tuple[Passage, ...] = ()  #: of a transcript, instead of a text
    from_line: int = 1  #: what the index holds of lines before this one still holds; not read again
    state: str = ""  #: where the source goes on when the file has grown


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of whole lines of one document: the unit that is indexed, found and cited."""

    id: str  #: stable: same path and same text give the same id, wherever in the file the lines stand
    path: str
    source: Source
    start_line: int  #: 1-based
    end_line: int  #: inclusive
    text: str
    headings: tuple[
        str, ...
    ] = ()  #: in force above the first line, outermost first; before them what front matter says
    date: str | None = None  #: the note's own day, "YYYY-MM-DD", from its front matter or name
    trust: Trust = "owner"

    @property
    def embedding_text(self) -> str:
        """What the embedder reads: the text under its headings, which say what the lines are about."""
        return f"{' > '.join(self.headings)}\n{self.text}" if self.headings else self.text

    @property
    def hash(self) -> str:
        """Key of the chunk's vector: equal text is embedded once, wherever it stands."""
        return hashlib.sha256(self.embedding_text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose vectors these are. Vectors of different identities never meet."""

    provider: str
    model: str
    dimensions: int
    key: str = ""  #: digest of every further setting that changes vectors (weights, prefixes, length)

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}/{self.dimensions}" + (f"/{self.key[:12]}" if self.key else "")


# ---- what is found --------------------------------------------------------------------------------------------


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

    name: str  #: "vector", "keyword", "decay", …
    value: float  #: the leg's own measure, 0–1
    weight: float
    contribution: float
    detail: str = ""  #: in words: matched terms, rank in the leg, age of the note


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a hit's score was made."""

    fusion: str
    parts: tuple[Part, ...]
    matched: tuple[str, ...] = ()  #: query tokens that the chunk contains


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that answers a query, with its place, its score and its reasons."""

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: Source
    citation: str | None  #: "memory/2026-02-08.md#L10-L25"; None where this session is not shown places
    explain: Explanation
    chunk_id: str = ""
    date: str | None = None
    trust: Trust = "owner"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search gives back: the hits, who made them, and what was missing meanwhile."""

    hits: tuple[Hit, ...]
    provider: str  #: of the vectors: "local", "none", …
    model: str
    fallback: bool = False  #: another provider or backend than the configured one; ``degraded`` says why
    citations: bool = True  #: whether this session is shown the places of the hits
    degraded: str | None = None  #: in words, what this answer went without

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
    """A note or a transcript, as a list of them shows it."""

    path: str
    source: Source
    size: int  #: bytes
    mtime: float  #: seconds since the epoch
    chunks: int  #: 0 before it is indexed
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


# ---- what is learned ------------------------------------------------------------------------------------------

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
EntryState = Literal["active", "staged", "superseded", "expired", "rejected", "forgotten"]
"""Only an active entry is found. A staged one waits until the owner approves it, a rejected one was refused."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One short typed statement kept from a conversation. Times are seconds since the epoch."""

    id: str  #: a UUID
    text: str
    type: EntryType = "other"
    category: str | None = None
    importance: float = 3.0  #: 1–5
    confidence: float = 1.0  #: 0–1
    trust: Trust = "owner"
    state: EntryState = "active"
    session: str | None = None  #: the conversation that it comes from
    source: str | None = None  #: the place in it, or the interface through which it came
    created_at: float = 0.0
    updated_at: float = 0.0
    valid_from: float = 0.0  #: since when it holds
    expires_at: float | None = None  #: None: never
    superseded_by: str | None = None
    last_accessed_at: float | None = None
    access_count: int = 0
    repetitions: int = 1  #: how often it was said
    related: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    seq: int = 0  #: of the last event that changed it


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one entry. Without its texts when the entry was forgotten."""

    seq: int
    change: int  #: what was changed together has the same number
    at: float
    kind: str  #: "add", "stage", "approve", "reject", "repeat", "merge", "supersede", "update", "expire", "forget", …
    entry_id: str
    by: str
    note: str
    before: Entry | None
    after: Entry | None


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a statement that was to be remembered."""

    entry: Entry | None  #: that says it now; None when it was refused
    action: Literal["added", "repeated", "merged", "superseded", "staged", "refused"]
    replaced: str | None = None  #: the id of the entry that this one supersedes
    note: str | None = None  #: why, in words


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import of entries did."""

    added: int
    already: int  #: that were there before, and were left as they are


@dataclass(frozen=True, slots=True)
class EntryHit:
    """An entry that answers a query, with its score and its reasons."""

    entry: Entry
    score: float
    similarity: float  #: 0–1, how well it fits the query, whatever its importance
    explain: Explanation


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten, which copies went with it, and which are out of reach."""

    forgotten: tuple[str, ...]  #: ids
    covered: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    candidates: tuple[EntryHit, ...] = ()  #: entries that may have been meant, when none was meant surely
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """What a cleanup did."""

    expired: int
    purged: int


EntrySort = Literal["created", "updated", "importance", "score"]


@dataclass(frozen=True, slots=True)
class EntryPage:
    """Some of the entries that were asked for, in their order."""

    entries: tuple[Entry, ...]
    total: int  #: of all that were asked for, on this page or not
    after: tuple[float, str] | None = None  #: where the next page begins; None on the last
    scores: Mapping[str, float] = field(default_factory=dict)  #: of a query, by id
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Facets:
    """How many entries there are of each kind."""

    total: int
    types: Mapping[str, int]
    states: Mapping[str, int]
    trust: Mapping[str, int]
    tags: Mapping[str, int]  #: the most frequent ones


@dataclass(frozen=True, slots=True)
class Bucket:
    """What happened in a span of time."""

    start: float
    end: float
    captured: int = 0
    superseded: int = 0
    forgotten: int = 0
    recalls: int = 0


@dataclass(frozen=True, slots=True)
class Point:
    """An entry's place on the map, between -1 and 1."""

    entry: Entry
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class EntryMap:
    """Entries as points: those that are near in meaning stand near each other."""

    points: tuple[Point, ...]
    total: int  #: entries in force; more than points when some have no vector, or when they are too many
    generation: int  #: the number of the newest change that it shows
    method: str = "pca"
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Considered:
    """One thing that was found for a prompt, and whether it entered."""

    kind: str  #: "entry" or "note"
    ref: str  #: the entry's id, or the note's citation
    entered: bool
    reason: str  #: in words
    score: float
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Recall:
    """One moment at which memory was put before an agent."""

    id: str
    at: float
    interface: str
    session: str | None
    query: str  #: empty when something of it was forgotten since
    characters: int
    tokens: int
    considered: tuple[Considered, ...]


# ---- what programs keep under a name --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """One value that a program keeps. Times are seconds since the epoch."""

    id: str
    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    texts: tuple[str, ...]  #: what is searched of it
    created_at: float
    updated_at: float
    ttl_s: float | None = None  #: how long it lasts after it was last used; None: for good
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Put:
    """A value that is to stand under a name; None deletes what stands there."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    texts: tuple[str, ...] = ()
    ttl_s: float | None = None


Condition = tuple[str, Literal["=", ">", ">=", "<", "<="], "str | float | None"]
"""A member of a value, how it is compared, and with what; a null is equal to a member that is not there."""


@dataclass(frozen=True, slots=True)
class Matching:
    """Which items are asked for, by what their values hold."""

    names: tuple[str, ...]  #: the members that decide it; the rest of a value is not read
    admits: Callable[[Mapping[str, Any]], bool]  #: asked of a value that has those members alone
    conditions: tuple[Condition, ...] = ()  #: what must hold at least, for the database to look up


@dataclass(frozen=True, slots=True)
class ItemHit:
    """An item that was asked for, and how well it fits the query, 0–1; None when the query says nothing of it."""

    item: Item
    score: float | None


@dataclass(frozen=True, slots=True)
class RecallHead:
    """One line of the ledger."""

    id: str
    at: float
    interface: str
    session: str | None
    query: str
    characters: int
    tokens: int
    entered: int  #: how many things entered the prompt
    left_out: int


@dataclass(frozen=True, slots=True)
class RecallPage:
    """Some recalls, newest first."""

    recalls: tuple[RecallHead, ...]
    total: int
    after: tuple[float, str] | None = None


# ---- what is written ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Saved:
    """Something that is on the disk now, and where."""

    path: str  #: as people cite it, relative to the workspace
    start_line: int
    end_line: int
    already: bool = False  #: it stood there before, so nothing was written
    note: str | None = None  #: what a person should know: that secrets were left out, that no model was used

    @property
    def citation(self) -> str:
        return f"{self.path}#L{self.start_line}-L{self.end_line}"


# ---- what is reported -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Problem:
    """One file that could not be used, or only in part; a line of a report, never an exception."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long piece of work has come; handed to callbacks."""

    stage: str  #: "scan", "embed", "write"
    done: int
    total: int
    path: str = ""


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync did. ``files`` and ``chunks`` count what the index holds afterwards."""

    files: int = 0
    chunks: int = 0
    changed: int = 0  #: files written into the index by this sync
    unchanged: int = 0
    removed: int = 0
    failed: int = 0  #: files that could not be read at all
    embedded: int = 0  #: chunks whose vectors were computed now
    cached: int = 0  #: chunks whose vectors were known already
    pending: int = 0  #: chunks that still have no vector: keyword search only
    rebuilt: bool = False
    seconds: float = 0.0
    problems: tuple[Problem, ...] = ()
    degraded: str | None = None
    healed: str | None = None  #: what was wrong with the index that this sync replaced


@dataclass(frozen=True, slots=True)
class Status:
    """The state of an engine."""

    backend: str
    workspace: str
    files: int
    chunks: int
    embedded: int  #: chunks with a vector of the current embedder
    provider: str
    model: str
    vector_engine: str
    index_path: str
    index_bytes: int
    last_sync: float | None = None  #: seconds since the epoch
    fallback: bool = False
    degraded: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)


# ---- what another memory left behind --------------------------------------------------------------------------

ImportAction = Literal["new", "same", "grown", "other"]
"""What a copy of a file would be: new, there already, longer than the one there, or in the way of another."""


@dataclass(frozen=True, slots=True)
class ImportStep:
    """One file of another program's, and what becomes of it."""

    kind: Literal["note", "session"]
    source: Path
    target: Path
    action: ImportAction
    note: str = ""  #: why it is left out


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What another program has kept, and what became of it."""

    program: str
    home: Path
    agent: str
    steps: tuple[ImportStep, ...]
    entries: Imported
    remarks: tuple[str, ...] = ()
    dry_run: bool = False
