"""Add our hooks and MCP server to the text of Claude Code's settings, and remove them, without changing other text."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from memoriter.errors import ConfigError

EMPTY = "{}\n"

#: The events with the options of their hooks. Claude Code waits for all of them except Stop. The timeout of SessionEnd
#: also raises the time that Claude Code grants all hooks when it exits (1.5 s by default).
EVENTS: Mapping[str, Mapping[str, object]] = {
    "SessionStart": {"timeout": 10},
    "UserPromptSubmit": {"timeout": 10},
    "Stop": {"timeout": 30, "async": True},
    "PreCompact": {"timeout": 15},
    "SessionEnd": {"timeout": 10},
}

_PROGRAM = re.compile(r"memoriter(\.exe)?", re.IGNORECASE)
_PYTHON = re.compile(r"python[\d.]*(\.exe)?", re.IGNORECASE)
#: Characters after which a shell runs another command. A redirection is not one.
_SEPARATORS = frozenset("();|&\n")


# ---- hooks ----------------------------------------------------------------------------------------------------


def hook_groups(command: Callable[[str], str]) -> dict[str, dict[str, Any]]:
    """Return the group of hooks to add for each event."""
    return {
        event: {"hooks": [{"type": "command", "command": command(event), **options}]}
        for event, options in EVENTS.items()
    }


def add_hooks(text: str, groups: Mapping[str, object]) -> str:
    """Return the settings with our hooks added after the existing ones of each event."""
    for event, group in groups.items():
        settings = _parse(text)
        hooks = settings.get("hooks")
        if hooks is None:
            text = _insert(text, settings, {event: [group]}, "hooks")
            continue
        events = _enter_checked(text, settings, hooks, "{", "`hooks` must be an object of events")
        listed = events.get(event)
        if listed is None:
            text = _insert(text, events, [group], event)
        else:
            of_event = _enter_checked(text, events, listed, "[", f"`hooks.{event}` must be a list")
            text = _insert(text, of_event, group)
    return text


def remove_hooks(text: str, before: str | None) -> str:
    """Return the settings without our hooks. A container that becomes empty is removed, unless it was there before."""
    hooks_before = _load_object(before or EMPTY).get("hooks")
    original = text
    events = _load_object(text).get("hooks")
    for event in events if isinstance(events, dict) else ():
        keep_list = isinstance(hooks_before, dict) and event in hooks_before
        while (shorter := _remove_one_hook(text, event, keep_list)) is not None:
            text = shorter
    settings = _parse(text)
    hooks = settings.get("hooks")
    if hooks is not None and hooks.value == {} and hooks_before is None and text != original:
        text = _delete(text, settings, hooks)
    return text


def _remove_one_hook(text: str, event: str, keep_list: bool) -> str | None:
    """Return the settings without the first memoriter hook for this event; None if there is none."""
    settings = _parse(text)
    hooks = settings.get("hooks")
    if hooks is None or not isinstance(hooks.value, dict):
        return None
    events = _enter(text, settings, hooks)
    listed = events.get(event)
    if listed is None or not isinstance(listed.value, list):
        return None
    groups = _enter(text, events, listed)
    for group in groups.elements:
        if not isinstance(group.value, dict) or not isinstance(group.value.get("hooks"), list):
            continue
        ours = [is_our_hook(hook) for hook in group.value["hooks"]]
        if not any(ours):
            continue
        if not all(ours):
            members = _enter(text, groups, group)
            member = members.get("hooks")
            assert member is not None
            commands = _enter(text, members, member)
            return _delete(text, commands, commands.elements[ours.index(True)])
        if len(groups.elements) == 1 and not keep_list:
            return _delete(text, events, listed)
        return _delete(text, groups, group)
    return None


def is_our_hook(hook: object) -> bool:
    """Return whether a hook runs memoriter and nothing else, even if its options were edited."""
    command = hook.get("command") if isinstance(hook, dict) else None
    if not isinstance(command, str):
        return False
    lexer = shlex.shlex(command.strip(), posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        words = list(lexer)
    except ValueError:
        return False
    if any(word and set(word) <= _SEPARATORS for word in words):
        return False  # the user added another command, so the line is theirs
    return _starts_memoriter(words) and ("hook", "claude-code") in itertools.pairwise(words)


def _starts_memoriter(words: Sequence[str]) -> bool:
    name = PurePath(words[0].replace("\\", "/")).name if words else ""
    if _PYTHON.fullmatch(name):
        return list(words[1:3]) == ["-m", "memoriter"]
    return _PROGRAM.fullmatch(name) is not None


# ---- MCP server -----------------------------------------------------------------------------------------------


def add_server(text: str, name: str, command: Sequence[str]) -> str:
    """Return the settings with our server. An existing server of this name is kept."""
    settings = _parse(text)
    server = {"type": "stdio", "command": command[0], "args": list(command[1:])}
    servers = settings.get("mcpServers")
    if servers is None:
        return _insert(text, settings, {name: server}, "mcpServers")
    listed = _enter_checked(text, settings, servers, "{", "`mcpServers` must be an object of servers")
    return text if listed.get(name) else _insert(text, listed, server, name)


def remove_server(text: str, name: str, before: str) -> str:
    """Return the settings without our server, unless it was there before or does not start memoriter."""
    servers_before = _load_object(before).get("mcpServers")
    settings = _parse(text)
    servers = settings.get("mcpServers")
    was_there = isinstance(servers_before, dict) and name in servers_before
    if servers is None or not isinstance(servers.value, dict) or was_there:
        return text
    listed = _enter(text, settings, servers)
    server = listed.get(name)
    if server is None or not _is_our_server(server.value):
        return text
    if len(listed.elements) == 1 and servers_before is None:
        return _delete(text, settings, servers)
    return _delete(text, listed, server)


def _is_our_server(server: object) -> bool:
    if not isinstance(server, dict) or not isinstance(server.get("command"), str):
        return False
    arguments = server.get("args")
    words = [server["command"], *(arguments if isinstance(arguments, list) else [])]
    return all(isinstance(word, str) for word in words) and _starts_memoriter(words) and "mcp" in words


# ---- JSON text ------------------------------------------------------------------------------------------------

_SPACE = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"^[{\[][ \t]*\r?\n([ \t]+)", re.MULTILINE)
_decoder = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Element:
    """A member of an object or an item of an array, with its position in the text."""

    start: int
    end: int
    value: Any
    #: Where the value starts. For an item this is ``start``.
    value_start: int
    key: str | None = None


@dataclass(frozen=True, slots=True)
class _Container:
    """An object or an array, with its position in the text."""

    start: int
    end: int
    depth: int
    elements: tuple[_Element, ...]

    def get(self, key: str) -> _Element | None:
        """Return the member of this name, the last one if there are several, as JSON parsers do."""
        return next((element for element in reversed(self.elements) if element.key == key), None)


def _parse(text: str) -> _Container:
    try:
        json.loads(text)  # rejects everything that is not exactly one JSON value
        start = _skip_space(text, 0)
        if text[start] != "{":
            raise ConfigError("it is not a JSON object")
        return _scan(text, start, 0)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"it is not valid JSON ({error})") from error


def _load_object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _scan(text: str, start: int, depth: int) -> _Container:
    """Return the object or array that starts here. The text must be valid JSON."""
    is_object = text[start] == "{"
    elements, at = list[_Element](), _skip_space(text, start + 1)
    while text[at] not in "}]":
        element_start, key = at, None
        if is_object:
            key, at = _decoder.raw_decode(text, at)
            at = _skip_space(text, _skip_space(text, at) + 1)  # skip the colon
        value, end = _decoder.raw_decode(text, at)
        elements.append(_Element(element_start, end, value, at, key))
        at = _skip_space(text, end)
        if text[at] == ",":
            at = _skip_space(text, at + 1)
    return _Container(start, at + 1, depth, tuple(elements))


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _enter(text: str, holder: _Container, element: _Element) -> _Container:
    return _scan(text, element.value_start, holder.depth + 1)


def _enter_checked(
    text: str, holder: _Container, element: _Element, bracket: str, problem: str
) -> _Container:
    if text[element.value_start] != bracket:
        raise ConfigError(problem)
    return _enter(text, holder, element)


def _insert(text: str, holder: _Container, value: object, key: str | None = None) -> str:
    """Return the text with one more element at the end of a container, in the style of the text."""
    style = _Style.of(text)
    if holder.elements and "\n" not in text[holder.start : holder.end]:
        style = _Style(None, style.newline)  # the container is on one line
    element = style.format(value, key, holder.depth + 1)
    if holder.elements:
        at = holder.elements[-1].end
        return text[:at] + "," + style.after_comma(holder.depth + 1) + element + text[at:]
    content = style.line_start(holder.depth + 1) + element + style.line_start(holder.depth)
    return text[: holder.start + 1] + content + text[holder.end - 1 :]


def _delete(text: str, holder: _Container, element: _Element) -> str:
    """Return the text without an element of a container and its comma."""
    position = holder.elements.index(element)
    if len(holder.elements) == 1:
        return text[: holder.start + 1] + text[holder.end - 1 :]
    if position == 0:
        return text[: element.start] + text[holder.elements[1].start :]
    return text[: holder.elements[position - 1].end] + text[element.end :]


@dataclass(frozen=True, slots=True)
class _Style:
    """The layout of a text: on one line, or indented."""

    indent: str | None
    newline: str

    @classmethod
    def of(cls, text: str) -> _Style:
        newline = "\r\n" if "\r\n" in text else "\n"
        if text.strip() in ("", "{}"):
            return cls("  ", newline)
        match = _INDENT.search(text)
        if match:
            return cls(match[1], newline)
        return cls("  " if "\n" in text.strip() else None, newline)

    def line_start(self, depth: int) -> str:
        return "" if self.indent is None else self.newline + self.indent * depth

    def after_comma(self, depth: int) -> str:
        return " " if self.indent is None else self.line_start(depth)

    def format(self, value: object, key: str | None, depth: int) -> str:
        lines = json.dumps(value, indent=self.indent, ensure_ascii=False).split("\n")
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        return name + f"{self.newline}{(self.indent or '') * depth}".join(lines)
