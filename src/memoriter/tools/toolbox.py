"""`Toolbox`: the tools of one session, ready to be called by an agent.

A call never raises. A failure is in the result, as a sentence for the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from memoriter import logs
from memoriter.errors import (
    BadArgument,
    EditConflict,
    MemoriterError,
    NotFound,
    PathRefused,
    StoreUnavailable,
    message_of,
)
from memoriter.memory import Memory, parts_of
from memoriter.records import ProgressCallback
from memoriter.sentences import Sentence, codes
from memoriter.tools.entry_tools import ENTRY_TOOLS
from memoriter.tools.notes import memory_save
from memoriter.tools.search import memory_get, memory_search, memory_stats
from memoriter.tools.tool import Access, Call, Outcome, Result, Tool, grants

log = logs.get("tools")

#: The keys of a result that hold messages of memoriter itself.
MESSAGE_KEYS = frozenset({"error", "code", "details", "degraded", "note"})
#: The most characters of an error message, which may quote an argument.
MAX_ERROR_CHARS = 500

TOOLS: Mapping[str, Tool] = {
    tool.name: tool for tool in (memory_search, memory_get, memory_save, memory_stats, *ENTRY_TOOLS)
}
"""The tools that agents call, by name."""


class Toolbox:
    """The tools of one session, ready to be called.

    ``memory`` is a `Memory`, or a function that returns one for each call. If the function raises, the tools answer
    that memory is disabled, and why. ``access`` says what the caller may do. A caller below `admin` does not speak
    for the owner and does not see the paths of folders. ``codes`` adds the code of each sentence to a result.
    ``interface`` names the interface in the ledger of recalls.
    """

    def __init__(
        self,
        memory: Memory | Callable[[], Memory],
        *,
        session: str | None = None,
        names: Collection[str] | None = None,
        tools: Mapping[str, Tool] = TOOLS,
        access: Access = "admin",
        codes: bool = False,
        interface: str = "host",
    ) -> None:
        self._memory = memory if callable(memory) else lambda: memory
        self._session = session
        self._access: Access = access
        self._codes = codes
        self._interface = interface
        self.tools = {name: tool for name, tool in tools.items() if names is None or name in names}
        self._close: Callable[[], None] = lambda: None
        #: Folders of the memory that was opened last, whose paths are hidden from callers other than the owner.
        self._folders: tuple[Path, ...] = ()

    @classmethod
    def open(
        cls, *, session: str | None = None, names: Collection[str] | None = None, **arguments: Any
    ) -> Toolbox:
        """Return tools for the memory that `Memory.open` opens with these arguments, at the first call."""
        memory = _LazyMemory(arguments)
        toolbox = cls(memory, session=session, names=names)
        toolbox._close = memory.close
        return toolbox

    # ---- calling ----------------------------------------------------------------------------------------------

    def call(self, name: str, arguments: Mapping[str, object] | str | None = None) -> Result:
        """Call a tool by its name. Arguments are a mapping, or JSON text as a model wrote it."""
        return self.outcome(name, arguments)[1]

    def outcome(
        self,
        name: str,
        arguments: Mapping[str, object] | str | None = None,
        *,
        progress: ProgressCallback | None = None,
    ) -> tuple[Outcome, Result]:
        """Call a tool and also return how the call ended, for interfaces that answer with a status."""
        outcome, result = self._outcome(name, arguments, progress)
        if not grants(self._access, "admin"):
            everywhere = outcome != "ok" or self.tools[name].reveals_paths
            result = {
                key: hide_folders_in(value, self._folders) if everywhere or key in MESSAGE_KEYS else value
                for key, value in result.items()
            }
        if self._codes and (found := codes(result)):
            result = {**result, "codes": found}
        return outcome, result

    def _outcome(
        self, name: str, arguments: Mapping[str, object] | str | None, progress: ProgressCallback | None
    ) -> tuple[Outcome, Result]:
        tool = self.tools.get(name)
        if tool is None:
            known = ", ".join(self.tools) or "none"
            message = f"There is no tool {name!r}. The tools are: {known}."
            return "unknown", _error({}, message, "unknown_tool", {"name": name})
        try:
            memory = self._memory()
        except (MemoriterError, OSError) as error:
            message = f"Memory is disabled: {_message(error)}"
            failure = _error(tool.empty, message, "memory_disabled", {"why": _message(error)})
            return "disabled", {**failure, "disabled": True}
        with logs.concerning(_agent_of(memory)):
            try:
                if not grants(self._access, "admin"):
                    self._folders = (memory.settings.workspace, memory.settings.home)
                checked = tool.check(_mapping(arguments))
                call = Call(memory, checked, self._session, progress, self._access, self._interface)
                return self._run(tool, call)
            except (MemoriterError, OSError) as error:
                return outcome_of(error), _error(tool.empty, _message(error), *error_code(error))
            except Exception as error:  # a bug must not break the agent that calls the tool
                log.exception("the tool %s failed", name)
                message = f"{name} failed: {type(error).__name__}."
                return "broken", _error(tool.empty, message, "internal_error", {"name": name})

    def _run(self, tool: Tool, call: Call[Any]) -> tuple[Outcome, Result]:
        named = getattr(call.arguments, "session", None) if tool.names_session else None
        allowed = named is None or parts_of(call.memory).allows_name(named)
        if allowed and call.memory.allows(self._session):
            return "ok", {**tool.run(call).to_json(), "disabled": False}
        if tool.read_only:
            return "ok", {**tool.empty, "disabled": False}
        return "refused", _error(tool.empty, "This session may not write to this memory.", "session_refused")

    def function(self, name: str) -> Callable[..., Result]:
        """Return a tool as a plain Python function, with the signature and docstring that frameworks read."""
        tool = self.tools[name]
        signature = tool.signature()

        def call(*args: object, **kwargs: object) -> Result:
            arguments = dict(zip(signature.parameters, args, strict=False)) | kwargs
            return self.call(name, arguments)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = tool.description
        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
        return call

    def functions(self) -> dict[str, Callable[..., Result]]:
        """Return every tool as a plain Python function."""
        return {name: self.function(name) for name in self.tools}

    # ---- describing -------------------------------------------------------------------------------------------

    def openai(self) -> list[dict[str, object]]:
        """Return the tools in the format of OpenAI's chat completions."""
        return [tool.openai() for tool in self.tools.values()]

    def anthropic(self) -> list[dict[str, object]]:
        """Return the tools in the format of Anthropic's messages."""
        return [tool.anthropic() for tool in self.tools.values()]

    def prompt(self, language: str = "en") -> str:
        """Return the section of the system prompt about these tools; empty while memory is disabled."""
        spoken: Literal["en", "zh"] = "zh" if language.lower().startswith("zh") else "en"
        try:
            memory = self._memory()
        except (MemoriterError, OSError):
            return ""
        hints = {name: tool.hints[spoken] for name, tool in self.tools.items()}
        return memory.prompt_section(hints, language=spoken, session=self._session)

    def close(self) -> None:
        """Close the memory that `open` opened. A memory that was passed in stays open."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _LazyMemory:
    """Opens a memory at the first call. If that fails, the next call tries again."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = arguments
        self._memory: Memory | None = None

    def __call__(self) -> Memory:
        from memoriter.memory import Memory

        if self._memory is None:
            self._memory = Memory.open(**self._arguments)
        return self._memory

    def close(self) -> None:
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()


