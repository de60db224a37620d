"""What Claude Code's settings say of us: the hooks and the MCP server, put into a text and taken out of it again.

Only texts are looked at here; files are `installing`'s duty.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from recollect.doors.hooks import json_text
from recollect.doors.hooks.json_text import Container
from recollect.errors import ConfigError

EMPTY = "{}\n"

#: Each moment with what its hook says beside the command. Claude Code waits for the others, but not for Stop. The time
#: of SessionEnd also raises what it grants all hooks at its end, which is 1.5 s otherwise.
MOMENTS: Mapping[str, Mapping[str, object]] = {
    "SessionStart": {"timeout": 10},
    "UserPromptSubmit": {"timeout": 10},
    "Stop": {"timeout": 30, "async": True},
    "PreCompact": {"timeout": 15},
    "SessionEnd": {"timeout": 10},
}

_PROGRAM = re.compile(r"recollect(\.exe)?", re.IGNORECASE)
_PYTHON = re.compile(r"python[\d.]*(\.exe)?", re.IGNORECASE)
_MORE = frozenset("();|&\n")  #: by these a shell goes on with another command; a redirection is none


# ---- hooks ----------------------------------------------------------------------------------------------------


def hooks_of(command: Callable[[str], str]) -> dict[str, dict[str, Any]]:
    """For each moment the group of hooks that we add."""
    return {
        moment: {"hooks": [{"type": "command", "command": command(moment), **more}]}
        for moment, more in MOMENTS.items()
    }


def with_hooks(text: str, groups: Mapping[str, object]) -> str:
    """The settings with our hooks, each beside those of its moment that are there."""
    for moment, group in groups.items():
        whole = _root(text)
        hooks = whole.get("hooks")
        if hooks is None:
            text = json_text.added(text, whole, {moment: [group]}, "hooks")
            continue
        held = _container(text, whole, hooks, "{", "hooks must be an object of moments")
        listed = held.get(moment)
        if listed is None:
            text = json_text.added(text, held, [group], moment)
        else:
            of_moment = _container(text, held, listed, "[", f"hooks.{moment} must be a list")
            text = json_text.added(text, of_moment, group)
    return text


def without_hooks(text: str, before: str | None) -> str:
    """The settings without our hooks; what held nothing but them goes too, unless it was there before."""
    had = _value(before or EMPTY).get("hooks")
    given = text
    moments = _value(text).get("hooks")
    for moment in moments if isinstance(moments, dict) else ():
        while (shorter := _one_less(text, moment, isinstance(had, dict) and moment in had)) is not None:
            text = shorter
    whole = _root(text)
    hooks = whole.get("hooks")
    if hooks is not None and hooks.value == {} and had is None and text != given:
        text = json_text.removed(text, whole, hooks)
    return text


def _one_less(text: str, moment: str, keep: bool) -> str | None:
    """The settings with one hook of ours less in this moment; None when there is none."""
    whole = _root(text)
    hooks = whole.get("hooks")
    if hooks is None or not isinstance(hooks.value, dict):
        return None
    held = json_text.inside(text, whole, hooks)
    listed = held.get(moment)
    if listed is None or not isinstance(listed.value, list):
        return None
    of_moment = json_text.inside(text, held, listed)
    for group in of_moment.elements:
        if not isinstance(group.value, dict) or not isinstance(group.value.get("hooks"), list):
            continue
        ours = [is_ours(hook) for hook in group.value["hooks"]]
        if not any(ours):
            continue
        if not all(ours):
            inner = json_text.inside(text, of_moment, group)
            member = inner.get("hooks")
            assert member is not None
            commands = json_text.inside(text, inner, member)
            return json_text.removed(text, commands, commands.elements[ours.index(True)])
        if len(of_moment.elements) == 1 and not keep:
            return json_text.removed(text, held, listed)
        return json_text.removed(text, of_moment, group)
    return None


def is_ours(hook: object) -> bool:
    """Whether a hook of Claude Code's starts us and nothing else, however it was edited since."""
    command = hook.get("command") if isinstance(hook, dict) else None
    if not isinstance(command, str):
        return False
    parts = shlex.shlex(command.strip(), posix=True, punctuation_chars="();<>|&\n")
    parts.whitespace, parts.whitespace_split, parts.commenters = " \t\r", True, ""
    try:
        words = list(parts)
    except ValueError:
        return False
    if any(word and set(word) <= _MORE for word in words):
        return False  # somebody has put a command of theirs beside ours, so the line is theirs
    return _starts_us(words) and ("hook", "claude-code") in itertools.pairwise(words)


def _starts_us(words: Sequence[str]) -> bool:
    name = PurePath(words[0].replace("\\", "/")).name if words else ""
    if _PYTHON.fullmatch(name):
        return list(words[1:3]) == ["-m", "recollect"]
    return _PROGRAM.fullmatch(name) is not None


# ---- the MCP server -------------------------------------------------------------------------------------------


def with_server(text: str, name: str, started: Sequence[str]) -> str:
    """The settings with our server; one of this name that is there stays, whoever's it is."""
    whole = _root(text)
    server = {"type": "stdio", "command": started[0], "args": list(started[1:])}
    servers = whole.get("mcpServers")
    if servers is None:
        return json_text.added(text, whole, {name: server}, "mcpServers")
    held = _container(text, whole, servers, "{", "mcpServers must be an object of servers")
    return text if held.get(name) else json_text.added(text, held, server, name)


def without_server(text: str, name: str, before: str) -> str:
    """The settings without our server, if it was not there before and starts us."""
    had = _value(before).get("mcpServers")
    whole = _root(text)
    servers = whole.get("mcpServers")
    if servers is None or not isinstance(servers.value, dict) or (isinstance(had, dict) and name in had):
        return text
    held = json_text.inside(text, whole, servers)
    server = held.get(name)
    if server is None or not is_our_server(server.value):
        return text
    if len(held.elements) == 1 and had is None:
        return json_text.removed(text, whole, servers)
    return json_text.removed(text, held, server)


def is_our_server(server: object) -> bool:
    """Whether an MCP server is ours."""
    if not isinstance(server, dict) or not isinstance(server.get("command"), str):
        return False
    arguments = server.get("args")
    words = [server["command"], *(arguments if isinstance(arguments, list) else [])]
    return all(isinstance(word, str) for word in words) and _starts_us(words) and "mcp" in words


# ---- reading --------------------------------------------------------------------------------------------------


def _root(text: str) -> Container:
    try:
        return json_text.root(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"it is not JSON that can be changed safely ({error})") from error


def _value(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _container(
    text: str, holder: Container, element: json_text.Element, bracket: str, otherwise: str
) -> Container:
    if text[element.at] != bracket:
        raise ConfigError(otherwise)
    return json_text.inside(text, holder, element)
