"""The parts of a host's settings that are ours: an MCP server, hooks, or a file of our own."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memoriter.errors import ConfigError
from memoriter.extensions.clients import json_text
from memoriter.files import platform

#: Seconds that a host waits for a hook of each event.
HOOK_TIMEOUTS = {"SessionStart": 10, "UserPromptSubmit": 10, "Stop": 30, "PreCompact": 15, "SessionEnd": 3}
#: What hosts with hooks start: they get the tools for entries too, as the plugin of Claude Code does.
FULL = ("mcp", "--slot", "memory-full")


class Part(Protocol):
    """Our part of one file."""

    @property
    def file(self) -> str:
        """The file, relative to the folder of the host."""

    def add(self, text: str, command: Sequence[str]) -> str:
        """Return the text of the file with our part. ``command`` starts memoriter with its options."""

    def remove(self, text: str) -> str:
        """Return the text without our part."""

    def is_in(self, text: str) -> bool:
        """Return whether the text contains our part."""


@dataclass(frozen=True, slots=True)
class JsonServer:
    """Our MCP server as a member of a JSON object."""

    file: str
    path: tuple[str, ...] = ("mcpServers", "memoriter")
    fields: Mapping[str, object] = field(default_factory=dict)
    arguments: tuple[str, ...] = ("mcp",)
    #: Whether the command is one list, with its arguments.
    is_list: bool = False

    def add(self, text: str, command: Sequence[str]) -> str:
        words = [*command, *self.arguments]
        started = {"command": words} if self.is_list else {"command": words[0], "args": words[1:]}
        server = {**self.fields, **started}
        return json_text.add(self.remove(text), self.path, server)

    def remove(self, text: str) -> str:
        return json_text.remove(text, self.path)

    def is_in(self, text: str) -> bool:
        return json_text.value_at(text, self.path) is not None


@dataclass(frozen=True, slots=True)
class TomlServer:
    """Our MCP server as a table at the end of a TOML file."""

    file: str
    fields: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ("mcp",)

    def add(self, text: str, command: Sequence[str]) -> str:
        """Add the table. Raises `ConfigError` if the result is not TOML."""
        program, *arguments = (json.dumps(word, ensure_ascii=False) for word in (*command, *self.arguments))
        line = "\r\n" if "\r\n" in text else "\n"
        lines = (
            "[mcp_servers.memoriter]",
            f"command = {program}",
            f"args = [{', '.join(arguments)}]",
            *self.fields,
        )
        before = self.remove(text)
        before += line if before and not before.endswith("\n") else ""
        added = f"{before}{line if before else ''}{line.join(lines)}{line}"
        try:
            tomllib.loads(added.removeprefix("\ufeff"))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"it is not TOML: {error}") from error
        return added

    def remove(self, text: str) -> str:
        """Remove the table and those inside it."""
        table = r"\[mcp_servers\.memoriter(?:\.[^\]\n]*)?\][^\n]*(?:\n(?!\[)[^\n]*)*"
        return re.sub(rf"(?:\r?\n)?^{table}", "", text, flags=re.MULTILINE)

    def is_in(self, text: str) -> bool:
        return self.remove(text) != text


@dataclass(frozen=True, slots=True)
class JsonHooks:
    """Our hooks as elements of the lists of a JSON object, one list for each event."""

    file: str
    host: str
    #: The events of the host, with our name of each.
    events: Mapping[str, str]
    #: How many units of a timeout are one second.
    timeout_unit: int = 1

    def add(self, text: str, command: Sequence[str]) -> str:
        text = self.remove(text)
        for event, ours in self.events.items():
            hook = {
                "type": "command",
                "command": hook_command(command, self.host, ours, in_powershell=True),
                "timeout": HOOK_TIMEOUTS[ours] * self.timeout_unit,
            }
            text = json_text.add(text, ("hooks", event), {"hooks": [hook]}, to_list=True)
        return text

    def remove(self, text: str) -> str:
        """Remove our hooks. Those of other programs stay."""
        for event in self.events:
            text = json_text.remove(text, ("hooks", event), self._is_ours)
        return text

    def is_in(self, text: str) -> bool:
        found = (json_text.value_at(text, ("hooks", event)) for event in self.events)
        return all(listed is not None and self._is_ours(listed) for listed in found)

    def _is_ours(self, element: str) -> bool:
        return "memoriter" in element and f" hook {self.host} " in element


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that is ours as a whole."""

    file: str
    #: Returns the text of the file for the command that starts memoriter.
    text: Callable[[Sequence[str]], str]

    def add(self, text: str, command: Sequence[str]) -> str:
        """Return the file. Raises `ConfigError` if another program wrote it."""
        if self.remove(text):
            raise ConfigError("it was not written by memoriter")
        return self.text(command)

    def remove(self, text: str) -> str:
        """Remove everything, if the file is ours."""
        return "" if self.is_in(text) else text

    def is_in(self, text: str) -> bool:
        return "memoriter" in text


def hook_command(command: Sequence[str], host: str, event: str, *, in_powershell: bool = False) -> str:
    """Return the command line of a hook for a shell. On Windows, Codex and Gemini CLI start PowerShell."""
    line = platform.hook_command([*command, "hook", host, event, "--server", "memoriter"])
    return f"& {line}" if in_powershell and line.startswith('"') else line
