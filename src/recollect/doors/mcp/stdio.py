"""Standard input and output: one client, one process. Standard output is the protocol's; everything else is on stderr.

The memory is opened in the background while the client introduces itself, so that its first question finds it warm.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from recollect import logs
from recollect.config import Settings
from recollect.doors.mcp import access, build
from recollect.doors.tooling import Access
from recollect.errors import RecollectError
from recollect.plugins import Host

log = logs.get("mcp")

LOOK_S = 2.0  #: how often the settings are read again while requests come
CLOSE_S = 3.0  #: for closing after a signal; the store is whole without, too


class OwnHost:
    """The host of this process: opened at first use, and anew when the owner's settings change or are mended."""

    def __init__(self, load: Callable[[], Settings], *, slot: str | None = None) -> None:
        self._load = load
        self._slot = slot
        self._settings: Settings | None = None
        self._host: Host | None = None
        self._before = list[Host]()  #: requests may still be using them
        self._warming: threading.Thread | None = None
        self._looked = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> Host:
        """The host as the settings are now."""
        with self._lock:
            if self._host is None or time.monotonic() - self._looked >= LOOK_S:
                self._host = self._renewed()
                self._looked = time.monotonic()
            return self._host

    def _renewed(self) -> Host:
        try:
            settings = self._load()
        except (RecollectError, OSError) as error:
            same = self._host is not None and self._host.error == str(error)
            return self._host if same and self._host else self._instead(Host(None, None, error=error))
        if self._host and settings == self._settings and not self._host.error:
            return self._host
        self._settings = settings
        return self._instead(Host.open(settings, slot=self._slot))

    def _instead(self, host: Host) -> Host:
        if self._host is not None:
            self._before.append(self._host)
        self._warming = threading.Thread(target=_warm, args=(host,), name="recollect-warm", daemon=True)
        self._warming.start()
        return host

    def close(self) -> bool:
        """Give back files and threads; False when a first sync still runs, which is then left as it stands."""
        with self._lock:
            if self._warming is not None:
                self._warming.join(CLOSE_S)
                if self._warming.is_alive():
                    return False
            for host in (*self._before, self._host):
                if host is not None:
                    host.close(CLOSE_S)
            return True


def _warm(host: Host) -> None:
    """Load the model, take in what changed, watch; a failure is said by the tools when they meet it."""
    with suppress(RecollectError, OSError):
        host.memory.manager.probe_embedding()
        host.start()


def serve(host: OwnHost, *, granted: Access, session: str | None = None) -> None:
    """Serve until the client closes its end, or until a signal."""
    access.granted.set(granted)
    access.session.set(session)
    opening = threading.Thread(target=host, name="recollect-open", daemon=True)
    opening.start()  # beside the protocol's package, which takes long to load
    import anyio

    if sys.stdin.isatty():
        log.warning(
            "waiting for an MCP client on standard input; `recollect mcp --help` says how to set one up"
        )
    anyio.run(_serve, host)
    if not host.close():
        _leave(0)


async def _serve(host: OwnHost) -> None:
    import asyncio

    import anyio
    from mcp.server.stdio import stdio_server

    server = build(host).server
    loop = asyncio.get_running_loop()
    signalled: int | None = None
    async with stdio_server() as (read, write):
        with anyio.CancelScope() as serving:

            def end(number: int) -> None:
                nonlocal signalled
                signalled = number
                serving.cancel()

            for number in (signal.SIGINT, signal.SIGTERM):
                with suppress(NotImplementedError):  # not on Windows
                    loop.add_signal_handler(number, end, number)
            await server.run(read, write, server.create_initialization_options())
        if signalled is not None:
            # What ran was cancelled, and outside programs are being stopped. A thread still waits for the client's
            # next line and cannot be woken, so the process is left from here.
            with anyio.move_on_after(CLOSE_S, shield=True):
                await loop.shutdown_default_executor()
                await anyio.to_thread.run_sync(host.close, abandon_on_cancel=True)
            _leave(128 + signalled)


def _leave(status: int) -> NoReturn:
    """End without waiting for threads; what they were writing is whole or not there at all."""
    sys.stderr.flush()
    os._exit(status)
