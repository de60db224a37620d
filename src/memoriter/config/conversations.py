"""The settings of sessions, and of what is learned from them: notes, entries, extraction, recall, cleanup."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from memoriter.config.fields import Fraction, Number, Section, Whole, described
from memoriter.config.search import VectorEngine
from memoriter.records import LOCAL_TOOLS


class EntrySettings(Section):
    """Storage of entries."""

    vector_engine: VectorEngine = described(
        "scan", "Engine that searches the vectors of entries: `scan`, or one that an extension offers."
    )
    database: Path | None = described(
        None,
        "File of the entries' database. Default: `memory.db` in the agent's folder. Agents other than "
        "`main` add their name to it.",
    )
    index_folder: Path | None = described(
        None,
        "Folder for keywords and vectors of entries, which are derived from the database. Default: "
        "`entries` in the agent's folder.",
    )
    approval: Literal["none", "agent", "all"] = described(
        "none",
        "Which new entries wait for the owner's approval: `none`, those that an `agent` stores, or `all` "
        "that the owner did not add, including captures.",
    )
    workspace_only: bool = described(
        False,
        "Use only entries that were learned in this workspace, or in none: in searches, recalls, lists and "
        "exports. If false, all workspaces of an agent share its entries.",
    )
    capture: bool = described(True, "Capture what the owner says about themselves and their work, by rules.")


class TriggerSettings(Section):
    """Conditions for extraction by a language model."""

    message_interval: Whole = described(10, "After this many messages.", ge=1)
    on_session_end: bool = described(True, "When a session ends.")


class ExtractionSettings(Section):
    """Extraction of entries from conversations by a language model. Without one, rules capture entries."""

    auto_extract: bool = described(
        False, "Call the language model automatically. If false, extraction spends no tokens."
    )
    min_confidence: Fraction = described(0.7, "Drop statements with a lower confidence.")
    min_importance: Whole = described(2, "Drop statements with a lower importance.", ge=1, le=5)
    trigger: TriggerSettings = Field(default_factory=TriggerSettings)


class RetrievalSettings(Section):
    """Text that is added to the agent's prompt automatically."""

    inject_on_query: bool = described(True, "Recall notes and entries before the agent answers.")
    max_memories: Whole = described(10, "Maximum number of entries in a prompt.", ge=0, le=100)
    similarity_threshold: Fraction = described(
        0.15,
        "Minimum similarity of an entry to the conversation. Entries below it are not considered. 0.15 was "
        "chosen with the bundled model; embedders with higher cosines need more, such as 0.4.",
    )
    importance_weight: Fraction = described(
        0.02,
        "Share of the importance in the score of an entry. With 0.3, the score is 0.7 × similarity + 0.3 × "
        "importance / 5.",
    )
    min_confidence: Fraction = described(
        0.25,
        "Minimum probability that a note or an entry answers, for text that is added to a prompt "
        "automatically. A search still finds what is below it.",
    )
    budget_ratio: Fraction = described(
        0.1,
        "Maximum share of the conversation's token budget for recalled text, if the host reports that "
        "budget.",
    )


class CleanupSettings(Section):
    """Retention of expired entries and recorded recalls."""

    auto_cleanup: bool = described(True, "Clean up automatically.")
    interval: Whole = described(24, "Hours between cleanups.", ge=1)
    retention_days: Whole = described(
        30,
        "Days to keep an expired entry, hidden, before it is erased, of the days on which memoriter runs.",
        ge=0,
    )
    ledger_days: Whole = described(90, "Days to keep the record of what entered which prompt.", ge=1)


class SessionSettings(Section):
    """Session transcripts that are indexed, and whose words they contain."""

    enabled: bool = described(True, "Index session transcripts as well as notes.")
    paths: tuple[Path, ...] = described(
        (), "More folders or files of transcripts, such as `~/.claude/projects`."
    )
    delta_bytes: Whole = described(
        100_000, "Index a transcript automatically when it grows by this many bytes.", ge=1
    )
    delta_messages: Whole = described(
        50,
        "Index a transcript automatically when it grows by this many messages. Smaller changes wait for "
        "the next search.",
        ge=1,
    )
    local_tools: tuple[str, ...] = described(
        LOCAL_TOOLS,
        "Tools whose output does not come from outside, as names with `*` and `?`. After the output of any "
        "other tool, or of a command that is not known to be local, the words of the agent are untrusted to the end "
        "of the session.",
    )
    owner_names: tuple[str, ...] = described(
        (),
        "Names under which you speak, for hosts that put a name on messages. A message of the user under "
        "another name counts as a stranger's.",
    )


class WatchSettings(Section):
    """Automatic indexing of changed files, while a service or `memoriter watch` runs."""

    enabled: bool = described(True, "Watch notes and transcripts for changes.")
    debounce_s: Number = described(
        1.5, "Seconds without further changes before notes are indexed.", ge=0, le=600
    )
    interval_minutes: Number = described(
        0, "Also check for changes at this interval. 0: no fixed interval.", ge=0
    )
    on_session_start: bool = described(True, "Check for changes when a session starts.")


class WritingSettings(Section):
    """Notes that are written automatically."""

    flush: bool = described(True, "Before a host compacts a conversation, save what would be lost.")
    flush_margin_tokens: Whole = described(
        24_000,
        "Flush when a conversation is this close to the end of its context window: the host's reserve for "
        "its answer (often 20,000) plus 4,000.",
        ge=0,
    )
    timezone: str = described(
        "", "Time zone of dates in notes, such as `Asia/Shanghai`. Default: the system's."
    )

    @field_validator("timezone")
    @classmethod
    def _is_a_zone(cls, name: str) -> str:
        from zoneinfo import ZoneInfo

        if name:
            try:
                ZoneInfo(name)
            except (OSError, ValueError, KeyError) as error:
                raise ValueError("must be a time zone such as 'Europe/Berlin'") from error
        return name