def _mapping(arguments: Mapping[str, object] | str | None) -> Mapping[str, object]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            raise BadArgument("The arguments are not JSON.") from None
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise BadArgument("The arguments must be an object.")
    return arguments


def _agent_of(memory: Memory) -> str:
    """Return the agent that the log messages of a call concern. A stand-in for a memory has no settings."""
    settings = getattr(memory, "settings", None)
    return str(settings.agent_folder) if settings else ""


def outcome_of(error: Exception) -> Outcome:
    if isinstance(error, BadArgument):
        return "invalid"
    if isinstance(error, NotFound | PathRefused | FileNotFoundError):
        return "not_found"
    if isinstance(error, StoreUnavailable):
        return "unavailable"
    return "conflict" if isinstance(error, EditConflict) else "failed"


def _error(empty: Result, message: str, code: str, details: Mapping[str, object] | None = None) -> Result:
    """Return the result of a call that failed."""
    return {**empty, "disabled": False, "error": message, "code": code, "details": dict(details or {})}


def error_code(error: Exception) -> tuple[str, Mapping[str, object]]:
    """Return the code of an error and the values that its message mentions."""
    if not isinstance(error, MemoriterError):
        return "io_error", {}
    message = error.args[0] if error.args else ""
    return message.code if isinstance(message, Sentence) and message.code else error.code, error.details


def _message(error: Exception) -> str:
    text = " ".join(message_of(error).split()) or type(error).__name__
    text = text if len(text) <= MAX_ERROR_CHARS else f"{text[:MAX_ERROR_CHARS]}…"
    return text if text.endswith((".", "!", "?", "。")) else f"{text}."


# ---- hiding paths from callers other than the owner ----------------------------------------------------------------

# The folders of an absolute path, up to its last part. Relative paths, URLs and paths that start with "~" do not match.
_FOLDERS = re.compile(r"(?<![\w.:/\\~…-])(?:/|\\\\|[A-Za-z]:[\\/])(?:[^\s/\\]+[\\/])+")
#: Placeholder for the home folder of the owner while other folders are replaced.
_HOME = "/\x00"


def hide_folders(text: str, folders: Sequence[Path] = ()) -> str:
    """Return a message in which paths have lost their folders: only the names of files remain.

    Nothing in a text shows where a name with a space ends, so the caller passes the ``folders`` it knows.
    """
    for folder in sorted(folders, key=lambda folder: -len(str(folder))):
        if folder.name:
            text = re.sub(rf"{_written(folder)}(?=[\\/])", _HOME, text)
            text = f"…/{folder.name}".join(re.split(rf"{_written(folder)}(?![\w-])", text))
    home = Path.home()  # first, because a name in it may contain a space
    if home.name:
        text = re.sub(rf"{_written(home)}(?![\w-])", _HOME, text)
    return _FOLDERS.sub("…/", text).replace(_HOME, "~")


def _written(folder: Path) -> str:
    """Return a pattern of the path with either separator, as Windows has both."""
    return r"[\\/]".join(map(re.escape, re.split(r"[\\/]", str(folder))))


def hide_folders_in(value: Any, folders: Sequence[Path] = ()) -> Any:
    """Hide the folders in every text of plain data, keys included."""
    if isinstance(value, Sentence):
        return Sentence(hide_folders(value, folders), value.code, hide_folders_in(value.details, folders))
    if isinstance(value, str):
        return hide_folders(value, folders)
    if isinstance(value, Mapping):
        return {hide_folders_in(key, folders): hide_folders_in(item, folders) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [hide_folders_in(item, folders) for item in value]
    return value
