"""Listening: a socket, uvicorn, and an orderly end: requests that run are answered, streams end, watchers stop."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn

from memoriter.errors import MemoriterError, NotFound
from memoriter.server.http import auth
from memoriter.server.http.auth import bracketed, is_everywhere
from memoriter.server.http.gateway import Gateway
from memoriter.server.http.heads import Protocol

if TYPE_CHECKING:
    from memoriter.server.http.agents import Load

BACKLOG = 1024
LOOK_S = 2.0  #: for a gateway that is said to run to take a connection
GRACE_S = 30  #: requests that still run get so long when the gateway is asked to end


class Server(uvicorn.Server):
    """Uvicorn's server, whose streams end before it waits for its connections."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway) -> None:
        super().__init__(config)
        self._gateway = gateway

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals end us in order, and that is that: uvicorn would raise them once more afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sign: signal.signal(sign, self.handle_exit) for sign in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for sign, handler in before.items():
                signal.signal(sign, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then as uvicorn does."""
        self._gateway.end_streams()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; what is wrong with the address is one sentence."""
    plain = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(plain, port, type=socket.SOCK_STREAM)[0]
        # With its protocol named, or asyncio does not know it for TCP, and each answer waits for Nagle's algorithm.
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)  # from here on nobody is turned away, only kept waiting
        except OSError:
            listening.close()
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise MemoriterError(
            f"The gateway cannot listen at {bracketed(plain)}:{port}: {reason}. Another port: --port 0."
        ) from error
    return listening


class Serving:
    """A gateway with its socket: it listens from the start, and answers from `run` on."""

    def __init__(self, load: Load, *, clock: Callable[[], float] = time.monotonic) -> None:
        wanted = load.settings.gateway
        self._home = load.settings.home
        self._listening = listen(wanted.host, wanted.port)
        port = self._listening.getsockname()[1]
        self.address = address_of(wanted.host, port)
        self.gateway = Gateway(load, port=port, clock=clock)
        config = uvicorn.Config(
            self.gateway.asgi,
            http=Protocol,
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=GRACE_S,
        )
        self._server = Server(config, self.gateway)

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until a signal comes, or `stop`."""
        self.gateway.started = ready
        with contextlib.closing(self._listening), running(self._home, self.address):
            self._server.run(sockets=[self._listening])

    def stop(self) -> None:
        """End in order; may be called from any thread."""
        self._server.should_exit = True


def address_of(host: str, port: int) -> str:
    """The URL for somebody on this machine."""
    return f"http://{'127.0.0.1' if is_everywhere(host) else bracketed(host)}:{port}"


# ---- which gateways run ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def running(home: Path, address: str) -> Iterator[None]:
    """Note for other processes of the owner that a gateway runs here, as long as it does."""
    folder = auth.folder(home / "gateway" / "running")
    file = folder / f"{os.getpid()}.json"
    auth.write(file, {"pid": os.getpid(), "address": address})
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink()


def running_at(home: Path) -> str:
    """The address of the gateway that was started last on this home; raises when none runs."""
    folder = home / "gateway" / "running"
    for file in sorted(folder.glob("*.json"), key=_written_at, reverse=True):
        try:
            noted = json.loads(file.read_text("utf-8"))
            if _lives(int(noted["pid"])) and _listens(str(noted["address"])):
                return str(noted["address"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        with contextlib.suppress(OSError):
            file.unlink()  # of a gateway that was killed
    raise NotFound("No gateway runs here; start one with `memoriter serve`.")


def _listens(address: str) -> bool:
    """Whether somebody is there: after a restart, another program may have the number of a process that was killed."""
    place = urlsplit(address)
    try:
        socket.create_connection((place.hostname or "", place.port or 80), timeout=LOOK_S).close()
    except OSError:
        return False
    return True


def _written_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0  # its gateway has just ended


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
