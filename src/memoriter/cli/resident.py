"""The resident process: what it does for hooks and commands, and the commands `resident status` and `resident stop`.

A command runs here as in a process of its own: with the folder, the variables and the terminal of its caller, which
gets the same output. Only the memory is already open.
"""

from __future__ import annotations

import io
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from memoriter.cli.context import GlobalOptions, Json
from memoriter.resident import client
from memoriter.resident.client import Declined, is_decisive

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.memory import Memory
    from memoriter.server.resident import Handler, OpenMemories, Resident
    from memoriter.tools.doctor import Finding
    from memoriter.tools.tool import Outcome, Result

NOT_RUNNING = "not running; the next hook or search starts it"

resident_app = typer.Typer(
    help="Show or stop the process that keeps the memory open for hooks and commands.", no_args_is_help=True
)


@dataclass(frozen=True, slots=True)
class Caller:
    """What a request says about its caller."""

    cwd: Path
    environ: Mapping[str, str]
    #: The owner's settings file.
    config: str
    printing: Mapping[str, str]
    #: Whether standard output and standard error are terminals.
    terminals: tuple[bool, bool]
    columns: int
    encoding: str

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Caller:
        """Read a request. Raises `Declined` if the caller's variables differ from those of this process."""
        caller = request["caller"]
        environ = dict(caller["environ"])
        theirs = {name: value for name, value in environ.items() if is_decisive(name)}
        if theirs != {name: value for name, value in os.environ.items() if is_decisive(name)}:
            raise Declined("The caller has other environment variables.")
        output, errors = caller["terminals"]
        return cls(
            Path(caller["cwd"]),
            environ,
            caller["config"],
            caller["printing"],
            (output, errors),
            caller["columns"],
            caller["encoding"],
        )


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


# ---- serving ---------------------------------------------------------------------------------------------------


class Service:
    """Answers the hooks and commands of one home."""

    def __init__(self, home: Path, memories: OpenMemories) -> None:
        self._home = home
        self._memories = memories
        self._synced = set[Path]()
        self.resident: Resident | None = None

    def command(self, request: dict[str, Any]) -> tuple[Outcome, Result]:
        """Run a command and return what it prints."""
        from memoriter.cli import execute

        caller = Caller.of(request)
        output, errors = (CallerStream(caller, is_terminal=is_terminal) for is_terminal in caller.terminals)
        tokens = _output.set(output), _errors.set(errors)
        options = GlobalOptions(
            environ=caller.environ, cwd=caller.cwd, open=lambda settings: self._open(settings, caller)
        )
        try:
            status = execute(request["arguments"]["arguments"], options)
        finally:
            _output.reset(tokens[0])
            _errors.reset(tokens[1])
        return "ok", {"status": status, "output": output.getvalue(), "errors": errors.getvalue()}

    def hook(self, request: dict[str, Any]) -> tuple[Outcome, Result]:
        """Answer a hook. What the hook does afterwards runs in the background."""
        from memoriter.agent import Agent
        from memoriter.extensions.claude_code import events, hook

        caller, arguments = Caller.of(request), request["arguments"]

        def open_agent(settings: Settings) -> Agent:
            self._check(settings, caller.config)
            return Agent.open(settings, slot="memory-full", service=self._memories.get(settings))

        answer = hook.answer_in_process(
            arguments["arguments"],
            arguments["data"].encode("utf-8", "surrogateescape"),
            float(arguments["deadline_s"]),
            events.Surroundings(caller.environ, open_agent),
        )
        if answer.afterwards is not None and self.resident is not None:
            self.resident.background.submit(answer.afterwards)
        return "ok", {"output": answer.output, "errors": answer.errors}

    @contextmanager
    def _open(self, settings: Settings, caller: Caller) -> Iterator[Memory]:
        self._check(settings, caller.config)
        memory: Memory = self._memories.get(settings).memory
        if caller.terminals[1] and settings.index_folder not in self._synced:
            if memory.status().last_sync is None:
                raise Declined("The first index is built with a progress bar.")
            self._synced.add(settings.index_folder)
        yield memory

    def _check(self, settings: Settings, config: str) -> None:
        """Raise `Declined` if these settings are not for this process."""
        assert self.resident is not None
        if settings.home != self._home:
            raise Declined("The settings name another home.")
        if not settings.resident.enabled:
            if settings.origin("resident.enabled") != client.SWITCH:
                self._switch_off(config)
            raise Declined("The resident process is switched off.")
        if settings.memory.backend != "builtin":
            raise Declined("The backend has a process of its own.")
        self.resident.end_after(settings.resident.idle_minutes * 60)

    def _switch_off(self, config: str) -> None:
        """Let clients know without loading the settings that this process is switched off, and end."""
        from memoriter.files import durable

        assert self.resident is not None
        durable.write(Path(client.folder_of(str(self._home))) / "off", client.signature(config).encode())
        self.resident.end_soon("switched off")


