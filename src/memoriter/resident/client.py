"""Client of the resident process, which keeps the memories of one home open for hooks and commands.

The first client starts the process and binds its socket (`<home>/resident/socket`), so a request can wait in the
socket's queue while the process loads. The protocol is that of `server.lines`: the process greets with one line, the
client sends one request, the process answers with one line. If anything is wrong, the client raises `Unavailable` and
its caller does the work itself.

Where the system has no Unix sockets, or none with so long an address, the socket listens on loopback, and the file has
its port and a token. Both ends prove that they know the token, because any user may have got the port.

A hook or a command should cost little more than the start of Python, so this module imports few others.
"""

from __future__ import annotations

import json
import os
import sys
import time

from memoriter.files import platform
from memoriter.resident.command_line import find_config, find_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping, Sequence

#: The setting as a variable. Without it, `config.yaml` decides.
SWITCH = "MEMORITER_RESIDENT__ENABLED"
#: Set while a hook runs. A session that the hook itself starts is ignored.
INSIDE_HOOK = "MEMORITER_INSIDE_HOOK"
#: A command waits this long for each line of the process, which may still be starting. `WAIT` names another time.
WAIT_S = 10.0
WAIT = "MEMORITER_RESIDENT_WAIT_S"
#: A process that runs for longer than this must greet a command within the second time, or it is replaced.
HANGING_S, GREETING_S = 60.0, 2.0
#: A process that has ended refuses a connection on loopback. Windows tries for seconds.
LOOPBACK_S = 0.5

