"""Commands for conversations: `recall`, `capture` and `summarise`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from memoriter.cli import render
from memoriter.cli.context import MAX_JSON_INPUT, GlobalOptions, Json, Words, join_words, read_input

Messages = Annotated[
    str,
    typer.Option(help="File with messages: a JSON array, or one JSON object per line. '-': standard input."),
]
#: Recent messages that describe what a conversation is about.
MAX_RECALL_MESSAGES = 50
#: Messages that one call of the `capture` operation accepts.
MAX_CAPTURE_MESSAGES = 2_000

recall_command, capture_command, summarise_command = (typer.Typer(add_completion=False) for _ in range(3))


@recall_command.command(
    epilog="Examples: memoriter recall where are the backups · memoriter recall --messages chat.json"
)
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


@capture_command.command(epilog="Example: memoriter capture --messages conversation.jsonl --session 3f2a")
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


@summarise_command.command(
    epilog="Examples: memoriter summarise sessions/3f2a.jsonl · memoriter summarise ~/Downloads/chat.json"
)
def summarise(
    context: typer.Context,
    transcript: Annotated[
        str, typer.Argument(help="Citation of a transcript (sessions/….jsonl), or any file with messages.")
    ],
    as_json: Json = False,
) -> None:
    """Write the summary of a finished session to memory/, once."""
    from memoriter.errors import NotFound

    file = Path(transcript).expanduser()
    with context.obj.memory() as memory:
        try:
            saved = memory.summarise_transcript(transcript)
        except NotFound as error:
            if not file.is_file():
                raise NotFound(f"{error} Nor is it a file with messages: give the path of one.") from None
            saved = memory.summarise(_read_messages(transcript), file.stem)
    render.saved(saved, as_json)


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
        text = read_input(MAX_JSON_INPUT) if path == "-" else Path(path).expanduser().read_text("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    wrong = f"{path} does not contain messages: JSON objects with `role` and `content`, in an array or one per line"
    try:
        messages = _parse_messages(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{wrong} ({error}).") from error
    if not all(isinstance(message, dict) for message in messages):
        raise SourceError(f"{wrong}.")
    return messages


def _parse_messages(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except ValueError:
        if text.lstrip().startswith("["):
            raise  # a damaged array, not one object per line
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    if isinstance(found, dict) and isinstance(found.get("messages"), list):
        return list(found["messages"])  # a request to a language model
    return found if isinstance(found, list) else [found]
