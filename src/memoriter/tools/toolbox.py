"""`Toolbox`: the tools of one session, ready to be called by an agent.

A call never raises. Whatever goes wrong is in the result, as a sentence for the model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from memoriter import logs
from memoriter.errors import BadArgument, EditConflict, MemoriterError, NotFound, PathRefused
from memoriter.sentences import Sentence, codes
from memoriter.tools.entry_tools import ENTRY_TOOLS
from memoriter.tools.hide_paths import sentences_shortened, shortened_within
from memoriter.tools.notes import MEMORY_SAVE
from memoriter.tools.search import MEMORY_GET, MEMORY_SEARCH, MEMORY_STATS
from memoriter.tools.tool import Access, Call, Outcome, Result, Tool, grants

if TYPE_CHECKING:
    from pathlib import Path

    from memoriter.memory import Memory
    from memoriter.records import ProgressCallback

log = logs.get("tools")

#: The most characters of an error message, which may quote an argument.
MAX_ERROR_CHARS = 500

TOOLS: Mapping[str, Tool] = {
    tool.name: tool for tool in (MEMORY_SEARCH, MEMORY_GET, MEMORY_SAVE, MEMORY_STATS, *ENTRY_TOOLS)
}
"""The tools that agents call, by name."""


class Toolbox:
    """The tools of one session, ready to be called.

    ``memory`` is a `Memory`, or a function that gives one at each call and may raise: the tools then answer that
    memory is disabled, and why. ``access`` is what the caller may do: below `admin` it does not speak for the owner,
    and is not told where things are.
    """

    def __init__(
        self,
        memory: Memory | Callable[[], Memory],
        *,
        session_key: str | None = None,
        names: Collection[str] | None = None,
        tools: Mapping[str, Tool] = TOOLS,
        access: Access = "admin",
        codes: bool = False,
    ) -> None:
        self._memory = memory if callable(memory) else lambda: memory
        self._session_key = session_key
        self._access: Access = access
        self._codes = codes
        self.tools = {name: tool for name, tool in tools.items() if names is None or name in names}
        self._close: Callable[[], None] = lambda: None
        self._places: tuple[Path, ...] = ()  #: folders of the memory that was opened last

    @classmethod
    def open(
        cls, *, session_key: str | None = None, names: Collection[str] | None = None, **arguments: Any
    ) -> Toolbox:
        """Tools over the memory that `Memory.open` gives for these arguments; it is opened at the first call."""
        opening = _Opening(arguments)
        toolbox = cls(opening, session_key=session_key, names=names)
        toolbox._close = opening.close
        return toolbox

    # ---- calling ----------------------------------------------------------------------------------------------

    def call(self, name: str, arguments: Mapping[str, object] | str | None = None) -> Result:
        """Call a tool by its name, with arguments as a mapping or as the JSON text that a model wrote."""
        return self.outcome(name, arguments)[1]

    def outcome(
        self,
        name: str,
        arguments: Mapping[str, object] | str | None = None,
        *,
        progress: ProgressCallback | None = None,
    ) -> tuple[Outcome, Result]:
        """As `call`, and in one word what became of it, for doors that answer with a status."""
        outcome, result = self._outcome(name, arguments, progress)
        if not grants(self._access, "admin"):
            names_paths = outcome != "ok" or self.tools[name].reveals_paths
            shorten = shortened_within if names_paths else sentences_shortened
            result = shorten(result, self._places)
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
        with logs.concerning(_whom(memory)):
            try:
                if not grants(self._access, "admin"):
                    self._places = (memory.settings.workspace, memory.settings.home)
                checked = tool.check(_mapping(arguments))
                return self._run(tool, Call(memory, checked, self._session_key, progress, self._access))
            except (BadArgument, MemoriterError, OSError) as error:
                return _kind(error), _error(tool.empty, _message(error), *_code(error))
            except Exception as error:  # a bug must not break the agent that calls the tool
                log.exception("the tool %s failed", name)
                message = f"{name} failed: {type(error).__name__}."
                return "broken", _error(tool.empty, message, "internal_error", {"name": name})

    def _run(self, tool: Tool, call: Call[Any]) -> tuple[Outcome, Result]:
        if call.memory.allows(self._session_key):
            return "ok", {**tool.run(call).to_json(), "disabled": False}
        if tool.read_only:
            return "ok", {**tool.empty, "disabled": False}
        return "refused", _error(tool.empty, "This session may not write to this memory.", "session_refused")

    def function(self, name: str) -> Callable[..., Result]:
        """A tool as a plain Python function, with the signature and the words that frameworks look at."""
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
        """Every tool as a plain Python function."""
        return {name: self.function(name) for name in self.tools}

    # ---- describing -------------------------------------------------------------------------------------------

    def openai(self) -> list[dict[str, object]]:
        """The tools as OpenAI's chat completions take them."""
        return [tool.openai() for tool in self.tools.values()]

    def anthropic(self) -> list[dict[str, object]]:
        """The tools as Anthropic's messages take them."""
        return [tool.anthropic() for tool in self.tools.values()]

    def prompt(self, language: str = "en") -> str:
        """The section of the system prompt that says when to use these tools; nothing while memory is disabled."""
        spoken: Literal["en", "zh"] = "zh" if language.lower().startswith("zh") else "en"
        try:
            memory = self._memory()
        except (MemoriterError, OSError):
            return ""
        hints = {name: tool.hints[spoken] for name, tool in self.tools.items()}
        return memory.prompt_section(hints, language=spoken, session_key=self._session_key)

    def close(self) -> None:
        """Close the memory that `open` opened; one that was handed in stays its owner's."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Opening:
    """Opens a memory at the first call, and again at the next when that failed: what is mended is used."""

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


def _whom(memory: Memory) -> str:
    """Whom the messages of a call concern; a stand-in for a memory has no settings."""
    settings = getattr(memory, "settings", None)
    return str(settings.agent_folder) if settings else ""


def _kind(error: Exception) -> Outcome:
    if isinstance(error, BadArgument):
        return "invalid"
    if isinstance(error, NotFound | PathRefused | FileNotFoundError):
        return "not_found"
    return "conflict" if isinstance(error, EditConflict) else "failed"


def _error(empty: Result, message: str, code: str, details: Mapping[str, object] | None = None) -> Result:
    """Return the result of a call that failed."""
    return {**empty, "disabled": False, "error": message, "code": code, "details": dict(details or {})}


def _code(error: Exception) -> tuple[str, Mapping[str, object]]:
    """Return the code of an error and the values that its message mentions."""
    if not isinstance(error, MemoriterError):
        return "io_error", {}
    message = error.args[0] if error.args else ""
    return message.code if isinstance(message, Sentence) and message.code else error.code, error.details


def _message(error: Exception) -> str:
    text = (
        f"{error.strerror} ({error.filename})"
        if isinstance(error, OSError) and error.strerror
        else str(error)
    )
    text = " ".join(text.split()) or type(error).__name__
    text = text if len(text) <= MAX_ERROR_CHARS else f"{text[:MAX_ERROR_CHARS]}…"
    return text if text.endswith((".", "!", "?", "。")) else f"{text}."
