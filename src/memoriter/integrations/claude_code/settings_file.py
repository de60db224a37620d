"""What Claude Code's settings say of us: the hooks and the MCP server, put into a text and taken out of it again.

Only texts are looked at here; files are `installing`'s duty.
"""

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

_SPACE = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"^[{\[][ \t]*\r?\n([ \t]+)", re.MULTILINE)
_decoder = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Element:
    """A member of an object or an item of an array, with its place in the text."""

    start: int
    end: int
    value: Any
    at: int  #: where the value begins; for an item, the start
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """An object or an array, with its place in the text."""

    start: int  #: of the opening bracket
    end: int  #: after the closing one
    depth: int
    elements: tuple[Element, ...]

    def get(self, key: str) -> Element | None:
        """The member of this name; of several the last, as JSON is read."""
        return next((one for one in reversed(self.elements) if one.key == key), None)


def root(text: str) -> Container:
    """The object that the text is; raises `ValueError` when it is none."""
    json.loads(text)  # whole and nothing else
    start = _skip(text, 0)
    if text[start] != "{":
        raise ValueError("it is no object")
    return container(text, start, 0)


def container(text: str, start: int, depth: int) -> Container:
    """The object or array that begins here."""
    is_object = text[start] == "{"
    elements, at = list[Element](), _skip(text, start + 1)
    while text[at] not in "}]":
        begun, key = at, None
        if is_object:
            key, at = json.decoder.scanstring(text, at + 1)  # type: ignore[attr-defined]
            at = _skip(text, _skip(text, at) + 1)  # past the colon
        value, end = _decoder.raw_decode(text, at)
        elements.append(Element(begun, end, value, at, key))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return Container(start, at + 1, depth, tuple(elements))


def inside(text: str, holder: Container, element: Element) -> Container:
    """The container that is an element's value."""
    return container(text, element.at, holder.depth + 1)


def added(text: str, holder: Container, value: object, key: str | None = None) -> str:
    """The text with one more element at the end of a container, written as the text around it is."""
    style = _Style.of(text)
    if holder.elements and "\n" not in text[holder.start : holder.end]:
        style = _Style(None, style.newline)  # it stands on one line
    element = style.written(value, key, holder.depth + 1)
    if holder.elements:
        at = holder.elements[-1].end
        return text[:at] + "," + style.gap(holder.depth + 1) + element + text[at:]
    whole = style.first(holder.depth + 1) + element + style.first(holder.depth)
    return text[: holder.start + 1] + whole + text[holder.end - 1 :]


def removed(text: str, holder: Container, element: Element) -> str:
    """The text without an element of a container, and without the comma that joined it."""
    place = holder.elements.index(element)
    if len(holder.elements) == 1:
        return text[: holder.start + 1] + text[holder.end - 1 :]
    if place == 0:
        return text[: element.start] + text[holder.elements[1].start :]
    return text[: holder.elements[place - 1].end] + text[element.end :]


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


@dataclass(frozen=True, slots=True)
class _Style:
    """How a text is laid out: on one line, or over lines with an indent."""

    indent: str | None
    newline: str

    @classmethod
    def of(cls, text: str) -> _Style:
        newline = "\r\n" if "\r\n" in text else "\n"
        if text.strip() in ("", "{}"):
            return cls("  ", newline)
        found = _INDENT.search(text)
        if found:
            return cls(found[1], newline)
        return cls("  " if "\n" in text.strip() else None, newline)

    def first(self, depth: int) -> str:
        """What stands between a bracket and its element."""
        return "" if self.indent is None else self.newline + self.indent * depth

    def gap(self, depth: int) -> str:
        """What stands between a comma and the next element."""
        return " " if self.indent is None else self.first(depth)

    def written(self, value: object, key: str | None, depth: int) -> str:
        lines = json.dumps(value, indent=self.indent, ensure_ascii=False).split("\n")
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        return name + f"{self.newline}{(self.indent or '') * depth}".join(lines)


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

_PROGRAM = re.compile(r"memoriter(\.exe)?", re.IGNORECASE)
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
            text = added(text, whole, {moment: [group]}, "hooks")
            continue
        held = _container(text, whole, hooks, "{", "hooks must be an object of moments")
        listed = held.get(moment)
        if listed is None:
            text = added(text, held, [group], moment)
        else:
            of_moment = _container(text, held, listed, "[", f"hooks.{moment} must be a list")
            text = added(text, of_moment, group)
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
        text = removed(text, whole, hooks)
    return text


def _one_less(text: str, moment: str, keep: bool) -> str | None:
    """The settings with one hook of ours less in this moment; None when there is none."""
    whole = _root(text)
    hooks = whole.get("hooks")
    if hooks is None or not isinstance(hooks.value, dict):
        return None
    held = inside(text, whole, hooks)
    listed = held.get(moment)
    if listed is None or not isinstance(listed.value, list):
        return None
    of_moment = inside(text, held, listed)
    for group in of_moment.elements:
        if not isinstance(group.value, dict) or not isinstance(group.value.get("hooks"), list):
            continue
        ours = [is_ours(hook) for hook in group.value["hooks"]]
        if not any(ours):
            continue
        if not all(ours):
            inner = inside(text, of_moment, group)
            member = inner.get("hooks")
            assert member is not None
            commands = inside(text, inner, member)
            return removed(text, commands, commands.elements[ours.index(True)])
        if len(of_moment.elements) == 1 and not keep:
            return removed(text, held, listed)
        return removed(text, of_moment, group)
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
        return list(words[1:3]) == ["-m", "memoriter"]
    return _PROGRAM.fullmatch(name) is not None


# ---- the MCP server -------------------------------------------------------------------------------------------


def with_server(text: str, name: str, started: Sequence[str]) -> str:
    """The settings with our server; one of this name that is there stays, whoever's it is."""
    whole = _root(text)
    server = {"type": "stdio", "command": started[0], "args": list(started[1:])}
    servers = whole.get("mcpServers")
    if servers is None:
        return added(text, whole, {name: server}, "mcpServers")
    held = _container(text, whole, servers, "{", "mcpServers must be an object of servers")
    return text if held.get(name) else added(text, held, server, name)


def without_server(text: str, name: str, before: str) -> str:
    """The settings without our server, if it was not there before and starts us."""
    had = _value(before).get("mcpServers")
    whole = _root(text)
    servers = whole.get("mcpServers")
    if servers is None or not isinstance(servers.value, dict) or (isinstance(had, dict) and name in had):
        return text
    held = inside(text, whole, servers)
    server = held.get(name)
    if server is None or not is_our_server(server.value):
        return text
    if len(held.elements) == 1 and had is None:
        return removed(text, whole, servers)
    return removed(text, held, server)


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
        return root(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"it is not JSON that can be changed safely ({error})") from error


def _value(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _container(text: str, holder: Container, element: Element, bracket: str, otherwise: str) -> Container:
    if text[element.at] != bracket:
        raise ConfigError(otherwise)
    return inside(text, holder, element)
