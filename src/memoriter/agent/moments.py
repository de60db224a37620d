"""What a host says when something happens, and what comes of it. Plain values; who acts on them is `bus`'s duty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from memoriter.records import Remembered, Saved

Event = Literal[
    "session_start",
    "before_agent_start",
    "agent_end",
    "before_compaction",
    "command_new",
    "transcript_update",
    "session_end",
]
EVENTS: tuple[Event, ...] = get_args(Event)

WRITING: frozenset[Event] = frozenset({"agent_end", "before_compaction", "command_new", "session_end"})
"""Moments at which something is kept. What is done then is finished however late; the rest is worth nothing late."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happens in a host."""

    event: Event
    session: str = "main"  #: the session's id
    session_key: str | None = (
        None  #: who is in it, for `memory.scope`; None: the owner's own terminal or program
    )
    messages: tuple[Mapping[str, object], ...] = ()  #: the conversation, whole or since the last moment
    prompt: str = ""  #: what the user just said, if it is not among the messages yet
    transcript: Path | None = None
    window: int | None = None  #: the model's context window in tokens
    tokens: int | None = None  #: of the conversation now
    heard: bool = False  #: every word of it was in an `agent_end` before


@dataclass(frozen=True, slots=True)
class Effect:
    """What the handlers of one moment came to."""

    prepend_context: str = ""  #: to be put before what the user said
    recall_id: str = ""  #: of what is put there, in the ledger
    tools: tuple[str, ...] = ()  #: names of the tools that the agent has
    remembered: tuple[Remembered, ...] = ()
    written: tuple[Saved, ...] = ()
    warnings: tuple[str, ...] = ()  #: sentences for the owner, never for the model

    @classmethod
    def joined(cls, effects: Iterable[Effect]) -> Effect:
        """All of them as one, in their order."""
        found = list(effects)
        return cls(
            prepend_context="\n\n".join(one.prepend_context for one in found if one.prepend_context),
            recall_id=next((one.recall_id for one in found if one.recall_id), ""),
            tools=tuple(dict.fromkeys(name for one in found for name in one.tools)),
            remembered=tuple(done for one in found for done in one.remembered),
            written=tuple(saved for one in found for saved in one.written),
            warnings=tuple(dict.fromkeys(text for one in found for text in one.warnings)),
        )

    def as_host(self) -> dict[str, object]:
        """As hosts read it: plain data in camelCase, what is empty left out."""
        kept = [
            {"id": done.entry.id if done.entry else None, "action": done.action} for done in self.remembered
        ]
        said: dict[str, object] = {
            "prependContext": self.prepend_context,
            "recallId": self.recall_id,
            "tools": list(self.tools),
            "remembered": kept,
            "written": [saved.citation for saved in self.written],
            "warnings": list(self.warnings),
        }
        return {name: value for name, value in said.items() if value}
