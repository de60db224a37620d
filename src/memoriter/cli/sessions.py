"""Commands that write and follow notes: `save`, `summarise` and `watch`."""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli import render
from memoriter.cli.context import Json, Words, read_words

if TYPE_CHECKING:
    from memoriter.agent.service import Synced
    from memoriter.records import Saved

NO_MESSAGES = "The session has no messages. Nothing was written."


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Example: memoriter save 'Anna prefers tea.' --title Anna --tags people")(save)
    app.command(epilog="Example: memoriter summarise sessions/3f2a.jsonl")(summarise)
    app.command(epilog="Example: memoriter watch")(watch)


def save(
    context: typer.Context,
    words: Annotated[
        Words, typer.Argument(metavar="TEXT", help="Text of the note. '-': read it from standard input.")
    ],
    title: Annotated[str, typer.Option(help="Title of the note.")] = "",
    tags: Annotated[str, typer.Option(help="Tags, separated by commas.")] = "",
    category: Annotated[str | None, typer.Option(help="Write to memory/<category>/<title>.md.")] = None,
    as_json: Json = False,
) -> None:
    """Save a note, to today's log or to a file of a category.

    `save` writes text that people read to a file. `add` remembers one statement, which can be merged, replaced and
    forgotten.
    """
    text = read_words(words, "The note is empty.")
    tag_list = [tag.strip() for tag in tags.split(",") if tag.strip()]
    with context.obj.memory() as memory:
        _print_saved(memory.save(text, title, tag_list, category), as_json)


def summarise(
    context: typer.Context,
    transcript: Annotated[
        str, typer.Argument(help="Path of a transcript, or its citation: sessions/….jsonl.")
    ],
    as_json: Json = False,
) -> None:
    """Write the summary of a finished session to memory/, once."""
    with context.obj.memory() as memory:
        saved = memory.summarise_transcript(transcript)
    _print_saved(saved, as_json)


def _print_saved(saved: Saved | None, as_json: bool) -> None:

    verb = "Already saved" if saved and saved.already else "Saved"
    text = f"{verb}: {saved.citation}\n{saved.note or ''}" if saved else NO_MESSAGES
    render.show(as_json, lambda tools: tools.notes.SavedJson.of(saved), text)


# ---- watch ----------------------------------------------------------------------------------------------------


def watch(context: typer.Context, as_json: Json = False) -> None:
    """Keep the index up to date while files change. Prints each update. Stop with Ctrl-C."""
    from memoriter.agent.service import MemoryService
    from memoriter.hosts import hosts

    with context.obj.memory() as memory:
        service = MemoryService(
            memory,
            on_sync=lambda synced: _print_synced(synced, as_json),
            on_progress=None if as_json else render.progress_lines(),
        )
        with service:
            for host in hosts().values():
                host.process_sessions(service)
            if not as_json:
                sys.stdout.write(f"{memory.settings.workspace}: {service.watching}\n")
                sys.stdout.flush()
            _wait_for_interrupt()


def _wait_for_interrupt() -> None:
    # A shell makes background programs ignore SIGINT, so the handler is set explicitly.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        while not threading.Event().wait(3600):
            pass
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
        text = synced.error or "{changed} changed, {removed} removed; {files} files, {chunks} chunks".format(
            **counts
        )
        note = f". Note: {report.degraded}" if report and report.degraded else ""
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} {synced.reason}: {text}{note}\n")
        sys.stdout.flush()
