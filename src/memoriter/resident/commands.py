"""The commands `resident status` and `resident stop`, and the check of the resident process for `doctor`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from memoriter.cli import render
from memoriter.cli.context import Json
from memoriter.files.platform import command_line, is_private
from memoriter.resident import client

if TYPE_CHECKING:
    from memoriter.cli.context import GlobalOptions
    from memoriter.config import Settings
    from memoriter.records import Finding

#: How long `init` waits for a process that starts on a busy machine, in seconds.
START_S = 60.0
NOT_RUNNING = "not running; the next hook or search starts it"

app = typer.Typer(
    help="Show or stop the process that keeps the memory open for hooks and commands.", no_args_is_help=True
)


@app.command("run", hidden=True)
def run(context: typer.Context) -> None:
    """Serve on the socket that is standard input. Clients start this command themselves."""
    from memoriter.resident.server import serve

    serve(Path(context.obj.home))


@app.command("status")
def status(context: typer.Context, as_json: Json = False) -> None:
    """Show whether the process runs."""
    settings = context.obj.settings()
    found = _ask(settings, "describe")
    running = {"running": found is not None, "enabled": settings.resident.enabled}
    shown = {
        "idleMinutes" if name == "idle_minutes" else name: value for name, value in (found or {}).items()
    }
    render.show(as_json, running | shown, f"{state(settings).capitalize()}.")


@app.command("stop")
def stop(context: typer.Context, as_json: Json = False) -> None:
    """Stop the process. The next hook or search starts it again, unless `resident.enabled` is off."""
    pid = stop_process(context.obj.settings())
    text = "Not running." if pid is None else f"Stopped process {pid}."
    render.show(as_json, {"stopped": pid}, text)


def state(settings: Settings) -> str:
    """Return whether the process runs, in words."""
    found = _ask(settings, "describe")
    if found is not None:
        return _describe(found)
    if not settings.resident.enabled:
        return f"switched off by {settings.origin('resident.enabled')}"
    return NOT_RUNNING


def findings(load: Callable[[], Settings]) -> Iterator[Finding]:
    """Check the process for `doctor`. Wrong settings have a finding of their own."""
    from memoriter.errors import MemoriterError
    from memoriter.records import Finding

    try:
        settings = load()
    except MemoriterError:
        return
    folder = Path(client.folder_of(str(settings.home)))
    if folder.exists() and not is_private(folder):
        text = f"{folder} is not a private folder, so hooks and commands open the memory themselves, which is slow"
        yield Finding(
            "resident process", "note", text, f"Remove it: `{command_line(['rm', '-r', str(folder)])}`"
        )
    else:
        yield Finding("resident process", "ok", state(settings))


def continue_index(settings: Settings, options: GlobalOptions) -> bool:
    """Let the process compute the missing vectors of a memory; return whether it does."""
    given = options.given()
    if client.is_off(given, os.environ):
        return False
    request = {"operation": "index", "arguments": given}
    try:
        client.Connection(str(settings.home), timeout_s=START_S).ask(request, given)
    except (client.Unavailable, OSError):
        return False
    return True


def stop_process(settings: Settings) -> int | None:
    """Stop the process, if it runs; return its id."""
    found = _ask(settings, "stop")
    return int(str(found["pid"])) if found else None


def _describe(found: Mapping[str, object]) -> str:
    answers = render.count(int(str(found["answered"])), "answer")
    return f"process {found['pid']}, {answers}, ends after {found['idle_minutes']:g} idle minutes"


def _ask(settings: Settings, operation: str) -> dict[str, object] | None:
    try:
        connection = client.Connection(str(settings.home), start=False, timeout_s=client.wait_s())
        return connection.ask({"operation": operation})
    except client.Unavailable:
        return None
