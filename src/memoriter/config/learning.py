"""The settings of what is learned in conversation: entries, extraction, retrieval, cleanup."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memoriter.config.base import Section, Share, Whole


class EntriesSettings(Section):
    """How entries are kept."""

    vector_engine: Literal["scan", "sqlite-vec", "lancedb"] = Field(
        default="scan",
        description="Where the vectors of entries are searched: `scan`, or the extra `sqlite-vec` or `lancedb`.",
    )
    approval: Literal["none", "agent", "all"] = Field(
        default="none",
        description="What waits until the owner approves it: nothing, what an `agent` stores, or `all` that was not "
        "added by the owner, captures too.",
    )
    capture: bool = Field(
        default=True,
        description="What the owner says about themselves and their work is remembered by rules.",
    )
    capture_max_chars: Whole = Field(
        default=500, ge=20, le=2000, description="Longer turns are not looked at by the rules."
    )
    capture_max_per_turn: Whole = Field(default=3, ge=0, le=20, description="Most entries from one turn.")


class Trigger(Section):
    """When a language model is asked what to remember."""

    message_interval: Whole = Field(default=10, ge=1, description="After so many messages.")
    on_session_end: bool = Field(default=True, description="When a session ends.")


class Extraction(Section):
    """What a language model takes from a conversation; without one, the rules serve."""

    auto_extract: bool = Field(
        default=False, description="Ask the language model by itself. Off: nothing spends tokens."
    )
    min_confidence: Share = Field(default=0.7, description="Less sure statements are not kept.")
    min_importance: Whole = Field(
        default=2, ge=1, le=5, description="Less important statements are not kept."
    )
    trigger: Trigger = Field(default_factory=Trigger)


class Retrieval(Section):
    """What is put in front of the agent by itself."""

    inject_on_query: bool = Field(
        default=True, description="Recall before the agent answers, where a `MemoryService` is asked to."
    )
    max_memories: Whole = Field(default=10, ge=0, le=100, description="Most entries in a prompt.")
    similarity_threshold: Share = Field(
        default=0.3,
        description="Entries that fit the conversation less are left out. 0.3 is measured with the bundled model; "
        "embedders whose cosines run higher want more, such as 0.6.",
    )
    note_threshold: Share = Field(
        default=0.25,
        description="Notes that score less are not put before the agent by themselves; a search still finds them.",
    )
    budget_ratio: Share = Field(
        default=0.1,
        description="Share of the conversation's tokens that recalled text may take, where the host says how many "
        "those are.",
    )


class Cleanup(Section):
    """What happens to entries that have expired, and to old recalls in the ledger."""

    auto_cleanup: bool = Field(default=True, description="Clean up by itself.")
    interval: Whole = Field(default=24, ge=1, description="Hours between cleanups.")
    retention_days: Whole = Field(
        default=30, ge=0, description="Days that an expired entry is kept, hidden, before it is erased."
    )
    ledger_days: Whole = Field(
        default=90, ge=1, description="Days for which the ledger knows what entered which prompt."
    )
    ledger_recalls: Whole = Field(
        default=5_000,
        ge=1,
        le=1_000_000,
        description="Most recalls in the ledger, up to 15 KB each; the oldest go first, whenever one more comes.",
    )
