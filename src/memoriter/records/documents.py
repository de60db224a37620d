"""Files, turns, chunks and notes, whose words they are, and the answers that are found in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from memoriter.records.entries import EntryHit

#: Where a hit comes from: notes, session transcripts, or what was learned in conversation.
Source = Literal["memory", "sessions", "entries"]

#: The author of a text: the owner, an agent, an agent that had read text from outside, or an outside source. It follows
#: from the way a text arrived, not from its content.
Trust = Literal["owner", "agent", "relayed", "untrusted"]

#: Every trust level, the most trusted first. This is the only place that orders them.
TRUST_LEVELS: tuple[Trust, ...] = ("owner", "agent", "relayed", "untrusted")

#: The levels of what agents wrote.
AGENTS: tuple[Trust, ...] = ("agent", "relayed")


def least_trusted(*levels: Trust) -> Trust:
    """Return the trust of a text that is made of texts with these levels."""
    return max(levels, key=TRUST_LEVELS.index)


def is_trusted_like(trust: Trust, other: Trust) -> bool:
    """Return whether the first level is trusted at least as much as the second."""
    return TRUST_LEVELS.index(trust) <= TRUST_LEVELS.index(other)


_LOCAL_TOOLS = """
    Read read_file read_many_files view open_file NotebookRead LSP Glob Grep LS ls find list_dir list_directory
    list_files file_search grep_search Edit MultiEdit Write write_file edit_file create_file NotebookEdit
    apply_patch replace str_replace str_replace_editor str_replace_based_edit_tool search_files codebase_search Bash
    shell local_shell local_shell_call exec terminal run_command run_terminal_cmd run_shell_command execute_command
    execute_bash exec_command shell_command powershell KillShell KillBash kill_process TodoWrite TodoRead todo_write
    todo_read update_plan ExitPlanMode EnterPlanMode AskUserQuestion think ToolSearch tool_search tool_search_tool_regex
    tool_search_tool_bm25 tool_search_tool_result calculator get_current_time current_time session_status memory
    report_intent update_topic enter_plan_mode exit_plan_mode ask_user write_todos
    memory_* memoriter_memory* memoriter__memory* memoriter-memory* mcp_memoriter_memory* mcp__*memoriter*__memory*
"""
#: Tools whose output does not come from outside, as globs. Of tools that run commands, only local commands count.
LOCAL_TOOLS: tuple[str, ...] = tuple(_LOCAL_TOOLS.split())


@dataclass(frozen=True, slots=True)
class Collection:
    """A named folder of notes that is searched together with the workspace."""

    name: str
    path: str
    #: Which files belong to it. None: as `files.patterns` says.
    pattern: str | None
    #: Number of notes. None: the folder does not exist.
    notes: int | None
    #: The most that its notes can claim.
    trust: Trust = "owner"


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
    """One message of a session, without tool calls, secrets and injected text."""

    role: Literal["user", "assistant"]
    text: str
    #: The line of the transcript, from 1. 0 means that the turn comes from no transcript.
    line: int = 0
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
    #: The most that its text can claim. The owner's settings lower it for a folder.
    trust: Trust = "owner"
    #: The passages of a transcript, instead of a text.
    passages: tuple[Passage, ...] = ()
    #: Lines before this one are indexed already and were not read again.
    from_line: int = 1
    #: Where reading continues when the file has grown.
    state: str = ""


def text_hash(text: str) -> str:
    """Return the key of a text in the cache of vectors."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
        return text_hash(self.embedding_text)


@dataclass(frozen=True, slots=True)
class Identity:
    """The model that made some vectors. Vectors of different identities are never compared."""

    provider: str
    model: str
    dimensions: int
    #: A digest of everything else that changes vectors, such as weights, prefixes and length.
    key: str = ""

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}/{self.dimensions}" + (f"/{self.key[:12]}" if self.key else "")


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
    #: The day that it is about, such as 2026-02-08. None: unknown, or not indexed yet.
    date: str | None = None
    #: The first words of a conversation. Empty for notes.
    title: str = ""


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


@dataclass(frozen=True, slots=True)
class Finding:
    """One check and its result."""

    name: str
    state: Literal["ok", "note", "wrong"]
    text: str
    #: How to fix it; empty if nothing has to be done.
    fix: str = ""


# ---- queries and answers -----------------------------------------------------------------------------------------

CitationMode = Literal["on", "off", "auto"]
Level = Literal["high", "medium", "low"]

#: The least confidence of each level. A hit below the second is shown only if there is nothing better.
HIGH_CONFIDENCE, MEDIUM_CONFIDENCE = 0.5, 0.15


@dataclass(frozen=True, slots=True)
class Query:
    """A search request. None means the configured default, or no restriction."""

    text: str
    max_results: int | None = None
    min_score: float | None = None
    source: Source | None = None
    #: Search only files whose path starts with this prefix.
    path_prefix: str | None = None
    #: Search only the notes of this collection.
    collection: str | None = None
    #: The session that asks. It decides whether the memory may be used and whether citations are shown.
    session: str | None = None
    #: False leaves the reranker out, which takes most of the time.
    rerank: bool = True
    #: Search what was valid on this day, "YYYY-MM-DD". Notes without a date are left out.
    as_of: str | None = None

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
    """The parts of a hit's score."""

    fusion: str
    parts: tuple[Part, ...]
    #: Tokens of the query that the chunk contains.
    matched: tuple[str, ...] = ()
    #: How well the text answers, according to the reranker. None if it did not read this text.
    logit: float | None = None
    #: The share of the query's weight that these tokens hold, 0 to 1. Rare tokens weigh most.
    coverage: float = 0.0


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
    #: The title and the headings above the lines. A list item often means nothing without them.
    heading: str | None = None
    date: str | None = None
    trust: Trust = "owner"
    #: The entry and its similarity, if the hit is an entry.
    entry: EntryHit | None = None
    #: The probability that this hit answers the query, 0 to 1. None if an external engine found it.
    confidence: float | None = None
    #: The place of a newer statement about the same thing, which says otherwise.
    superseded_by: str | None = None
    #: The place of a newer line about the same thing. Both may stand.
    newer: str | None = None
    #: The days that it was planned for, such as "2026-07", if they have passed.
    planned: str | None = None

    @property
    def level(self) -> Level | None:
        """The confidence in words."""
        return level_of(self.confidence)

    @property
    def place(self) -> str:
        """The citation, or the path for a session that sees no citations."""
        return self.citation or self.path


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
    #: Identifiers of the query that no note, session or entry contains, as they were written.
    unknown: tuple[str, ...] = ()
    #: What to say before the hits, as when nothing is relevant.
    notice: str | None = None

    @property
    def relevant(self) -> bool:
        """Whether any hit is likely to answer the query. If not, the hits are the nearest lines."""
        return any(hit.level != "low" for hit in self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]

    def __len__(self) -> int:
        return len(self.hits)

    def __bool__(self) -> bool:
        return bool(self.hits)


def level_of(confidence: float | None) -> Level | None:
    """Return a confidence in words."""
    if confidence is None:
        return None
    return "high" if confidence >= HIGH_CONFIDENCE else "medium" if confidence >= MEDIUM_CONFIDENCE else "low"
