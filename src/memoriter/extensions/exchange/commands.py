"""The commands `pull` and `push`, which copy notes between the memory and a folder."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli import render
from memoriter.cli.context import Json

if TYPE_CHECKING:
    from memoriter.errors import MemoriterError
    from memoriter.extensions.exchange.folder import ExchangedNote, ExchangeReport

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="Your folder of notes. Created if it is missing.")
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Keep both sides in step until you stop the command with Ctrl-C.")
]

WORDS = {
    "pulled": "pulled",
    "pushed": "pushed",
    "removed here": "removed from the folder",
    "removed there": "removed from the memory",
    "to push": "changed in the folder, run `memoriter push`",
    "to pull": "changed in the memory, run `memoriter pull`",
}


pull_command, push_command = (typer.Typer(add_completion=False) for _ in range(2))


@pull_command.command(epilog="Examples: memoriter pull ~/notes · memoriter pull ~/notes --watch")
def pull(context: typer.Context, folder: Folder, watch: Watch = False, as_json: Json = False) -> None:
    """Copy notes that have changed in the memory to a folder.

    Notes that you have changed in the folder stay as they are, until you push them. If a note has changed on both
    sides, the folder keeps your version, and the memory's version is written beside it.
    """
    _exchange(context, folder, watch, as_json, push=False)


@push_command.command(epilog="Examples: memoriter push ~/notes · memoriter push ~/notes --json")
def push(context: typer.Context, folder: Folder, watch: Watch = False, as_json: Json = False) -> None:
    """Copy notes that you have changed in a folder to the memory.

    Notes that have changed in the memory stay as they are, until you pull them. If a note has changed on both sides,
    the memory keeps its version, and your version is written beside it.
    """
    _exchange(context, folder, watch, as_json, push=True)


def _exchange(context: typer.Context, folder: Path, watch: bool, as_json: bool, *, push: bool) -> None:
    from memoriter.extensions.exchange.folder import exchange

    with context.obj.memory() as memory:
        both = exchange(memory, folder)
        if watch:
            stop = threading.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: stop.set())
            both.watch(lambda result: _print_exchange(result, as_json), stop)
            return
        report = both.push() if push else both.pull()
    _print_exchange(report, as_json)
    if report.problems:
        raise typer.Exit(1)


def _print_exchange(result: ExchangeReport | MemoriterError, as_json: bool) -> None:
    from memoriter.errors import MemoriterError

    if isinstance(result, MemoriterError):
        sys.stderr.write(f"memoriter: {result}\n")
        return
    render.show(as_json, result, lambda: _print_notes(result))


def _print_notes(report: ExchangeReport) -> None:
    lines = [f"{note.path}: {_describe(note)}" for note in report.notes]
    lines.append(f"{render.count(report.same, 'note')} unchanged.")
    sys.stdout.write(render.plain("\n".join(lines)) + "\n")
    sys.stdout.flush()
    for problem in report.problems:
        sys.stderr.write(render.plain(f"memoriter: {problem.path}: {problem.reason}") + "\n")


def _describe(note: ExchangedNote) -> str:
    if note.action == "conflict":
        return f"changed on both sides; both versions are kept, the other one as {note.copy}"
    return WORDS[note.action]
