"""The work of the resident process for one request: answer a hook, or run a command.

A command runs here as in a process of its own: with the folder, the variables and the terminal of its caller, which
gets the same output. Only the memory is already open.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoriter import logs
from memoriter.agent.service import MemoryService
from memoriter.background import check_cancelled
from memoriter.cli.context import GlobalOptions
from memoriter.errors import Cancelled
from memoriter.extension import extensions, resolve
from memoriter.memory import Memory, parts_of
from memoriter.resident import client
from memoriter.resident.client import Declined, is_decisive

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.resident.server import Resident
    from memoriter.tools.tool import Outcome, Result

log = logs.get("resident")

#: Idle memories that stay open. More are open only while they are used.
MAX_MEMORIES = 3


class OpenMemories:
    """Memories that stay open between requests, by their settings."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = list[tuple[dict[str, object], MemoryService]]()

    def get(self, settings: Settings) -> MemoryService:
        """Return the memory of these settings. Raises what `Memory.open` raises."""
        values = settings.model_dump()
        with self._lock:
            found = next((pair for pair in self._open if pair[0] == values), None)
            if found is None:
                found = (values, MemoryService(Memory.open(settings=settings)))
            else:
                self._open.remove(found)
            self._open.append(found)
            return found[1]

    def trim(self, size: int = MAX_MEMORIES) -> None:
        """Close the memories that were not used last. No request may be running."""
        with self._lock:
            count = max(0, len(self._open) - size)
            closing, self._open = self._open[:count], self._open[count:]
        for _, service in closing:
            service.memory.close()

    @property
    def busy(self) -> bool:
        """Whether a memory computes vectors."""
        with self._lock:
            return any(parts_of(service.memory).engine.busy for _, service in self._open)

    def do_chores(self) -> None:
        """Do what extensions do for an open memory when there is time. A chore that fails is logged."""
        with self._lock:
            memories = [service.memory for _, service in self._open]
        for code in (code for one in extensions() for code in one.chores):
            for memory in memories:
                check_cancelled()
                try:
                    resolve(code)(memory)
                except Cancelled:
                    raise
                except Exception as error:  # noqa: BLE001 - a chore of an extension must not end the process
                    log.warning("%s failed: %s", code, error)


def variables_of_extensions() -> list[str]:
    """Return the beginnings of the variables that change what extensions do."""
    return [name for extension in extensions() for name in extension.environment]


@dataclass(frozen=True, slots=True)
class Caller:
    """Facts about the caller of a request."""

    cwd: str
    environ: Mapping[str, str]
    #: The owner's settings file.
    config: str
    printing: Mapping[str, str]
    #: Whether standard output and standard error are terminals.
    terminals: Sequence[bool]
    columns: int
    encoding: str

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Caller:
        """Read a request. Raises `Declined` if the caller's variables differ from those of this process."""
        caller = cls(**request["caller"])
        names = variables_of_extensions()
        theirs = {name: value for name, value in caller.environ.items() if is_decisive(name, names)}
        if theirs != {name: value for name, value in os.environ.items() if is_decisive(name, names)}:
            raise Declined("The caller has other environment variables.")
        return caller


# ---- output ----------------------------------------------------------------------------------------------------


class CallerStream(io.StringIO):
    """Collects what a command prints for its caller."""

    def __init__(self, caller: Caller, *, is_terminal: bool) -> None:
        super().__init__()
        self.caller = caller
        self._is_terminal = is_terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the caller's terminal."""
        return self.caller.encoding

    def isatty(self) -> bool:
        """Return whether the caller's stream is a terminal."""
        return self._is_terminal


_output: ContextVar[io.TextIOBase] = ContextVar("memoriter_output")
_errors: ContextVar[io.TextIOBase] = ContextVar("memoriter_errors")


class _Redirected:
    """Standard output or error: that of the caller in a command, that of the process elsewhere."""

    def __init__(self, current: ContextVar[io.TextIOBase], own: Any) -> None:
        self._current, self._own = current, own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._current.get(self._own), name)


