"""What was typed after `memoriter hook`, and what the host said on standard input: read tolerantly, never refused."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

INSIDE = "MEMORITER_INSIDE_HOOK"
"""Set while a hook works: a session that is started by it is our own, and neither told nor heard."""

TOLD = ("SessionStart", "UserPromptSubmit")
HEARD = ("Stop", "SessionEnd", "PreCompact")
SILENT = ("PreCompact",)
"""Of these Claude Code reads the output as words for its model, even an empty object: here, how to summarise."""
DEADLINE_S = 2.0
MOST_ASKED = 20_000  #: characters of a prompt that are looked at; a longer one is a paste, with the question at its end
_PLACES = ("workspace", "home", "agent", "config")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A hook as it was called."""

    host: str = ""
    event: str = ""
    deadline_s: float = DEADLINE_S
    wait: bool = False  #: end only when all is done, not when the answer is there
    server: str = ""  #: the name under which the host knows our MCP server
    places: Mapping[str, str] = field(default_factory=dict)  #: workspace, home, agent, config
    mistake: str = ""


def parse(arguments: Sequence[str]) -> Wanted | None:
    """The hook that is called; None when something else is, or help is asked for.

    Claude Code is answered whatever else was typed: an option without its value, as when a variable is not set, or one
    that is unknown, must not be taken for wrong usage.
    """
    at = next((n for n, pair in enumerate(pairwise(arguments)) if pair == ("hook", "claude-code")), None)
    if at is None:
        if any(word in ("--help", "-h") for word in arguments):
            return None
        options, words, unknown = _sorted_out(arguments)
        if words[:1] != ["hook"]:
            return None
    else:
        options, strays, unknown = _sorted_out(arguments[:at])
        more, words, unknown_too = _sorted_out(arguments[at + 2 :])
        options, unknown = {**options, **more}, [*unknown, *strays, *unknown_too]
        words = ["hook", "claude-code", *words]
    _, host, event = (*words, "", "")[:3]
    return Wanted(
        host,
        event,
        _seconds(options.get("deadline", "")),
        "wait" in options,
        options.get("server", ""),
        {name: options[name] for name in _PLACES if options.get(name)},
        f"a hook has no {', '.join(unknown)}" if unknown else "",
    )


def _sorted_out(arguments: Sequence[str]) -> tuple[dict[str, str], list[str], list[str]]:
    """The options with their values, the words that are none, and what is unknown or missing."""
    options, words, unknown = dict[str, str](), list[str](), list[str]()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("-"):
            words.append(word)
        elif name == "wait":
            options[name] = "yes"
        elif name in (*_PLACES, "deadline", "server"):
            if not equals and not rest:
                unknown.append(f"value for {word}")
            options[name] = value if equals else rest.pop(0) if rest else ""
        else:
            unknown.append(word)
    return options, words, unknown


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return DEADLINE_S
    return min(max(seconds, 0.05), 600.0) if seconds == seconds else DEADLINE_S  # noqa: PLR0124 - NaN


@dataclass(frozen=True, slots=True)
class Said:
    """What Claude Code says of a moment."""

    event: str
    session: str = ""
    transcript: Path | None = None
    project: str = ""  #: the folder of the repository, or the current one
    prompt: str = ""
    source: str = ""  #: of SessionStart: startup, resume, clear, compact
    again: bool = False  #: a Stop that a hook has made go on
    subagent: bool = False

    @classmethod
    def read(cls, data: bytes, event: str) -> Said:
        """What standard input holds; raises `ValueError` when it is no object."""
        try:
            given = json.loads(data)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        if not isinstance(given, dict):
            raise ValueError("it is no object")  # noqa: TRY004 - one kind of error for one kind of sentence
        return cls._of(given, event)

    @classmethod
    def _of(cls, given: Mapping[str, Any], event: str) -> Said:
        transcript = _path(given.get("transcript_path"))
        parts = transcript.parts if transcript else ()
        return cls(
            event=event or _text(given.get("hook_event_name")),
            session=_text(given.get("session_id"))[:200] or (transcript.stem[:200] if transcript else ""),
            transcript=transcript,
            project=project_of(_text(given.get("cwd"))),
            prompt=_text(given.get("prompt"))[-MOST_ASKED:],
            source=_text(given.get("source")),
            again=given.get("stop_hook_active") is True,
            # A sub-agent's words were said by an agent to an agent.
            subagent=bool(_text(given.get("agent_id")))
            or "subagents" in parts
            or bool(parts and parts[-1].startswith("agent-")),
        )


def _text(value: object) -> str:
    """A text that can be written down; everything else is none."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _path(value: object) -> Path | None:
    text = _text(value)
    if not text or "\0" in text:
        return None
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return None


def project_of(folder: str) -> str:
    """The folder of the repository that holds this one, or else itself; found by names alone."""
    if not folder or "\0" in folder or not os.path.isabs(folder):  # noqa: PTH117
        return ""
    at = Path(os.path.normpath(folder))
    try:
        return str(next((one for one in (at, *at.parents) if (one / ".git").exists()), at))
    except OSError:
        return str(at)
