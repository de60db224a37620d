"""The commands of Anthropic's memory tool, with the rules and messages of Anthropic's reference implementation.

This module does not need the SDK. It takes a command as the model wrote it, and raises `CommandFailed` with a message
for the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import normpath
from typing import Any

from memoriter.errors import MemoriterError
from memoriter.extensions.anthropic.agent_folder import AgentFolder
from memoriter.memory import Memory
from memoriter.text.redaction import redact_part

ROOT = "/memories"
MAX_LINES = 999_999
MAX_LISTED = 1_000
WIDTH = len(str(MAX_LINES))

#: The commands with their required arguments.
COMMANDS: Mapping[str, Mapping[str, type]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}


class CommandFailed(Exception):
    """A command failed and changed nothing."""


class MemoryCommands:
    """The commands for one folder of notes."""

    def __init__(self, memory: Memory, folder: str | None, session: str | None) -> None:
        self._memory = memory
        self._folder = AgentFolder.of(memory, folder, shown=ROOT)
        self._session = session

    def run(self, command: object) -> str:
        """Run a command as the model wrote it."""
        name, arguments = _parse(command)
        if not self._memory.allows(self._session):
            raise CommandFailed("This session may not use the memory.")
        try:
            result: str = getattr(self, name)(**arguments)
        except MemoriterError as error:
            raise CommandFailed(str(error)) from error
        if name != "view":
            self._memory.mark_changed()
        return result

    def view(self, path: str, view_range: Any = None) -> str:
        """Return the lines of a note, or list a folder."""
        inner = _relative(path)
        if self._folder.is_folder(inner):
            return self._listing(path, inner)
        text = self._folder.read(inner)
        lines = redact_part(text, text).split("\n")
        if len(lines) > MAX_LINES:
            raise CommandFailed(f"File {path} exceeds maximum line limit of 999,999 lines.")
        first, last = _range(view_range, len(lines))
        return f"Here's the content of {path} with line numbers:\n{_number_lines(lines, first, last)}"

    def _listing(self, path: str, inner: str) -> str:
        found = self._folder.list_items(inner)
        path = path.rstrip("/")
        lines = [
            f"{_size(item.size)}\t{path}/{item.path}{'/' if item.is_folder else ''}"
            for item in found[:MAX_LISTED]
        ]
        if len(found) > MAX_LISTED:
            lines.append(f"… and {len(found) - MAX_LISTED} more. View a subfolder to see them.")
        total = _size(sum(item.size for item in found if not item.is_folder))
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        return "\n".join([head, f"{total}\t{path}", *lines])

    def create(self, path: str, file_text: str) -> str:
        created, left_out = self._folder.create(_relative(path), file_text)
        return _with_note(f"File created successfully at: {created}", left_out)

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        """Replace text that occurs once in a note."""
        new, left_out = self._folder.clean_text(new_str)
        at = 0

        def change(text: str) -> str:
            nonlocal at
            at = _find_once(text, old_str, path)
            return text[:at] + new + text[at + len(old_str) :]

        text = self._folder.edit(_relative(path), change)
        line, lines = text.count("\n", 0, at), text.split("\n")
        shown = _number_lines(lines, max(0, line - 2), min(len(lines), line + 3))
        head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return _with_note(f"{head}\n{shown}", left_out)

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert lines after a line."""
        new, left_out = self._folder.clean_text(insert_text)

        def change(text: str) -> str:
            lines = text.split("\n")
            if not lines[-1]:
                lines.pop()
            if not 0 <= insert_line <= len(lines):
                raise CommandFailed(
                    f"Invalid `insert_line` parameter: {insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(insert_line, new.rstrip("\n"))
            new_text = "\n".join(lines)
            return new_text if new_text.endswith("\n") else f"{new_text}\n"

        self._folder.edit(_relative(path), change)
        return _with_note(f"The file {path} has been edited.", left_out)

    def delete(self, path: str) -> str:
        self._folder.delete(_relative(path))
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        renamed = self._folder.rename(_relative(old_path), _relative(new_path))
        return f"Successfully renamed {old_path} to {renamed}"

    def clear(self) -> str:
        """Delete every note that the agent wrote."""
        self._folder.clear()
        self._memory.mark_changed()
        return "All memory cleared"


# ---- arguments -----------------------------------------------------------------------------------------------


def _parse(command: object) -> tuple[str, dict[str, Any]]:
    """Return the name of the command and its arguments."""
    if not isinstance(command, Mapping):
        raise CommandFailed("The input must be an object with a `command`.")
    name = command.get("command")
    needed = COMMANDS.get(name) if isinstance(name, str) else None
    if not isinstance(name, str) or needed is None:
        raise CommandFailed(f"Unknown command {name!r}. Supported: {', '.join(COMMANDS)}.")
    for field, kind in needed.items():
        if not isinstance(command.get(field), kind) or isinstance(command.get(field), bool):
            type_name = "an integer" if kind is int else "a string"
            raise CommandFailed(f"{name} requires `{field}`, which must be {type_name}.")
    arguments = {field: command[field] for field in needed}
    if name == "view" and command.get("view_range") is not None:
        arguments["view_range"] = command["view_range"]
    return name, arguments


def _relative(path: str) -> str:
    """Return the path below the root, without ``.`` and ``..``."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise CommandFailed(f"Path must start with {ROOT}, got: {path[:200]}")
    inner = normpath(path[len(ROOT) :].strip("/"))
    if inner.split("/", 1)[0] == "..":
        raise CommandFailed(f"Path {path[:200]} would escape {ROOT} directory")
    return "" if inner == "." else inner


def _range(view_range: Any, total: int) -> tuple[int, int]:
    """Return the range of lines to show, counted from 0. -1 as the second number means the last line."""
    if view_range is None:
        return 0, total
    if not isinstance(view_range, list) or [type(number) for number in view_range] != [int, int]:
        raise CommandFailed(
            "`view_range` must be two integers: the first line, and the last line or -1 for the end."
        )
    first, last = max(1, view_range[0]) - 1, total if view_range[1] == -1 else view_range[1]
    return first, max(first, min(last, total))


def _find_once(text: str, old: str, path: str) -> int:
    """Return the position of a text that occurs exactly once."""
    if not old:
        raise CommandFailed("No replacement was performed: old_str is empty.")
    positions, at = list[int](), text.find(old)
    while at >= 0:
        positions.append(at)
        at = text.find(old, at + 1)
    if not positions:
        raise CommandFailed(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
        )
    if len(positions) > 1:
        lines = ", ".join(str(text.count("\n", 0, position) + 1) for position in positions)
        raise CommandFailed(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
            "Please ensure it is unique"
        )
    return positions[0]


# ---- results -------------------------------------------------------------------------------------------------


def _number_lines(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number + 1:>{WIDTH}}\t{lines[number]}" for number in range(first, last))


def _size(size: float) -> str:
    for unit in ("B", "K", "M"):
        if size < 1024:
            return f"{size:.1f}".removesuffix(".0") + unit
        size /= 1024
    return f"{size:.1f}".removesuffix(".0") + "G"


def _with_note(text: str, left_out: str | None) -> str:
    return f"{text}\n{left_out}" if left_out else text