def _declining(handler: Handler) -> Handler:
    """Return a handler that reports a declined request to the client."""

    def handle(request: dict[str, Any]) -> tuple[Outcome, Result]:
        try:
            return handler(request)
        except Declined as error:
            return "refused", {"error": str(error), "code": "declined"}

    return handle


# ---- commands --------------------------------------------------------------------------------------------------


@resident_app.command("run", hidden=True)
def run(context: typer.Context) -> None:
    """Serve on the socket that is standard input. Clients start this command themselves."""
    from memoriter import logs
    from memoriter.extensions.claude_code.hook import log_to_file
    from memoriter.server.resident import OpenMemories, Resident

    home = Path(context.obj.home)
    listener = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as null:  # noqa: PTH123
        os.dup2(null.fileno(), 0)
    os.chdir(home)  # a project's folder can be moved or unmounted
    logs.setup()
    log_to_file(home)
    sys.stdout, sys.stderr = _Redirected(_output, sys.stdout), _Redirected(_errors, sys.stderr)
    memories = OpenMemories()
    service = Service(home.resolve(), memories)
    handlers = {"command": _declining(service.command), "hook": _declining(service.hook)}
    service.resident = Resident(listener, home, handlers, memories)
    service.resident.run()


@resident_app.command("status")
def status(context: typer.Context, as_json: Json = False) -> None:
    """Show whether the process runs."""
    settings = context.obj.settings()
    if as_json:
        from memoriter.cli import render

        found = _ask(settings, "describe")
        render.to_json({"running": found is not None, "enabled": settings.resident.enabled, **(found or {})})
    else:
        typer.echo(state(settings).capitalize() + ".")


@resident_app.command("stop")
def stop(context: typer.Context, as_json: Json = False) -> None:
    """Stop the process. The next hook or search starts it again, unless `resident.enabled` is off."""
    pid = stop_process(context.obj.settings())
    if as_json:
        from memoriter.cli import render

        render.to_json({"stopped": pid})
    else:
        typer.echo("Not running." if pid is None else f"Stopped process {pid}.")


def state(settings: Settings) -> str:
    """Return whether the process runs, in words."""
    found = _ask(settings, "describe")
    if found is not None:
        return _describe(found)
    if not settings.resident.enabled:
        return f"switched off by {settings.origin('resident.enabled')}"
    return NOT_RUNNING


def findings(load: Callable[[], Settings]) -> Iterator[Finding]:
    """Check the process for `doctor`. Wrong settings have a finding of their own."""
    from memoriter.errors import MemoriterError
    from memoriter.tools.doctor import Finding

    try:
        settings = load()
    except MemoriterError:
        return
    folder = Path(client.folder_of(str(settings.home)))
    if folder.exists() and not client.is_private(str(folder)):
        text = f"{folder} is not a private folder, so hooks and commands open the memory themselves, which is slow"
        yield Finding("resident process", "note", text, f"Remove it: `rm -r {folder}`")
    else:
        yield Finding("resident process", "ok", state(settings))


def stop_process(settings: Settings) -> int | None:
    """Stop the process, if it runs; return its id."""
    found = _ask(settings, "stop")
    return int(str(found["pid"])) if found else None


def _describe(found: Mapping[str, object]) -> str:
    from memoriter.cli import render

    answers = render.count(int(str(found["answered"])), "answer")
    return f"process {found['pid']}, {answers}, ends after {found['idle_minutes']:g} idle minutes"


def _ask(settings: Settings, operation: str) -> dict[str, object] | None:
    try:
        connection = client.Connection(str(settings.home), start=False, timeout_s=client.wait_s())
        return connection.ask({"operation": operation})
    except client.Unavailable:
        return None
