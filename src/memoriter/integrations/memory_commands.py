"""The commands of Anthropic's memory tool, over a shelf of notes: the reference's rules and words.

It knows nothing of the SDK: a command comes in as the model wrote it, and whatever is wrong with it is a
`WrongCommand` with a sentence for the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memoriter.errors import MemoriterError

if TYPE_CHECKING:
    from memoriter.memory import Memory

ROOT = "/memories"
MAX_LINES = 999_999
MAX_LISTED = 1_000
WIDTH = len(str(MAX_LINES))

COMMANDS: Mapping[str, Mapping[str, type]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}
"""Every command with what it needs."""


class WrongCommand(Exception):
    """A command that was not carried out; nothing has changed."""


class MemoryCommands:
    """The commands over one shelf of notes."""

    def __init__(self, memory: Memory, folder: str, session_key: str | None) -> None:
        self._memory = memory
        self._shelf = memory.agent_folder(folder, shown=ROOT)
        self._session_key = session_key

    def run(self, given: object) -> str:
        """Run a command as the model wrote it."""
        name, arguments = _checked(given)
        if not self._memory.allows(self._session_key):
            raise WrongCommand("This session may not use this memory.")
        try:
            done: str = getattr(self, name)(**arguments)
        except MemoriterError as error:
            raise WrongCommand(str(error)) from error
        if name != "view":
            self._memory.mark_changed()
        return done

    def view(self, path: str, view_range: Any = None) -> str:
        """The lines of a note, or what a folder holds."""
        inner = _inside(path)
        if self._shelf.is_folder(inner):
            return self._listing(path, inner)
        lines = self._shelf.read(inner).split("\n")
        if len(lines) > MAX_LINES:
            raise WrongCommand(f"File {path} exceeds maximum line limit of 999,999 lines.")
        first, last = _range(view_range, len(lines))
        return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first, last)}"

    def _listing(self, path: str, inner: str) -> str:
        found = self._shelf.listed(inner)
        path = path.rstrip("/")
        lines = [
            f"{_size(one.size)}\t{path}/{one.path}{'/' if one.is_folder else ''}"
            for one in found[:MAX_LISTED]
        ]
        more = [f"… and {len(found) - MAX_LISTED} more: view a folder"] if len(found) > MAX_LISTED else []
        total = _size(sum(one.size for one in found if not one.is_folder))
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        return "\n".join([head, f"{total}\t{path}", *lines, *more])

    def create(self, path: str, file_text: str) -> str:
        """Make a new note."""
        made, left_out = self._shelf.create(_inside(path), file_text)
        return _said(f"File created successfully at: {made}", left_out)

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        """Replace a text that stands in a note once."""
        new, left_out = self._shelf.kept(new_str)
        at = 0

        def change(text: str) -> str:
            nonlocal at
            at = _only_place(text, old_str, path)
            return text[:at] + new + text[at + len(old_str) :]

        text = self._shelf.edit(_inside(path), change)
        line, lines = text.count("\n", 0, at), text.split("\n")
        shown = _numbered(lines, max(0, line - 2), min(len(lines), line + 3))
        head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return _said(f"{head}\n{shown}", left_out)

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert lines after the given one."""
        new, left_out = self._shelf.kept(insert_text)

        def change(text: str) -> str:
            lines = text.split("\n")
            if not lines[-1]:
                lines.pop()
            if not 0 <= insert_line <= len(lines):
                raise WrongCommand(
                    f"Invalid `insert_line` parameter: {insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(insert_line, new.rstrip("\n"))
            new_text = "\n".join(lines)
            return new_text if new_text.endswith("\n") else f"{new_text}\n"

        self._shelf.edit(_inside(path), change)
        return _said(f"The file {path} has been edited.", left_out)

    def delete(self, path: str) -> str:
        """Delete a note, or a folder."""
        self._shelf.delete(_inside(path))
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Give a note, or a folder, another name."""
        made = self._shelf.rename(_inside(old_path), _inside(new_path))
        return f"Successfully renamed {old_path} to {made}"

    def clear(self) -> str:
        """Delete every note of the agent's own."""
        self._shelf.clear()
        self._memory.mark_changed()
        return "All memory cleared"


# ---- what the model wrote ------------------------------------------------------------------------------------


def _checked(given: object) -> tuple[str, dict[str, Any]]:
    """The command and its arguments."""
    if not isinstance(given, Mapping):
        raise WrongCommand("The input must be an object with a command.")
    name = given.get("command")
    needed = COMMANDS.get(name) if isinstance(name, str) else None
    if not isinstance(name, str) or needed is None:
        raise WrongCommand(f"There is no command {name!r}; there are: {', '.join(COMMANDS)}.")
    for field, kind in needed.items():
        if not isinstance(given.get(field), kind) or isinstance(given.get(field), bool):
            what = "a whole number" if kind is int else "a text"
            raise WrongCommand(f"{name} needs {field}, which must be {what}.")
    arguments = {field: given[field] for field in needed}
    if name == "view" and given.get("view_range") is not None:
        arguments["view_range"] = given["view_range"]
    return name, arguments


def _inside(path: str) -> str:
    """The path from the shelf down."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise WrongCommand(f"Path must start with {ROOT}, got: {path[:200]}")
    return path[len(ROOT) :].strip("/")


def _range(view_range: Any, total: int) -> tuple[int, int]:
    """Which lines are shown, counted from 0; -1 as the second means the last."""
    if view_range is None:
        return 0, total
    if not isinstance(view_range, list) or [type(one) for one in view_range] != [int, int]:
        raise WrongCommand(
            "view_range must be two whole numbers: the first line and the last, or -1 for the end."
        )
    first, last = max(1, view_range[0]) - 1, total if view_range[1] == -1 else view_range[1]
    return first, max(first, min(last, total))


def _only_place(text: str, old: str, path: str) -> int:
    """Where a text stands, if it stands there once."""
    if not old:
        raise WrongCommand("No replacement was performed: old_str is empty.")
    places, at = list[int](), text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + 1)
    if not places:
        raise WrongCommand(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
        )
    if len(places) > 1:
        lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places)
        raise WrongCommand(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
            "Please ensure it is unique"
        )
    return places[0]


# ---- what the model reads ------------------------------------------------------------------------------------


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number + 1:>{WIDTH}}\t{lines[number]}" for number in range(first, last))


def _size(size: float) -> str:
    for unit in ("B", "K", "M"):
        if size < 1024:
            return f"{size:.1f}".removesuffix(".0") + unit
        size /= 1024
    return f"{size:.1f}".removesuffix(".0") + "G"


def _said(text: str, left_out: str | None) -> str:
    return f"{text}\n{left_out}" if left_out else text
