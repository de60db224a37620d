"""The resident process of a home: it keeps memories open and answers hooks and commands on a private socket.

Requests and responses are those of `server.lines`, one per connection. The process ends when it has been idle for some
time, when its package changes on disk, when its socket is gone, or when a client asks for it. Before it ends it removes
the socket and answers what has been sent to it. `service` says what it does for a request.
"""

from __future__ import annotations

import os
import socket
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoriter import logs
from memoriter.background import Task, Workers
from memoriter.files import platform
from memoriter.resident import client
from memoriter.resident.service import OpenMemories, Service, redirect_output, variables_of_extensions
from memoriter.server.lines import CLOSE_TIMEOUT_S, MAX_LINE, MAX_THREADS, LineServer

if TYPE_CHECKING:
    from memoriter.tools.tool import Outcome, Result

log = logs.get("resident")

#: A client that has connected sends its request within this time.
REQUEST_S = 30.0
#: A client on loopback begins with a nonce and a proof.
HELLO_BYTES = 256
#: How often the process checks that its socket is still there.
CHECK_S = 30.0
#: Time without a request after which the process does the chores of extensions, until the next request.
CHORES_AFTER_S = 300.0
Handler = Callable[[dict[str, Any]], "tuple[Outcome, Result]"]


def serve(home: Path) -> None:
    """Serve on the socket that is standard input, until there is a reason to end."""
    listener = platform.inherited_listener()
    with open(os.devnull, "rb") as null:  # noqa: PTH123
        os.dup2(null.fileno(), 0)
    os.chdir(home)  # a project's folder can be moved or unmounted
    logs.setup()
    logs.to_file(home)
    redirect_output()
    Resident(listener, home).run()


