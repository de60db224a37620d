"""The command `watch`: it keeps the index up to date while files change."""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING

import typer

from memoriter.cli import render
from memoriter.cli.context import Json

if TYPE_CHECKING:
    from memoriter.agent.service import Synced

watch_command = typer.Typer(add_completion=False)


@watch_command.command(epilog="Example: memoriter watch")
def watch(context: typer.Context, as_json: Json = False) -> None:
    """Keep the index up to date while files change. Prints each update. Stop with Ctrl-C."""
    from memoriter.agent import Agent
    from memoriter.agent.service import MemoryService
    from memoriter.hosts import queues

    with context.obj.memory() as memory:
        service = MemoryService(
            memory,
            on_sync=lambda synced: _print_synced(synced, as_json),
            on_progress=None if as_json else render.progress_lines(),
        )
        with service:
            with Agent.open(memory.settings, service=service, slot="memory-full") as agent:
                for host in queues():
                    host.process_queue(agent)
            if not as_json:
                sys.stdout.write(f"{memory.settings.workspace}: {service.watching}\n")
                sys.stdout.flush()
            _wait_for_interrupt()


def _wait_for_interrupt() -> None:
    # A shell makes background programs ignore SIGINT, so the handler is set explicitly.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        while True:
            time.sleep(3600)  # unlike a lock, a signal interrupts it on Windows
    except KeyboardInterrupt:
        return


def _print_synced(synced: Synced, as_json: bool) -> None:
    report = synced.report
    counts = {
        name: getattr(report, name) if report else 0
        for name in ("changed", "removed", "files", "chunks", "pending")
    }
    if as_json:
        render.to_json({"reason": synced.reason, **counts, "error": synced.error}, indent=None)
    elif synced.error or counts["changed"] or counts["removed"] or synced.reason == "start":
        text = (
            synced.error
            or "{changed} changed, {removed} removed; files: {files}, chunks: {chunks}".format(**counts)
        )
        note = f". Note: {report.degraded}" if report and report.degraded else ""
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} {synced.reason}: {text}{note}\n")
        sys.stdout.flush()
