"""MCP over standard input and output: one client, one process. All logs go to standard error.

The memory opens in the background while the client connects, so that the first request is fast.
"""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from memoriter import logs
from memoriter.agent import ReloadingAgent
from memoriter.server.mcp import build
from memoriter.server.mcp.view import granted_access, session_key
from memoriter.tools.tool import Access

#: Time for the memory to close. Its files are consistent without it, too.
CLOSE_TIMEOUT_S = 3.0
#: Maximum number of concurrent requests. Others wait.
MAX_THREADS = 16


def serve(agent: ReloadingAgent, *, access: Access, session: str | None = None) -> None:
    """Serve until the client closes its end or a signal arrives."""
    granted_access.set(access)
    session_key.set(session)
    logs.setup()  # until the settings are loaded, which may fail
    if sys.stdin.isatty():
        sys.stderr.write("Waiting for an MCP client on standard input. See `memoriter mcp --help`.\n")
    # At the same time as the `mcp` package, which is slow to import.
    agent.wake(load_model=True)
    import anyio

    anyio.run(_serve, agent)


async def _serve(agent: ReloadingAgent) -> None:
    import asyncio

    import anyio
    from mcp.server.stdio import stdio_server

    server = build(agent).server
    loop = asyncio.get_running_loop()
    threads = ThreadPoolExecutor(MAX_THREADS, "memoriter-mcp")
    loop.set_default_executor(threads)
    status: int | None = None
    async with stdio_server() as (read, write):
        async with anyio.create_task_group() as group:

            def end(number: int) -> None:
                nonlocal status
                status = 128 + number
                group.cancel_scope.cancel()

            for number in (signal.SIGINT, signal.SIGTERM):
                with suppress(NotImplementedError):  # not on Windows
                    loop.add_signal_handler(number, end, number)
            await server.run(read, write, server.create_initialization_options())
            group.cancel_scope.cancel()
        # Running requests were cancelled. Give external programs a moment to stop.
        with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True) as closing:
            await anyio.to_thread.run_sync(threads.shutdown, abandon_on_cancel=True)
            close = partial(agent.close, CLOSE_TIMEOUT_S, cancel=True)
            await anyio.to_thread.run_sync(close, abandon_on_cancel=True)
        if status is not None or closing.cancelled_caught:
            # A thread is still working or reading standard input, and cannot be interrupted. Exit without it. Every
            # write is atomic, so no file is left half-written.
            sys.stderr.flush()
            os._exit(status or 0)
