"""Moments that a host reports, and the effects that it gets back."""

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

#: Moments at which something is written. This work is finished even if it is late; other results are dropped.
WRITING: frozenset[Event] = frozenset({"agent_end", "before_compaction", "command_new", "session_end"})


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happens in a host."""

    event: Event
    #: The id of the session.
    session: str = "main"
    #: The session key, which names the participants, for `memory.scope`. None is the owner's terminal or program.
    session_key: str | None = None
    #: The conversation, all of it or since the last moment.
    messages: tuple[Mapping[str, object], ...] = ()
    #: What the user just said, if it is not among the messages yet.
    prompt: str = ""
    #: The file of the conversation, used if there are no messages.
    transcript: Path | None = None
    #: The model's context window in tokens.
    window: int | None = None
    #: The current length of the conversation in tokens.
    tokens: int | None = None
    #: Every turn was already in an earlier `agent_end`.
    captured: bool = False


@dataclass(frozen=True, slots=True)
class Effect:
    """The result of one moment."""

    #: Text to put before what the user said.
    prepend_context: str = ""
    #: The id of that text in the recall ledger.
    recall_id: str = ""
    #: Names of the tools that the agent has.
    tools: tuple[str, ...] = ()
    remembered: tuple[Remembered, ...] = ()
    written: tuple[Saved, ...] = ()
    #: Sentences for the owner, never for the model.
    warnings: tuple[str, ...] = ()

    @classmethod
    def join(cls, effects: Iterable[Effect]) -> Effect:
        """Join several effects into one, in their order."""
        parts = list(effects)
        return cls(
            prepend_context="\n\n".join(part.prepend_context for part in parts if part.prepend_context),
            recall_id=next((part.recall_id for part in parts if part.recall_id), ""),
            tools=tuple(dict.fromkeys(name for part in parts for name in part.tools)),
            remembered=tuple(result for part in parts for result in part.remembered),
            written=tuple(saved for part in parts for saved in part.written),
            warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
        )

    def as_host(self) -> dict[str, object]:
        """Return the effect as plain data for hosts, in camelCase and without empty fields."""
        remembered = [
            {"id": result.entry.id if result.entry else None, "action": result.action}
            for result in self.remembered
        ]
        fields: dict[str, object] = {
            "prependContext": self.prepend_context,
            "recallId": self.recall_id,
            "tools": list(self.tools),
            "remembered": remembered,
            "written": [saved.citation for saved in self.written],
            "warnings": list(self.warnings),
        }
        return {name: value for name, value in fields.items() if value}
