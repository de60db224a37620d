"""Entries, their history, what entered a prompt, and reports of syncs and status."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from memoriter.records.documents import Explanation, Part, Trust

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

#: The start of `Entry.source` of an entry that comes from another program.
IMPORTED = "import"

_REFERENCE = re.compile(r"(?:entry:|entries/)(.*)|([0-9a-f]{8}[0-9a-f-]{0,28})", re.IGNORECASE | re.DOTALL)


def referenced_id(text: str) -> str | None:
    """Return the id, or the prefix of an id, in a reference to an entry; None for any other text.

    References are the citation ``entry:<id>``, the path ``entries/<id>``, and at least eight characters of an id.

    >>> referenced_id("entry:1f0c"), referenced_id("1f0c2a9e"), referenced_id("memory/cafe.md")
    ('1f0c', '1f0c2a9e', None)
    """
    found = _REFERENCE.fullmatch(text.strip())
    return found and (found[1] or found[2] or "")


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
    #: When it was said.
    created_at: float = 0.0
    updated_at: float = 0.0
    #: When it became true: when it was said, or when a statement that it refines was said.
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
    #: The folder of the workspace in which it was learned. None: it was learned before this was recorded, or imported.
    workspace: str | None = None

    @property
    def day(self) -> str | None:
        """The day on which it became true, such as "2026-02-08"."""
        return (
            datetime.fromtimestamp(self.valid_from, UTC).date().isoformat() if self.valid_from > 0 else None
        )

    def valid_until(self, successor: Entry | None) -> float | None:
        """Return when it stops being true: when its successor became true, or when it expires; None if neither.

        ``successor`` is the entry that superseded it.
        """
        if self.superseded_by:
            return successor.valid_from if successor else self.updated_at
        return self.expires_at

    def was_valid(self, at: float, successor: Entry | None) -> bool:
        """Return whether it was true at a time. ``successor`` is the entry that superseded it."""
        until = self.valid_until(successor)
        return self.valid_from <= at and (until is None or until > at)


@dataclass(frozen=True, slots=True)
class EntryEvent:
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
    #: The words of a repetition, if they differ from the text of the entry.
    said: str | None = None

    @property
    def deed(self) -> str:
        """What the owner calls the change. To forget an entry hides it as a rejection does."""
        is_hidden = self.kind == "reject" and self.before is not None and self.before.state != "staged"
        return "forget" if is_hidden else self.kind


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
    #: Entries whose text was forgotten.
    refused: int = 0
    #: The added entries, or those that would be added: the id of each and the number of its newest change.
    #: Imports with the same numbers compare as equal, because new ids are random.
    entries: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    #: The first texts that are added.
    preview: tuple[str, ...] = field(default=(), compare=False)
    #: Why entries were left out, one sentence for each.
    invalid: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class EntryHit:
    """An entry that answers a query, with its score and the reasons for it."""

    entry: Entry
    score: float
    #: How well it matches the query, 0 to 1, whatever its importance.
    similarity: float
    explain: Explanation
    #: The probability that the entry answers the query, 0 to 1. The entry's own confidence is that of the statement.
    confidence: float | None = None
    #: The statement that matches the query, if it is an earlier one, which the entry superseded; otherwise empty.
    before: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """The entries to forget or to erase, named in exactly one way."""

    #: An id, or a unique prefix of one.
    id: str | None = None
    #: What the entry says. Only a single certain match is selected.
    query: str | None = None
    #: The session in which the entries were learned.
    session: str | None = None
    source: str | None = None
    #: Created at or after, in seconds since the epoch.
    since: float | None = None
    #: Created before.
    until: float | None = None


@dataclass(frozen=True, slots=True)
class NoteLine:
    """A line of a note."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """The forgotten entries, which copies are hidden or erased, and which copies remain."""

    #: Ids of the hidden or erased entries.
    forgotten: tuple[str, ...]
    covered: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    #: Possible matches, if no match was certain.
    candidates: tuple[EntryHit, ...] = ()
    dry_run: bool = False
    #: Lines of notes that say exactly the same and were erased too, or would be.
    note_lines: tuple[NoteLine, ...] = ()
    #: Citations of notes and sessions that still say it.
    mentions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """The result of a cleanup."""

    expired: int
    purged: int
    #: Entries that were marked as expired under a wrong clock and are in force again.
    restored: int = 0
    #: What is wrong with the clock.
    clock: str | None = None


EntrySort = Literal["created", "updated", "importance", "expires", "score", "used"]


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
    #: Matching entries before this page. None: the page was asked for by ``after``.
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Facets:
    """Numbers of entries of each kind."""

    total: int
    types: Mapping[str, int]
    states: Mapping[str, int]
    trust: Mapping[str, int]
    #: The most frequent tags.
    tags: Mapping[str, int]
    sources: Mapping[str, int] = field(default_factory=dict)
    #: By the path of the workspace.
    workspaces: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Counts of changes and recalls in a span of time."""

    start: float
    end: float
    captured: int = 0
    superseded: int = 0
    forgotten: int = 0
    recalls: int = 0
    #: Notes and entries that recalls added to prompts.
    hits: int = 0
    #: Tokens that recalls added to prompts.
    tokens: int = 0
    #: Entries in force today that were created before the end of the span.
    entries: int = 0


@dataclass(frozen=True, slots=True)
class Considered:
    """An entry or a note that was considered for a prompt, and whether it was added."""

    #: "entry" or "note".
    kind: str
    #: The id of the entry, or the citation of the note.
    ref: str
    entered: bool
    #: As text.
    reason: str
    score: float
    parts: tuple[Part, ...] = ()
    #: What entered the prompt, as it was then. Empty if it did not enter, or was forgotten.
    text: str = ""


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
    #: The text that was added to the prompt. Empty if something in it was forgotten later.
    block: str = ""

    def refs(self, kind: Literal["entry", "note"]) -> list[str]:
        """Return the references to what was considered of one kind."""
        return [considered.ref for considered in self.considered if considered.kind == kind]


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
    #: Number of entries and notes that were added to the prompt.
    entered: int
    left_out: int


@dataclass(frozen=True, slots=True)
class RecallPage:
    """One page of recalls, newest first."""

    recalls: tuple[RecallHead, ...]
    total: int
    after: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One file that could not be used, or only in part."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a long task, for callbacks."""

    #: "scan", "embed" or "write".
    stage: str
    done: int
    total: int
    path: str = ""


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class SyncBudget:
    """Time limits of a sync that a search waits for, in seconds."""

    #: For reading files and writing chunks and keywords. At least one file is indexed.
    rows_s: float = 5.0
    #: For vectors of files that this sync indexed.
    vectors_s: float = 2.0
    #: For vectors of other files, unless they are computed in the background.
    others_s: float = 0.3
    #: How long to wait for another sync.
    wait_s: float = 2.0


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The result of `Indexer.catch_up`."""

    #: Changed files that are not indexed yet, because the time was up.
    waiting: int
    #: All files.
    files: int


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
    #: Changed files that are not indexed yet, because the time was up.
    waiting: int = 0
    #: Chunks whose vectors were computed.
    embedded: int = 0
    #: Chunks whose vectors were in the cache.
    cached: int = 0
    #: Chunks without a vector, which only keyword search finds.
    pending: int = 0
    #: How many seconds the vectors of these chunks will probably take, if a limited sync has measured it.
    remaining_s: float | None = None
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


def from_share(share: float) -> float:
    """Convert an importance from the scale 0–1 to 1–5.

    >>> from_share(0.7)
    3.8
    """
    return round(1 + 4 * min(1.0, max(0.0, share)), 4)
