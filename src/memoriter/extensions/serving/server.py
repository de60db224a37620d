"""The server process: a socket, uvicorn, an orderly shutdown, and the list of gateways that run on a home."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn

from memoriter import logs
from memoriter.config import load as load_settings
from memoriter.errors import MemoriterError, NotFound, reason_of
from memoriter.files.platform import is_alive
from memoriter.server.http.auth import is_unspecified, make_private_folder, url_host, write_json
from memoriter.server.http.gateway import Gateway, SettingsLoader

log = logs.get("http.server")

BACKLOG = 1024
#: Time for a gateway that is listed as running to accept a connection.
CONNECT_TIMEOUT_S = 2.0
#: Time for requests that are running when the gateway shuts down.
SHUTDOWN_TIMEOUT_S = 30


class UvicornServer(uvicorn.Server):
    """Uvicorn's server. It ends streams before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway) -> None:
        super().__init__(config)
        self._gateway = gateway

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Shut down on a signal. Unlike uvicorn, do not raise the signal again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        signals = (signal.SIGINT, signal.SIGTERM)
        previous = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then shut down."""
        self._gateway.end_streams()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raise `MemoriterError` if the address cannot be used."""
    plain = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(plain, port, type=socket.SOCK_STREAM)[0]
        # Without the protocol, asyncio does not recognize TCP and leaves Nagle's algorithm on, which delays responses.
        listening = socket.socket(family, kind, protocol)
        try:
            if sys.platform != "win32":  # there, it would let two gateways share the port
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)  # from now on, clients can connect and wait
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise MemoriterError(
            f"Cannot listen on {url_host(plain)}:{port}: {reason_of(error)}. Use `--port 0` to pick a free port."
        ) from error
    return listening


class GatewayServer:
    """A gateway with its socket. Clients can connect immediately, and get responses while `run` runs."""

    def __init__(self, load: SettingsLoader, *, clock: Callable[[], float] = time.monotonic) -> None:
        options = load.settings.gateway
        self._load, self._clock = load, clock
        self._socket = listen(options.host, options.port)
        self._port: int = self._socket.getsockname()[1]
        self._between: Callable[[], None] | None = None
        self.address = local_address(options.host, self._port)
        self._prepare()

    def _prepare(self) -> None:
        self.gateway = Gateway(self._load, port=self._port, clock=self._clock)
        config = uvicorn.Config(
            self.gateway.asgi,
            http="h11",  # the same parser on every machine
            # Windows gives a socket only to one loop of the other kind, and `restart` serves again.
            loop="asyncio:SelectorEventLoop" if sys.platform == "win32" else "auto",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        )
        self._server = UvicornServer(config, self.gateway)

    def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Serve until a signal arrives or `stop` is called."""
        self.gateway.on_ready = on_ready
        home = self._load.settings.home
        with contextlib.closing(self._socket), listed_as_running(home, self.address):
            SERVING[home] = self
            try:
                # Uvicorn closes its copy of the socket. Ours stays open, so that requests wait during a restart.
                self._server.run(sockets=[self._socket.dup()])
                while work := self._between:
                    self._between = None
                    work()
                    self._reload()
                    self._prepare()
                    self._server.run(sockets=[self._socket.dup()])
            finally:
                if SERVING.get(home) is self:
                    del SERVING[home]

    def stop(self) -> None:
        """Shut down in order. Any thread may call this."""
        self._between = None
        self._server.should_exit = True

    def restart(self, work: Callable[[], None]) -> None:
        """Shut down in order, do this work while no memory is open, and serve again. Any thread may call this."""
        self._between = work
        self._server.should_exit = True

    def _reload(self) -> None:
        """Load the settings again. With wrong ones, the gateway keeps those that it has, and each agent says so."""
        arguments = {**self._load.arguments, "home": self._load.settings.home}
        try:
            settings = load_settings(config=self._load.config, arguments=arguments)
        except MemoriterError as error:
            log.warning("the settings of the gateway are unchanged: %s", error)
        else:
            self._load = replace(self._load, settings=settings)


#: The newest gateway of this process for each home.
SERVING: dict[Path, GatewayServer] = {}


def local_address(host: str, port: int) -> str:
    """Return the URL of the gateway for programs on this machine."""
    return f"http://{'127.0.0.1' if is_unspecified(host) else url_host(host)}:{port}"


# ---- running gateways -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def listed_as_running(home: Path, address: str) -> Iterator[None]:
    """List this gateway for the owner's other processes, for as long as it runs."""
    folder = make_private_folder(home / "gateway" / "running")
    file = folder / f"{os.getpid()}.json"
    write_json(file, {"pid": os.getpid(), "address": address})
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink()


def find_running(home: Path) -> str:
    """Return the address of the gateway on this home that was started last. Raise `NotFound` if none runs."""
    folder = home / "gateway" / "running"
    for file in sorted(folder.glob("*.json"), key=_modified_at, reverse=True):
        try:
            listed = json.loads(file.read_text("utf-8"))
            if is_alive(int(listed["pid"])) and _accepts_connections(str(listed["address"])):
                return str(listed["address"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        with contextlib.suppress(OSError):
            file.unlink()  # its gateway was killed
    raise NotFound("No gateway is running. Start one with `memoriter serve`.")


def _accepts_connections(address: str) -> bool:
    """Check the port too: after a restart, another program may have the process id of a killed gateway."""
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 80), timeout=CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def _modified_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0  # its gateway has just ended
