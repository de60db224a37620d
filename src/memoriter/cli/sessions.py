"""The commands that write down and keep fresh: `save`, `summarise`, `watch`. Looks are here too, for they are one line.

Imports of the package stay inside the functions, so that ``--help`` costs no more than typer itself.
"""

from __future__ import annotations

import io
import json
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli.context import Json

if TYPE_CHECKING:
    from memoriter.agent.service import Synced
    from memoriter.records import Saved


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(epilog="Example: memoriter save 'Anna prefers tea.' --title Anna --tags people")(save)
    app.command(epilog="Example: memoriter summarise sessions/3f2a.jsonl")(summarise)
    app.command(epilog="Example: memoriter watch")(watch)


def save(
    context: typer.Context,
    content: Annotated[str, typer.Argument(help="What to write down; '-' reads it from standard input.")],
    title: Annotated[str, typer.Option(help="A few words that name it.", show_default=False)] = "",
    tags: Annotated[str, typer.Option(help="Separated by commas.", show_default=False)] = "",
    category: Annotated[
        str | None, typer.Option(help="Into memory/<category>/<title>.md.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Write something down for good: into the day's log, or into an item of a category."""
    text = _standard_input() if content == "-" else content
    words = [tag.strip() for tag in tags.split(",") if tag.strip()]
    with context.obj.memory() as memory:
        _saved(memory.save(text, title, words, category), as_json)


def _standard_input() -> str:
    """What is piped in; a byte that is no text is marked, whatever the locale does with it."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return sys.stdin.read()


def summarise(
    context: typer.Context,
    transcript: Annotated[
        str, typer.Argument(help="A transcript's file, or as it is cited: sessions/….jsonl.")
    ],
    as_json: Json = False,
) -> None:
    """Write the summary of a session that has ended into memory/, once."""
    with context.obj.memory() as memory:
        saved = memory.summarise_transcript(transcript)
    if saved is None and not as_json:
        sys.stdout.write("Nobody said anything in this session; nothing was written.\n")
    else:
        _saved(saved, as_json)


def watch(context: typer.Context, as_json: Json = False) -> None:
    """Keep the index fresh while files change, and show what happens; Ctrl-C ends it."""
    from memoriter.agent.service import MemoryService
    from memoriter.integrations.claude_code.capture import hear_waiting

    with context.obj.memory() as memory:
        service = MemoryService(memory, on_sync=lambda synced: _synced(synced, as_json))
        with service:
            hear_waiting(service)
            if not as_json:
                sys.stdout.write(f"{memory.settings.workspace}: {service.watching}\n")
                sys.stdout.flush()
            _until_interrupted()


def _until_interrupted() -> None:
    # Said outright: a program that a shell started in the background does not hear Ctrl-C otherwise.
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, signal.default_int_handler)
    try:
        while not threading.Event().wait(3600):
            pass
    except KeyboardInterrupt:
        return


def _saved(saved: Saved | None, as_json: bool) -> None:
    from memoriter.cli import render

    if as_json:
        render.to_json(_saved_json(saved))
    elif saved:
        said = "It stands there already" if saved.already else "Saved"
        sys.stdout.write(render.plain(f"{said}: {saved.citation}\n{saved.note or ''}").rstrip() + "\n")


def _saved_json(saved: Saved | None) -> dict[str, object]:
    if saved is None:
        return {"path": None}
    place = {"path": saved.path, "startLine": saved.start_line, "endLine": saved.end_line}
    return {**place, "citation": saved.citation, "already": saved.already, "note": saved.note}


def _synced(synced: Synced, as_json: bool) -> None:
    report = synced.report
    counts = {
        name: getattr(report, name) if report else 0
        for name in ("changed", "removed", "files", "chunks", "pending")
    }
    if as_json:
        line = json.dumps({"reason": synced.reason, **counts, "error": synced.error}, ensure_ascii=False)
    else:
        told = synced.error or "{changed} changed, {removed} removed; {files} files, {chunks} chunks".format(
            **counts
        )
        line = f"{time.strftime('%H:%M:%S')} {synced.reason}: {told}"
    if as_json or synced.error or counts["changed"] or counts["removed"] or synced.reason == "start":
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