class Resident:
    """Accepts connections on a socket until there is a reason to end."""

    def __init__(self, listener: socket.socket, home: Path) -> None:
        self._listener = listener
        self._home = home
        self._folder = Path(client.folder_of(str(home)))
        self._memories = OpenMemories()
        service = Service(home.resolve(), self._memories, self)
        self._handlers: dict[str, Handler] = {"command": service.command, "hook": service.hook}
        self._handlers |= {"index": service.index, "describe": self._describe, "stop": self._stop}
        self._socket_id = _file_id(self._folder / "socket")
        #: Clients on loopback have to know it.
        self._token = client.read_token(str(self._folder))[1] if listener.family == socket.AF_INET else ""
        self._requests = ThreadPoolExecutor(MAX_THREADS, "memoriter-resident")
        self._lock = threading.Lock()
        self._active = 0
        self._answered = 0
        self._started = time.time()
        self._used = time.monotonic()
        self._idle_s = 60.0
        #: Why the process ends; empty while it serves.
        self._ending = ""
        #: Whether the package has changed, so that a new process must answer.
        self._is_outdated = False
        #: Work after an answer, one piece at a time.
        self.background = Workers("memoriter-after", keep=True)
        self._chores = Workers("memoriter-chores")
        #: The chores since the last request; None before they start.
        self._chore: Task[None] | None = None

    def run(self) -> None:
        """Serve until there is a reason to end."""
        package = _package_state()
        stream: socket.socket | None = None
        try:
            while not (self._ending or self._reason_to_end()):
                self._listener.settimeout(max(0.01, min(CHECK_S, self._next_event() - time.monotonic())))
                try:
                    stream, _ = self._listener.accept()
                except TimeoutError:
                    stream = None
                if _package_state(package) != package:
                    self._is_outdated = True
                    break
                if stream is not None:
                    self._accept(stream)
        finally:
            self._end(stream if self._is_outdated else None)

    def end_soon(self, reason: str) -> None:
        """End after the requests that are running."""
        self._ending = reason
        self._wake()

    def end_after(self, idle_s: float) -> None:
        """End after this number of seconds without a request. The settings of the last request decide."""
        is_sooner = idle_s < self._idle_s
        self._idle_s = idle_s
        if is_sooner:
            self._wake()

    @property
    def idle_minutes(self) -> float:
        """Minutes without a request after which the process ends."""
        return self._idle_s / 60

    def _wake(self) -> None:
        """Wake up `accept`, which waits as long as it was told before."""
        with suppress(OSError):
            client.connect(str(self._home))[0].close()

    def _next_event(self) -> float:
        """Return when the chores begin, or when the process ends."""
        return self._idle_until() if self._chore else self._used + min(CHORES_AFTER_S, self._idle_s / 2)

    def _idle_until(self) -> float:
        return self._used + self._idle_s

    def _reason_to_end(self) -> str:
        with self._lock:
            if self._active or self.background.busy or self._chores.busy or self._memories.busy:
                return ""
        if _file_id(self._folder / "socket") != self._socket_id:
            return "the socket is gone"
        if time.monotonic() < self._idle_until():
            self._memories.trim()
            if self._chore is None and time.monotonic() >= self._next_event():
                self._chore = self._chores.submit(self._memories.do_chores)
            return ""
        return "idle"

    def _accept(self, stream: socket.socket) -> None:
        if not self._token and not platform.is_same_user(stream):
            stream.close()
            return
        with self._lock:
            self._active += 1
        if self._chore is not None:
            self._chore.stop()
            self._chore = None
        self._requests.submit(self._serve, stream)

    def _serve(self, stream: socket.socket) -> None:
        try:
            stream.settimeout(REQUEST_S)
            with (
                stream,
                stream.makefile("w", encoding="utf-8") as responses,
                stream.makefile("rb") as requests,
            ):
                server = LineServer(self._call, responses)
                greeting: dict[str, object] = {"ready": True, "identity": client.identity()}
                greeting |= {"pid": os.getpid(), "variables": variables_of_extensions()}
                if self._token:
                    hello = requests.readline(HELLO_BYTES).decode("ascii", "replace")
                    nonce, _, proof = hello.strip().partition(" ")
                    if proof != client.prove(self._token, "client", nonce):
                        return
                    greeting["proof"] = client.prove(self._token, "process", nonce)
                server.respond(greeting)
                if line := requests.readline(MAX_LINE):
                    server.handle(line)
        except OSError:
            pass  # the client is gone
        finally:
            with self._lock:
                self._active -= 1
                self._used = time.monotonic()

    def _call(self, request: dict[str, Any]) -> tuple[Outcome, Result]:
        handler = self._handlers.get(request["operation"])
        if handler is None:
            return "unknown", {"error": f"There is no operation {request['operation']!r}."}
        try:
            outcome, result = handler(request)
        except client.Declined as error:
            return "refused", {"error": str(error), "code": "declined"}
        with self._lock:
            self._answered += outcome == "ok" and handler not in (self._describe, self._stop)
        return outcome, result

    def _describe(self, _: dict[str, Any]) -> tuple[Outcome, Result]:
        return "ok", {
            "pid": os.getpid(),
            "since": self._started,
            "answered": self._answered,
            "idle_minutes": self.idle_minutes,
        }

    def _stop(self, _: dict[str, Any]) -> tuple[Outcome, Result]:
        threading.Thread(target=self.end_soon, args=("stopped",), daemon=True).start()
        return "ok", {"pid": os.getpid()}

    def _end(self, refused: socket.socket | None) -> None:
        """Remove the socket, answer what is waiting unless a new process must, and close the memories."""
        with suppress(OSError):
            lock = platform.lock_folder(str(self._folder))
            try:
                if _file_id(self._folder / "socket") == self._socket_id:
                    (self._folder / "socket").unlink()
                    self._folder.rmdir()  # unless it holds more
            finally:
                os.close(lock)
        if refused is not None:
            refused.close()  # only now, when the client cannot reach this process again: it starts a new one
        self._listener.setblocking(False)
        with suppress(OSError):
            while True:
                stream, _ = self._listener.accept()
                if self._is_outdated:
                    stream.close()
                else:
                    self._accept(stream)
        self._listener.close()
        self._requests.shutdown(wait=True)
        self._chores.close(CLOSE_TIMEOUT_S, cancel=True)
        self.background.close(CLOSE_TIMEOUT_S)
        self._memories.trim(0)


def _file_id(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


PackageState = dict[str, tuple[int, int] | None]


def _package_state(known: PackageState | None = None) -> PackageState:
    """Return time and size of the package's files that were loaded, or of the same files as before.

    The folder of installed packages is one of them: a new package may read documents that this process cannot read.
    """
    if known is None:
        folder = str(Path(__file__).parent.parent) + os.sep
        files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
        known = dict.fromkeys(file for file in files if file.startswith(folder))
        known[sysconfig.get_path("purelib")] = None
    state: PackageState = {}
    for file in known:
        try:
            found = os.stat(file)  # noqa: PTH116 - 200 files for each request
        except OSError:
            state[file] = None
        else:
            state[file] = (found.st_mtime_ns, found.st_size)
    return state
