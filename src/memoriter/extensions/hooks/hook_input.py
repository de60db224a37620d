"""Input of `memoriter hook`: the JSON that a host writes to standard input, read tolerantly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoriter.extensions.projects.repository import Place, locate

if TYPE_CHECKING:
    from memoriter.extensions.hooks.host import HookHost

#: Events after which the session is processed.
SESSION_EVENTS = ("Stop", "SessionEnd", "PreCompact")
#: Claude Code passes any output of these events to its model, even an empty object.
SILENT_EVENTS = ("PreCompact",)
#: Characters of a prompt that are used. A longer prompt is pasted text with the question at its end.
MAX_PROMPT_CHARS = 20_000
MAX_SESSION_ID_CHARS = 200


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event of a host."""

    name: str
    session: str = ""
    transcript: Path | None = None
    place: Place = field(default_factory=Place)
    prompt: str = ""
    #: The source of a SessionStart: startup, resume, clear, compact or fork.
    source: str = ""
    #: Whether another hook made the agent continue after a Stop.
    is_continued: bool = False
    #: The conversation, if the host has no transcript that can be read. Each message has an ``id``.
    messages: tuple[Mapping[str, Any], ...] = ()
    is_subagent: bool = False

    @classmethod
    def read(cls, data: bytes, name: str, host: HookHost) -> HookEvent:
        """Read an event from JSON; raise `ValueError` if it is not an object."""
        try:
            fields = json.loads(data)
        except RecursionError as error:
            raise ValueError("the JSON is nested too deeply") from error
        if not isinstance(fields, dict):
            raise ValueError("the JSON is not an object")  # noqa: TRY004 - callers handle one error type
        return cls._from_fields(host.read_fields(fields), name)

    @classmethod
    def _from_fields(cls, fields: Mapping[str, Any], name: str) -> HookEvent:
        transcript = _path(fields.get("transcript_path"))
        parts = transcript.parts if transcript else ()
        session = _text(fields.get("session_id")) or (transcript.stem if transcript else "")
        return cls(
            name=name or _text(fields.get("hook_event_name")),
            session=session[:MAX_SESSION_ID_CHARS],
            transcript=transcript,
            place=locate(_text(fields.get("cwd"))),
            prompt=_text(fields.get("prompt"))[-MAX_PROMPT_CHARS:],
            source=_text(fields.get("source")),
            is_continued=fields.get("stop_hook_active") is True,
            messages=tuple(one for one in _list(fields.get("messages")) if isinstance(one, dict)),
            # The prompts of a sub-agent come from an agent, not from the user.
            is_subagent=bool(_text(fields.get("agent_id")))
            or "subagents" in parts
            or bool(parts and parts[-1].startswith("agent-")),
        )


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    """Return a string that can be encoded as UTF-8; empty for other types."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _path(value: object) -> Path | None:
    text = _text(value)
    if not text or "\0" in text:
        return None
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return None
