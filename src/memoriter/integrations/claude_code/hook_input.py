"""Input of `memoriter hook`: its command line and the JSON that Claude Code writes to standard input.

Both are read tolerantly. A mistake is reported in the log and never rejected.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from memoriter.resident.calls import DEADLINE_S, PROMPT_EVENTS

__all__ = [
    "PROMPT_EVENTS",
    "SESSION_EVENTS",
    "SILENT_EVENTS",
    "HookCommand",
    "HookEvent",
    "find_project",
    "parse",
]

#: Events after which the session is processed.
SESSION_EVENTS = ("Stop", "SessionEnd", "PreCompact")
#: Claude Code passes any output of these events to its model, even an empty object.
SILENT_EVENTS = ("PreCompact",)
#: Characters of a prompt that are used. A longer prompt is pasted text with the question at its end.
MAX_PROMPT_CHARS = 20_000
MAX_SESSION_ID_CHARS = 200

_OPTIONS = ("workspace", "home", "agent", "config")


@dataclass(frozen=True, slots=True)
class HookCommand:
    """The command line of a hook."""

    host: str = ""
    event: str = ""
    deadline_s: float = DEADLINE_S
    #: Exit when all work is finished, not when the answer is printed.
    wait: bool = False
    #: The name of our MCP server in the host's settings.
    server: str = ""
    #: The options workspace, home, agent and config, where given.
    options: Mapping[str, str] = field(default_factory=dict)
    mistake: str = ""


def parse(arguments: Sequence[str]) -> HookCommand | None:
    """Parse the command line; return None if it is not a hook or asks for help.

    Claude Code always gets an answer. An option without a value, as with an unset variable, or an unknown option is
    not treated as wrong usage.
    """
    at = next((n for n, pair in enumerate(pairwise(arguments)) if pair == ("hook", "claude-code")), None)
    if at is None:
        if any(word in ("--help", "-h") for word in arguments):
            return None
        options, words, mistakes = _split_arguments(arguments)
        if words[:1] != ["hook"]:
            return None
    else:
        before, strays, mistakes = _split_arguments(arguments[:at])
        after, words, more_mistakes = _split_arguments(arguments[at + 2 :])
        options, mistakes = {**before, **after}, [*mistakes, *strays, *more_mistakes]
        words = ["hook", "claude-code", *words]
    _, host, event = (*words, "", "")[:3]
    return HookCommand(
        host,
        event,
        _parse_seconds(options.get("deadline", "")),
        "wait" in options,
        options.get("server", ""),
        {name: options[name] for name in _OPTIONS if options.get(name)},
        f"ignored unknown arguments: {', '.join(mistakes)}" if mistakes else "",
    )


def _split_arguments(arguments: Sequence[str]) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the options with their values, the positional arguments, and the unknown or incomplete ones."""
    options, words, mistakes = dict[str, str](), list[str](), list[str]()
    remaining = list(arguments)
    while remaining:
        word = remaining.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("-"):
            words.append(word)
        elif name == "wait":
            options[name] = "yes"
        elif name in (*_OPTIONS, "deadline", "server"):
            if not equals and not remaining:
                mistakes.append(f"{word} without a value")
            options[name] = value if equals else remaining.pop(0) if remaining else ""
        else:
            mistakes.append(word)
    return options, words, mistakes


def _parse_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return DEADLINE_S
    return min(max(seconds, 0.05), 600.0) if seconds == seconds else DEADLINE_S  # noqa: PLR0124 - NaN


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event of Claude Code."""

    name: str
    session: str = ""
    transcript: Path | None = None
    #: The folder of the repository, or the current folder.
    project: str = ""
    prompt: str = ""
    #: The source of a SessionStart: startup, resume, clear, compact or fork.
    source: str = ""
    #: Whether another hook made the agent continue after a Stop.
    is_continued: bool = False
    is_subagent: bool = False

    @classmethod
    def read(cls, data: bytes, name: str) -> HookEvent:
        """Read an event from JSON; raise `ValueError` if it is not an object."""
        try:
            fields = json.loads(data)
        except RecursionError as error:
            raise ValueError("the JSON is nested too deeply") from error
        if not isinstance(fields, dict):
            raise ValueError("the JSON is not an object")  # noqa: TRY004 - callers handle one error type
        return cls._from_fields(fields, name)

    @classmethod
    def _from_fields(cls, fields: Mapping[str, Any], name: str) -> HookEvent:
        transcript = _path(fields.get("transcript_path"))
        parts = transcript.parts if transcript else ()
        session = _text(fields.get("session_id")) or (transcript.stem if transcript else "")
        return cls(
            name=name or _text(fields.get("hook_event_name")),
            session=session[:MAX_SESSION_ID_CHARS],
            transcript=transcript,
            project=find_project(_text(fields.get("cwd"))),
            prompt=_text(fields.get("prompt"))[-MAX_PROMPT_CHARS:],
            source=_text(fields.get("source")),
            is_continued=fields.get("stop_hook_active") is True,
            # The prompts of a sub-agent come from an agent, not from the user.
            is_subagent=bool(_text(fields.get("agent_id")))
            or "subagents" in parts
            or bool(parts and parts[-1].startswith("agent-")),
        )


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


def find_project(folder: str) -> str:
    """Return the repository folder that contains this folder, or the folder itself."""
    if not folder or "\0" in folder or not os.path.isabs(folder):  # noqa: PTH117
        return ""
    at = Path(os.path.normpath(folder))
    try:
        return str(next((path for path in (at, *at.parents) if (path / ".git").exists()), at))
    except OSError:
        return str(at)
