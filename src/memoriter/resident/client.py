"""Client of the resident process, which keeps the memories of one home open for hooks and commands.

The first client starts the process and binds its socket (`<home>/resident/socket`), so a request can wait in the
socket's queue while the process loads. The protocol is that of `server.lines`: the process greets with one line, the
client sends one request, the process answers with one line. If anything is wrong, the client raises `Unavailable` and
its caller does the work itself.

A hook or a command should cost little more than the start of Python, so this module imports few others.
"""

from __future__ import annotations

import json
import os
import sys
import time

from memoriter.resident.command_line import find_config, find_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping

#: The setting as a variable. Without it, `config.yaml` decides.
SWITCH = "MEMORITER_RESIDENT__ENABLED"
#: Set while a hook runs. A session that the hook itself starts is ignored.
INSIDE_HOOK = "MEMORITER_INSIDE_HOOK"
#: A command waits this long for each line of the process, which may still be starting. `WAIT` names another time.
WAIT_S = 10.0
WAIT = "MEMORITER_RESIDENT_WAIT_S"
#: A process that runs for longer than this and greets no client in time is replaced.
HANGING_S = 60.0
#: Maximum length of the address of a Unix socket, on the strictest system.
MAX_ADDRESS_BYTES = 100

#: Variables that change what a process does, besides our settings. A caller with other values is not served.
DECISIVE = ("HOME", "TZ", "CLAUDE_CONFIG_DIR")
DECISIVE_PREFIXES = ("OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "VOYAGE_", "OLLAMA_")
DECISIVE_SUFFIXES = ("_PROXY", "_proxy", "_CA_BUNDLE", "_CERT_FILE", "_CERT_DIR", "_API_KEY")
#: Variables that only change how an answer is printed.
PRINTING = ("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "PAGER")


class Unavailable(Exception):
    """The resident process cannot answer; the caller does the work itself."""


class Declined(Exception):
    """The resident process does not serve this caller, who does the work itself."""


class DeadlineMissed(Exception):
    """The resident process did not answer in time."""


def is_decisive(name: str) -> bool:
    """Return whether callers with different values of this variable need different processes."""
    return name in DECISIVE or name.startswith(DECISIVE_PREFIXES) or name.endswith(DECISIVE_SUFFIXES)


def wait_s() -> float:
    """Return how long a command waits for the process, in seconds."""
    try:
        return min(max(float(os.environ.get(WAIT) or WAIT_S), 0.05), 3600.0)
    except ValueError:
        return WAIT_S


def folder_of(home: str) -> str:
    """Return the folder of the socket."""
    return f"{home}/resident"


# ---- switched off ----------------------------------------------------------------------------------------------


def is_off(options: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    """Return whether the owner has switched the process off, as far as this is known without loading the settings."""
    switch = environ.get(SWITCH, "").lower()
    if switch:
        return switch in ("0", "false", "no", "off", "f", "n")
    try:
        with open(f"{folder_of(find_home(options, environ))}/off", encoding="utf-8") as file:  # noqa: PTH123
            return file.read() == signature(find_config(options, environ))
    except (OSError, ValueError):
        return False


def signature(config: str) -> str:
    """Return a text that changes with the settings file."""
    try:
        found = os.stat(config)  # noqa: PTH116
    except OSError:
        return f"{config} does not exist"
    return f"{config} {found.st_mtime_ns} {found.st_size}"


# ---- requests --------------------------------------------------------------------------------------------------


def identity() -> str:
    """Return which installation this is. A process of another one is not asked."""
    from memoriter import __version__

    return f"{__version__} {os.path.dirname(__file__)} {sys.prefix}"  # noqa: PTH120


def describe_caller(options: Mapping[str, str]) -> dict[str, object]:
    """Return what a request carries of its caller: folder, variables, settings file and terminal."""
    environ = os.environ
    shown = {
        name: value
        for name, value in environ.items()
        if name.startswith("MEMORITER_") or name in ("STORAGE_DIR", "MEMORY_DIR") or is_decisive(name)
    }
    return {
        "cwd": os.getcwd(),  # noqa: PTH109
        "environ": shown,
        "config": find_config(options, environ),
        "printing": {name: environ[name] for name in PRINTING if name in environ},
        "terminals": [_is_terminal(1), _is_terminal(2)],
        "columns": _columns(),
        "encoding": getattr(sys.stdout, "encoding", None) or "utf-8",
    }


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def _columns() -> int:
    for descriptor in (0, 1, 2):
        try:
            return os.get_terminal_size(descriptor).columns
        except OSError:
            continue
    return 0


class Connection:
    """A connection to the process of a home, which has greeted. Raises `Unavailable`."""

    def __init__(self, home: str, *, start: bool = True, timeout_s: float | None = None) -> None:
        """Connect; ``start`` the process if there is none. ``timeout_s`` limits the wait for each line."""
        greeting = None
        try:
            for _ in range(2):  # a process that has just ended, as after an upgrade, closes the connection
                self._stream = _connect_or_start(home) if start else connect(home)
                self._stream.settimeout(timeout_s)
                greeting = _receive(self._stream)
                if greeting is not None:
                    break
                self._stream.close()
        except OSError as error:
            raise Unavailable(error.strerror or str(error)) from error
        if greeting is None:
            raise Unavailable("the resident process ends as soon as it is started")
        if greeting.get("identity") != identity():
            raise Unavailable("the resident process belongs to another installation")

    def ask(self, request: Mapping[str, object]) -> dict[str, object]:
        """Return the result of a request."""
        try:
            self._stream.sendall(json.dumps(request).encode() + b"\n")
            response = _receive(self._stream)
        except OSError as error:
            raise Unavailable(error.strerror or str(error)) from error
        finally:
            self._stream.close()
        if response is None:
            raise Unavailable("the resident process ended during the request")
        result = response.get("result")
        if response.get("outcome") != "ok" or not isinstance(result, dict):
            raise Unavailable(str(result.get("error")) if isinstance(result, dict) else "no answer")
        return result


def _receive(stream: _socket.socket) -> dict[str, object] | None:
    """Return one line of JSON; None if the process has closed the connection."""
    parts = list[bytes]()
    while not parts or not parts[-1].endswith(b"\n"):
        try:
            part = stream.recv(1 << 18)
        except (ConnectionResetError, BrokenPipeError):
            return None
        if not part:
            return None
        parts.append(part)
    try:
        value = json.loads(b"".join(parts))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


# ---- starting --------------------------------------------------------------------------------------------------


def is_private(folder: str) -> bool:
    """Return whether only this user can enter the folder."""
    found = os.lstat(folder)
    return found.st_uid == os.geteuid() and found.st_mode & 0o170077 == 0o040000


def connect(home: str) -> _socket.socket:
    """Connect to the process of a home. Raises `OSError` if there is none."""
    import _socket  # `socket` would turn all constants into enums, which takes longer than the request

    folder = folder_of(home)
    if not is_private(folder):
        raise Unavailable(f"{folder} is not private")
    stream = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        with _address(folder) as address:
            stream.connect(address)
    except BaseException:
        stream.close()
        raise
    return stream


class _address:  # noqa: N801 - a context manager without the import of contextlib
    """The address of the socket. One that is too long is replaced by a short one, where the system has such."""

    def __init__(self, folder: str, name: str = "socket") -> None:
        self._folder, self._name, self._descriptor = folder, name, -1

    def __enter__(self) -> str:
        address = f"{self._folder}/{self._name}"
        if len(os.fsencode(address)) <= MAX_ADDRESS_BYTES:
            return address
        self._descriptor = os.open(self._folder, os.O_RDONLY)
        return f"/proc/self/fd/{self._descriptor}/{self._name}"

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


def _connect_or_start(home: str) -> _socket.socket:
    try:
        return connect(home)
    except (FileNotFoundError, ConnectionRefusedError):
        pass
    import fcntl

    folder = folder_of(home)
    os.makedirs(home, mode=0o700, exist_ok=True)  # noqa: PTH103
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return connect(home)  # another client has started it in the meantime
        except (FileNotFoundError, ConnectionRefusedError):
            _start(home, folder)
        return connect(home)
    finally:
        os.close(lock)


def _start(home: str, folder: str) -> None:
    """Bind the socket and start the process with it. The caller holds the lock."""
    import socket

    if not sys.executable or not hasattr(os, "posix_spawn"):
        raise Unavailable("this system cannot start a resident process")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        # The socket gets its name when it accepts connections, so that no client finds it too early.
        with _address(folder, f"new-{os.getpid()}") as address:
            listener.bind(address)
        new = f"{folder}/new-{os.getpid()}"
        os.chmod(new, 0o600)  # noqa: PTH101
        listener.listen(64)
        os.rename(new, f"{folder}/socket")  # noqa: PTH104
        null = os.open(os.devnull, os.O_RDWR)
        command = [sys.executable, "-P", "-m", "memoriter", "--home", home, "resident", "run"]
        actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in (1, 2)]
        actions.append((os.POSIX_SPAWN_DUP2, listener.fileno(), 0))  # its standard input is the socket
        # A session that the process itself starts, for example for a language model, must not call hooks.
        environ = {**os.environ, INSIDE_HOOK: "1"}
        try:
            os.posix_spawn(sys.executable, command, environ, file_actions=actions, setsid=True)
        except BaseException:
            os.unlink(f"{folder}/socket")  # noqa: PTH108
            raise
        finally:
            os.close(null)


def announce(home: str, idle_minutes: float) -> None:
    """Tell the owner of a home once that a process stays, for how long, and how to stop it."""
    try:
        marker = os.open(f"{folder_of(home)}/announced", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return  # the owner knows
    os.close(marker)
    sys.stderr.write(
        "memoriter: A background process now keeps the memory open, so that the next search answers fast. It ends "
        f"after {idle_minutes:g} idle minutes. To stop it, run `memoriter resident stop`.\n"
    )


def abandon_hanging(home: str) -> bool:
    """Remove the socket of a process that has not greeted for long, so that the next client starts another one."""
    import fcntl

    path = f"{folder_of(home)}/socket"
    try:
        if time.time() - os.stat(path).st_mtime < HANGING_S:  # noqa: PTH116
            return False
        lock = os.open(folder_of(home), os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)  # noqa: PTH108
        finally:
            os.close(lock)
    except OSError:
        return False
    return True


# ---- time limit ------------------------------------------------------------------------------------------------


class TimeLimit:
    """Raise `DeadlineMissed` in the main thread after some seconds, wherever it waits."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        import _signal  # type: ignore[import-not-found]  # `signal` turns all constants into enums

        def stop(*_: object) -> None:
            raise DeadlineMissed

        self._before = _signal.signal(_signal.SIGALRM, stop)
        _signal.setitimer(_signal.ITIMER_REAL, max(self._seconds, 0.001))

    def __exit__(self, *_: object) -> None:
        import _signal

        _signal.setitimer(_signal.ITIMER_REAL, 0)
        _signal.signal(_signal.SIGALRM, self._before)
