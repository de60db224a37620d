"""Processes that are forked from this one, which has loaded everything, so that a kill costs no start of Python."""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

_SET_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
Acknowledge = Callable[[str], None]


#: Packages that the Python API does not load, and modules that it loads on first use.
OUTER = tuple(
    f"memoriter.{name}" for name in ("cli", "extensions", "importing", "resident", "server", "tools")
)
CORE_MODULES = (
    "filelock",
    "numpy",
    "memoriter.extensions.langgraph.items",
    "memoriter.extensions.hooks.capture",
)
#: Modules that the command line and the servers load on first use.
SERVER_MODULES = (
    *("anyio._backends._asyncio", "mcp.server.lowlevel.server", "mcp.server.stdio", "rich.console"),
    *("mcp.server.streamable_http_manager", "rich.table", "sse_starlette", "starlette.applications", "typer"),
    *("typer._adapters", "typer._click.decorators", "uvicorn.lifespan.on", "uvicorn.loops.auto"),
    *("uvicorn.protocols.http.auto", "watchfiles"),
)
#: Adapters for frameworks, whose packages take seconds to load and make every fork more expensive.
FRAMEWORKS = tuple(
    f"memoriter.extensions.{name}"
    for name in (
        "anthropic.memory_tool",
        "langgraph.store",
        "openai_agents.session",
        "pydantic_ai.toolset",
    )
)


class ForkFailed(Exception):
    """A forked function raised, or its process died."""


def load_core() -> None:
    """Import what the Python API uses, once, before the forks. The smaller a process, the cheaper its forks."""
    _load(*(name for name in _own_modules() if not name.startswith(OUTER)), *CORE_MODULES)


def load_everything() -> None:
    """Import every module that an interface uses, once, before the forks."""
    _load(*(name for name in _own_modules() if name not in FRAMEWORKS), *CORE_MODULES, *SERVER_MODULES)


def _own_modules() -> list[str]:
    import memoriter

    found = pkgutil.walk_packages(memoriter.__path__, "memoriter.", onerror=lambda _: None)
    return [module.name for module in found if not module.name.endswith("__main__")]


def _load(*names: str) -> None:
    for name in names:
        with suppress(ImportError):  # an extra that is not installed
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page


def adopt_orphans() -> None:
    """Make this process the parent of detached descendants, so that it can find and kill them."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_orphans() -> int:
    """Kill every child of this process, and theirs, until none is left; return the number of kills."""
    kills = 0
    while children := Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
                kills += 1
            with suppress(ChildProcessError):
                os.waitpid(int(child), 0)
    return kills


def in_fork(function: Callable[..., Any], *arguments: Any, timeout_s: float = 1800.0) -> Any:
    """Call a function in a fork and return its result, which must be JSON."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_fork(lambda: _send(writing, {"result": function(*arguments)}), writing)
    os.close(writing)
    received = _read_all(reading, child, timeout_s)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if not received:
        raise ForkFailed(f"the process ended with status {os.waitstatus_to_exitcode(status)}")
    answer = json.loads(received)
    if "error" in answer:
        raise ForkFailed(answer["error"])
    return answer["result"]


def _be_fork(call: Callable[[], object], writing: int) -> NoReturn:
    """Call a function and end this process, whatever happens: a fork must never go on with the program."""
    try:
        call()
    except BaseException:  # noqa: BLE001  the parent raises it
        with suppress(OSError):  # the parent has ended
            _send(writing, {"error": traceback.format_exc()[-2500:]})
    finally:
        os._exit(0)


def _send(pipe: int, value: object) -> None:
    remaining = memoryview(json.dumps(value).encode())
    while remaining:
        remaining = remaining[os.write(pipe, remaining) :]


def _read_all(pipe: int, child: int, timeout_s: float) -> bytes:
    received, until = b"", time.monotonic() + timeout_s
    while True:
        if not select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
            os.kill(child, signal.SIGKILL)
            return json.dumps({"error": f"no answer after {timeout_s:g} s"}).encode()
        part = os.read(pipe, 1 << 20)
        if not part:
            return received
        received += part


class Writer:
    """A process group that writes and acknowledges on a pipe, one line for each write, until it is killed."""

    def __init__(self, write: Callable[[Acknowledge], None]) -> None:
        self._reading, writing = os.pipe()
        self._received = b""
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._reading)
            os.setpgid(0, 0)
            _be_fork(lambda: write(lambda text: _line(writing, text)), writing)
        with suppress(OSError):
            os.setpgid(self.pid, self.pid)
        os.close(writing)

    def wait_for(self, acknowledgements: int, timeout_s: float = 60.0) -> None:
        """Wait for some acknowledgements, or for the end of the process."""
        until = time.monotonic() + timeout_s
        while self._received.count(b"\n") < acknowledgements:
            if not select.select([self._reading], [], [], max(0.0, until - time.monotonic()))[0]:
                return
            part = os.read(self._reading, 1 << 16)
            if not part:
                return
            self._received += part

    def wait_for_end(self, timeout_s: float) -> None:
        """Wait for the end of the process itself, while those that it started may go on."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until and not os.waitid(
            os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
        ):
            self.wait_for(sys.maxsize, timeout_s=0.2)

    def received(self) -> list[str]:
        """Return the texts that are acknowledged so far."""
        return self._received.rpartition(b"\n")[0].decode().splitlines()

    def kill(self) -> list[str]:
        """Kill the process group and return the acknowledged texts. `kill_orphans` kills what has left the group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.wait_for(sys.maxsize, timeout_s=5.0)
        os.close(self._reading)
        whole, _, _ = self._received.rpartition(b"\n")
        if b'{"error": "Traceback' in self._received:
            raise ForkFailed(self._received[-9000:].decode("utf-8", "replace"))
        return whole.decode().splitlines()


def _line(pipe: int, text: str) -> None:
    os.write(pipe, f"{text}\n".encode())


def command(arguments: list[str], data: bytes = b"", environment: Mapping[str, str] | None = None) -> Any:
    """Run the command line in a fork of this process and return the exit status, output and error."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(data)
        given.seek(0)
        child = os.fork()
        if child == 0:
            for number, file in enumerate((given, out, err)):
                os.dup2(file.fileno(), number)
            be_command(arguments, environment)
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return os.waitstatus_to_exitcode(status), out.read(), err.read()


def be_command(arguments: list[str], environment: Mapping[str, str] | None = None) -> NoReturn:
    """Become the command line with these arguments, as if started by a shell."""
    from memoriter.cli import main

    os.environ.update(environment or {})
    # The streams of this process belong to other descriptors now.
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
        for number, mode in enumerate(("r", "w", "w"))
    )
    sys.argv = ["memoriter", *arguments]
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001  printed as the interpreter would
        traceback.print_exc()
        code = 1
    with suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)
