"""Commands for notes and conversations: `save`, `summarise`, `watch`, `recall` and `capture`."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memoriter.cli import render
from memoriter.cli.context import GlobalOptions, Json, Words, join_words, read_words

if TYPE_CHECKING:
    from memoriter.agent.service import Synced
    from memoriter.records import Saved

Messages = Annotated[
    str,
    typer.Option(help="File with messages: a JSON array, or one JSON object per line. '-': standard input."),
]
NO_MESSAGES = "The session has no messages. Nothing was written."
#: Recent messages that describe what a conversation is about.
MAX_RECALL_MESSAGES = 50
#: Messages that one call of the `capture` operation accepts.
MAX_CAPTURE_MESSAGES = 2_000


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Example: memoriter save 'Anna prefers tea.' --title Anna --tags people")(save)
    app.command(epilog="Example: memoriter summarise sessions/3f2a.jsonl")(summarise)
    app.command(epilog="Example: memoriter watch")(watch)
    app.command(
        epilog="Examples: memoriter recall where are the backups · memoriter recall --messages chat.json"
    )(recall)
    app.command(epilog="Example: memoriter capture --messages conversation.jsonl --session 3f2a")(capture)


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


# ---- conversations --------------------------------------------------------------------------------------------


def recall(
    context: typer.Context,
    words: Annotated[
        Words | None, typer.Argument(metavar="TEXT", help="The message that an agent would get.")
    ] = None,
    messages: Annotated[
        str | None,
        typer.Option(
            help="Instead of a text, a file with messages: a JSON array, or one JSON object per line. '-': standard "
            "input."
        ),
    ] = None,
    session: Annotated[str | None, typer.Option(help="Session id to record in the ledger.")] = None,
    tokens: Annotated[int | None, typer.Option(min=0, help="Maximum number of tokens of the block.")] = None,
    as_json: Json = False,
) -> None:
    """Print what would be added to an agent's prompt for a message. `why` then explains it.

    `recall` shows what an agent gets automatically. `search` is for you and finds everything.
    """

    if messages is None:
        text = join_words(words or [], "Write the message of the user, or name a file with --messages.")
        recent = [{"role": "user", "content": text}]
    elif words:
        raise typer.BadParameter("Give a text or --messages, not both.")
    else:
        recent = _read_messages(messages)[-MAX_RECALL_MESSAGES:]
    result = _run_operation(context.obj, "recall", {"messages": recent, "session": session, "tokens": tokens})
    if as_json:
        render.to_json(result)
        return
    if result["degraded"]:
        sys.stderr.write(f"memoriter: {result['degraded']}\n")
    block = render.plain(result["text"]) if sys.stdout.isatty() else result["text"]
    sys.stdout.write(f"{block}\n" if block else "")
    if not block and messages is None:
        sys.stderr.write(
            "Nothing in the memory is relevant enough to be added. `memoriter search` shows the nearest lines.\n"
        )


def capture(
    context: typer.Context,
    messages: Messages,
    session: Annotated[str, typer.Option(help="Session id.")] = "main",
    as_json: Json = False,
) -> None:
    """Extract entries from a conversation. Safe to call with the full history each time."""

    conversation, remembered = _read_messages(messages), list[dict[str, Any]]()
    for first in range(0, len(conversation), MAX_CAPTURE_MESSAGES):
        arguments = {"messages": conversation[first : first + MAX_CAPTURE_MESSAGES], "session": session}
        remembered += _run_operation(context.obj, "capture", arguments)["remembered"]
    if as_json:
        render.to_json({"remembered": remembered})
        return
    for outcome in remembered:
        text = outcome["memory"]["text"] if outcome.get("memory") else outcome.get("note") or ""
        sys.stdout.write(render.plain(f"{outcome['action']}: {text}\n"))
    if not remembered:
        sys.stdout.write("Nothing new to remember.\n")


def _run_operation(options: GlobalOptions, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run the operation of this name; raise `MemoriterError` if its result is an error."""
    from memoriter.errors import MemoriterError
    from memoriter.tools.table import call

    with options.memory() as memory:
        given = {key: value for key, value in arguments.items() if value is not None}
        result = call(memory, name, given, interface="cli")
    if result.get("error"):
        raise MemoriterError(str(result["error"]))
    del result["disabled"]
    return result


def _read_messages(path: str) -> list[dict[str, Any]]:
    """Read messages: a JSON array, one object per line, or an object that holds a list of messages."""
    from memoriter.errors import SourceError

    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).expanduser().read_bytes()
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    try:
        messages = list(_parse_messages(text))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path} does not contain messages: {error}.") from error
    if not all(isinstance(message, dict) for message in messages):
        raise SourceError(
            f"{path} does not contain messages. Each must be an object with `role` and `content`."
        )
    return messages


def _parse_messages(text: str) -> Iterable[Any]:
    if text.lstrip()[:1] == "[":
        parsed = json.loads(text)
        return parsed if isinstance(parsed, list) else [parsed]
    pieces = text.split("\n") if _is_json_lines(text) else [text]
    objects = [json.loads(piece) for piece in pieces if piece.strip()]
    if len(objects) == 1 and isinstance(objects[0], dict) and isinstance(objects[0].get("messages"), list):
        return list(objects[0]["messages"])  # a request to a language model
    return objects


def _is_json_lines(text: str) -> bool:
    try:
        json.loads(text.lstrip().split("\n", 1)[0])
    except ValueError:
        return False
    return True