def redirect_output() -> None:
    """Let a command print for its caller."""
    sys.stdout, sys.stderr = _Redirected(_output, sys.stdout), _Redirected(_errors, sys.stderr)


# ---- serving ---------------------------------------------------------------------------------------------------


class Service:
    """Answers the hooks and commands of one home."""

    def __init__(self, home: Path, memories: OpenMemories, resident: Resident) -> None:
        self._home = home
        self._memories = memories
        self._resident = resident

    def command(self, request: dict[str, Any]) -> tuple[Outcome, Result]:
        """Run a command and return what it prints."""
        from memoriter.cli import execute

        caller = Caller.of(request)
        output, errors = (CallerStream(caller, is_terminal=is_terminal) for is_terminal in caller.terminals)
        tokens = _output.set(output), _errors.set(errors)
        options = GlobalOptions(
            environ=caller.environ, cwd=Path(caller.cwd), open=lambda settings: self._open(settings, caller)
        )
        try:
            status = execute(request["arguments"]["arguments"], options)
        finally:
            _output.reset(tokens[0])
            _errors.reset(tokens[1])
        result = {"status": status, "output": output.getvalue(), "errors": errors.getvalue()}
        return "ok", {**result, "idle_minutes": self._resident.idle_minutes}

    def index(self, request: dict[str, Any]) -> tuple[Outcome, Result]:
        """Compute the missing vectors of a memory in the background."""
        caller = Caller.of(request)
        given: dict[str, Any] = {
            name: Path(value) if name in ("workspace", "home", "config") else value
            for name, value in request["arguments"].items()
        }
        settings = GlobalOptions(**given, environ=caller.environ, cwd=Path(caller.cwd)).settings()
        self._check(settings, caller.config)
        parts_of(self._memories.get(settings).memory).engine.start()
        return "ok", {"pid": os.getpid()}

    def hook(self, request: dict[str, Any]) -> tuple[Outcome, Result]:
        """Answer a hook. What the hook does afterwards runs in the background."""
        from memoriter.agent import Agent
        from memoriter.hosts import HookRequest, find_host
        from memoriter.resident.command_line import read_hook

        caller, arguments = Caller.of(request), request["arguments"]

        def open_agent(settings: Settings) -> Agent:
            self._check(settings, caller.config)
            return Agent.open(settings, slot="memory-full", service=self._memories.get(settings))

        command = read_hook(arguments["arguments"])
        if command is None:
            raise Declined("This is not a hook.")
        data = arguments["data"].encode("utf-8", "surrogateescape")
        answer = find_host(command.host).answer_in_process(
            HookRequest(
                arguments["arguments"], data, float(arguments["deadline_s"]), caller.environ, open_agent
            )
        )
        if answer.afterwards is not None:
            self._resident.background.submit(answer.afterwards)
        return "ok", {"output": answer.output, "errors": answer.errors}

    @contextmanager
    def _open(self, settings: Settings, caller: Caller) -> Iterator[Memory]:
        self._check(settings, caller.config)
        yield self._memories.get(settings).memory

    def _check(self, settings: Settings, config: str) -> None:
        """Raise `Declined` if these settings are not for this process."""
        if settings.home != self._home:
            raise Declined("The settings name another home.")
        if not settings.resident.enabled:
            if settings.origin("resident.enabled") != client.SWITCH:
                self._switch_off(config)
            raise Declined("The resident process is switched off.")
        if settings.memory.backend != "builtin":
            raise Declined("The backend has a process of its own.")
        self._resident.end_after(settings.resident.idle_minutes * 60)

    def _switch_off(self, config: str) -> None:
        """Let clients know without loading the settings that this process is switched off, and end."""
        from memoriter.files import durable

        durable.write(Path(client.folder_of(str(self._home))) / "off", client.signature(config).encode())
        self._resident.end_soon("switched off")
