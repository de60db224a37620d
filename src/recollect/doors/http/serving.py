"""Listening: a socket, uvicorn, and an orderly end: requests that run are answered, streams end, watchers stop."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from recollect.doors.http import private
from recollect.doors.http.gateway import Gateway
from recollect.doors.http.places import bracketed, is_everywhere
from recollect.errors import NotFound, RecollectError

if TYPE_CHECKING:
    from recollect.doors.http.agents import Load

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
        family, *_, address = socket.getaddrinfo(plain, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecollectError(
            f"The gateway cannot listen at {bracketed(plain)}:{port}: {reason}. Another port: --port 0."
        ) from error
    return listening


def serve(load: Load, ready: Callable[[Gateway, str], None]) -> None:
    """Serve until a signal comes; ``ready`` is told the address."""
    wanted = load.settings.gateway
    with contextlib.closing(listen(wanted.host, wanted.port)) as listening:
        port = listening.getsockname()[1]
        gateway = Gateway(load, port=port)
        config = uvicorn.Config(
            gateway.asgi,
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=GRACE_S,
        )
        address = address_of(wanted.host, port)
        server = Server(config, gateway)
        gateway.started = lambda: ready(gateway, address)
        with running(load.settings.home, address):
            server.run(sockets=[listening])


def address_of(host: str, port: int) -> str:
    """The URL for somebody on this machine."""
    return f"http://{'127.0.0.1' if is_everywhere(host) else bracketed(host)}:{port}"


# ---- which gateways run ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def running(home: Path, address: str) -> Iterator[None]:
    """Note for other processes of the owner that a gateway runs here, as long as it does."""
    folder = private.folder(home / "gateway" / "running")
    file = folder / f"{os.getpid()}.json"
    private.write(file, {"pid": os.getpid(), "address": address})
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink()


def running_at(home: Path) -> str:
    """The address of the gateway that was started last on this home; raises when none runs."""
    folder = home / "gateway" / "running"
    files = sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files:
        try:
            noted = json.loads(file.read_text("utf-8"))
            if _lives(int(noted["pid"])):
                return str(noted["address"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        with contextlib.suppress(OSError):
            file.unlink()  # of a gateway that was killed
    raise NotFound("No gateway runs here; start one with `recollect serve`.")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
