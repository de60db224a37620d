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
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from memoriter import logs
from memoriter.agent import Agent
from memoriter.async_memory import in_thread
from memoriter.config import Settings
from memoriter.errors import MemoriterError
from memoriter.server.mcp import access, build
from memoriter.tools.tool import Access

log = logs.get("mcp")

LOOK_S = 2.0  #: how often the settings are read again while requests come
CLOSE_S = 3.0  #: for closing; the store is whole without, too
GRACE_S = 60.0  #: after which a host that was replaced is closed: requests may still be using it
THREADS = 16  #: requests that are answered at once; more wait


class OwnHost:
    """The host of this process: opened at first use, and anew when the owner's settings change or are mended."""

    def __init__(self, load: Callable[[], Settings], *, slot: str | None = None) -> None:
        self._load = load
        self._slot = slot
        self._settings: Settings | None = None
        self._host: Agent | None = None
        self._before: dict[Agent, threading.Timer] = {}  #: those that were replaced, until they are closed
        self._looked = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> Agent:
        """The host as the settings are now."""
        with self._lock:
            if self._host is None or time.monotonic() - self._looked >= LOOK_S:
                self._host = self._renewed()
                self._looked = time.monotonic()
            return self._host

    def _renewed(self) -> Agent:
        try:
            settings = self._load()
        except (MemoriterError, OSError) as error:
            if self._host is not None and self._host.error == str(error):
                return self._host
            log.warning("memory is disabled: %s", error)
            return self._instead(Agent(None, None, error=error))
        if self._host and settings == self._settings and not self._host.error:
            return self._host
        self._settings = settings
        return self._instead(Agent.open(settings, slot=self._slot))

    def _instead(self, host: Agent) -> Agent:
        old = self._host
        if old is None:
            return host
        if host.error and host.error == old.error:
            host.close(0)
            return old
        timer = threading.Timer(GRACE_S, self._retired, (old,))
        timer.daemon = True
        self._before[old] = timer
        timer.start()
        threading.Thread(target=host.start, name="memoriter-fresh", daemon=True).start()
        return host

    def _retired(self, host: Agent) -> None:
        with self._lock:
            ours = self._before.pop(host, None) is not None
        if ours:
            host.close(CLOSE_S)

    def warm_up(self) -> None:
        """Open the memory and load our own model; what fails is said by the tools when they meet it."""
        with suppress(MemoriterError, OSError):
            memory = self().memory
            if memory.settings.memory.backend == "builtin":
                memory.engine.probe_embedding()

    def keep_fresh(self) -> None:
        """Take in what changed, and watch."""
        self().start()

    def close(self) -> None:
        """Give back files and threads."""
        with self._lock:
            before, self._before = self._before, {}
            for timer in before.values():
                timer.cancel()
            for host in (*before, self._host):
                if host is not None:
                    host.close(CLOSE_S)


def serve(host: OwnHost, *, granted: Access, session: str | None = None) -> None:
    """Serve until the client closes its end, or until a signal."""
    access.granted.set(granted)
    access.session.set(session)
    logs.setup()  # until the settings, which may be wrong, say how much is shown
    if sys.stdin.isatty():
        sys.stderr.write("Waiting for an MCP client on standard input; see `memoriter mcp --help`.\n")
    # Beside the protocol's package, which takes long to load.
    threading.Thread(target=host.warm_up, name="memoriter-warm", daemon=True).start()
    import anyio

    anyio.run(_serve, host)


async def _serve(host: OwnHost) -> None:
    import asyncio

    import anyio
    from mcp.server.stdio import stdio_server

    server = build(host).server
    loop = asyncio.get_running_loop()
    threads = ThreadPoolExecutor(THREADS, "memoriter-mcp")
    loop.set_default_executor(threads)
    status: int | None = None
    async with stdio_server() as (read, write):
        async with anyio.create_task_group() as serving:

            def end(number: int) -> None:
                nonlocal status
                status = 128 + number
                serving.cancel_scope.cancel()

            for number in (signal.SIGINT, signal.SIGTERM):
                with suppress(NotImplementedError):  # not on Windows
                    loop.add_signal_handler(number, end, number)
            serving.start_soon(in_thread, host.keep_fresh)
            await server.run(read, write, server.create_initialization_options())
            serving.cancel_scope.cancel()
        # What ran was cancelled, and outside programs are being stopped: give them a moment.
        with anyio.move_on_after(CLOSE_S, shield=True) as closing:
            await anyio.to_thread.run_sync(threads.shutdown, abandon_on_cancel=True)
            await anyio.to_thread.run_sync(host.close, abandon_on_cancel=True)
        if status is not None or closing.cancelled_caught:
            # A thread still works, or waits for the client's next line, and cannot be woken. Leave without it: what
            # it was writing is whole or not there at all.
            sys.stderr.flush()
            os._exit(status or 0)