#: Variables that change what a process does, besides our settings. A caller with other values is not served.
DECISIVE = ("HOME", "USERPROFILE", "TZ")
DECISIVE_SUFFIXES = ("_PROXY", "_proxy", "_CA_BUNDLE", "_CERT_FILE", "_CERT_DIR", "_API_KEY")
#: Variables that only change how an answer is printed.
PRINTING = ("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "PAGER")


class Unavailable(Exception):
    """The resident process cannot answer; the caller does the work itself."""


class Declined(Exception):
    """The resident process does not serve this caller, who does the work itself."""


def is_decisive(name: str, prefixes: Sequence[str]) -> bool:
    """Return whether callers with different values of this variable need different processes.

    ``prefixes`` are the beginnings of the variables of extensions.
    """
    return name in DECISIVE or name.startswith(tuple(prefixes)) or name.endswith(DECISIVE_SUFFIXES)


def wait_s() -> float:
    """Return how long a command waits for the process, in seconds."""
    try:
        return min(max(float(os.environ.get(WAIT) or WAIT_S), 0.05), 3600.0)
    except ValueError:
        return WAIT_S


def greeting_s(home: str) -> float:
    """Return how long a command waits for the greeting, in seconds: less for a process that is not just starting."""
    return min(wait_s(), GREETING_S) if _runs_long(home) else wait_s()


def _runs_long(home: str) -> bool:
    try:
        return time.time() - os.stat(f"{folder_of(home)}/socket").st_mtime >= HANGING_S  # noqa: PTH116
    except OSError:
        return False


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


def describe_caller(options: Mapping[str, str], prefixes: Sequence[str]) -> dict[str, object]:
    """Return what a request carries of its caller: folder, variables, settings file and terminal."""
    environ = os.environ
    shown = {
        name: value
        for name, value in environ.items()
        if name.startswith("MEMORITER_")
        or name in ("STORAGE_DIR", "MEMORY_DIR")
        or is_decisive(name, prefixes)
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
                self._stream, proof = _connect_or_start(home) if start else connect(home)
                self._stream.settimeout(timeout_s)
                greeting = _receive(self._stream)
                if greeting is not None:
                    break
                self._stream.close()
        except OSError as error:
            raise Unavailable(error.strerror or str(error)) from error
        if greeting is None:
            raise Unavailable("the resident process ends as soon as it is started")
        is_process = greeting.get("proof", "") == proof
        if not is_process or greeting.get("identity") != identity():
            self._stream.close()
            other = (
                "belongs to another installation" if is_process else "has ended; another program has its port"
            )
            raise Unavailable(f"the resident process {other}")
        #: Beginnings of the variables that the process compares with its own.
        self._variables = [str(name) for name in greeting.get("variables") or ()]  # type: ignore[attr-defined]

    def ask(
        self, request: Mapping[str, object], options: Mapping[str, str] | None = None
    ) -> dict[str, object]:
        """Return the result of a request. With the global ``options`` of a command, it describes its caller."""
        if options is not None:
            request = {**request, "caller": describe_caller(options, self._variables)}
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


def connect(home: str) -> tuple[_socket.socket, str]:
    """Connect to the process of a home. Return the proof that it has to greet with; empty for a Unix socket.

    Raises `OSError` if there is no process.
    """
    import _socket  # `socket` would turn all constants into enums, which takes longer than the request

    folder, hello, proof = folder_of(home), b"", ""
    if not platform.is_private(folder):
        raise Unavailable(f"{folder} is not private")
    is_loopback = os.lstat(f"{folder}/socket").st_mode & 0o170000 == 0o100000
    stream = _socket.socket(_socket.AF_INET if is_loopback else platform.AF_UNIX, _socket.SOCK_STREAM)
    try:
        if is_loopback:
            port, token = read_token(folder)
            nonce = os.urandom(16).hex()
            hello = f"{nonce} {prove(token, 'client', nonce)}\n".encode()
            proof = prove(token, "process", nonce)
            stream.settimeout(LOOPBACK_S)
            stream.connect(("127.0.0.1", port))
            stream.sendall(hello)
        else:
            stream.connect(f"{folder}/socket")
    except TimeoutError as error:
        stream.close()
        raise ConnectionRefusedError(*error.args) from error
    except BaseException:
        stream.close()
        raise
    return stream, proof


def read_token(folder: str) -> tuple[int, str]:
    """Return the port and the token of a process that listens on loopback. Raises `OSError`."""
    with open(f"{folder}/socket", encoding="ascii") as file:  # noqa: PTH123
        port, _, token = file.read().partition(" ")
    if not port.isdecimal() or len(token) < 64:
        raise ConnectionRefusedError(f"{folder}/socket is incomplete")
    return int(port), token


def prove(token: str, who: str, nonce: str) -> str:
    """Return a text that only one who knows the token can compute."""
    import hmac

    return hmac.digest(token.encode(), f"{who} {nonce}".encode(), "sha256").hex()


def _connect_or_start(home: str) -> tuple[_socket.socket, str]:
    try:
        return connect(home)
    except (FileNotFoundError, ConnectionRefusedError):
        pass
    folder = folder_of(home)
    for missing in (home, folder):
        if not os.path.isdir(missing):  # noqa: PTH112
            os.makedirs(missing, mode=0o700, exist_ok=True)  # noqa: PTH103
            platform.make_private(missing)
    lock = platform.lock_folder(folder)
    try:
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

    if not sys.executable:
        raise Unavailable("this system cannot start a resident process")
    new = f"{folder}/new-{os.getpid()}"
    is_loopback = len(os.fsencode(new)) > platform.MAX_ADDRESS_BYTES
    with socket.socket(socket.AF_INET if is_loopback else platform.AF_UNIX, socket.SOCK_STREAM) as listener:
        # The socket gets its name when it accepts connections, so that no client finds it too early.
        if is_loopback:
            listener.bind(("127.0.0.1", 0))
            file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.write(file, f"{listener.getsockname()[1]} {os.urandom(32).hex()}".encode())
            os.close(file)
        else:
            listener.bind(new)
            os.chmod(new, 0o600)  # noqa: PTH101
        listener.listen(64)
        platform.replace(new, f"{folder}/socket")
        command = [sys.executable, "-P", "-m", "memoriter", "--home", home, "resident", "run"]
        # A session that the process itself starts, for example for a language model, must not call hooks.
        try:
            platform.start_server(command, {**os.environ, INSIDE_HOOK: "1"}, listener)
        except BaseException:
            os.unlink(f"{folder}/socket")  # noqa: PTH108
            raise


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
    if not _runs_long(home):
        return False
    try:
        lock = platform.lock_folder(folder_of(home), wait=False)
        try:
            os.unlink(f"{folder_of(home)}/socket")  # noqa: PTH108
        finally:
            os.close(lock)
    except OSError:
        return False
    return True
