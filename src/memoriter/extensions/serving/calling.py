"""The command `call`: it calls a tool or operation as a client of the gateway does."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Annotated

import typer

from memoriter.cli import render
from memoriter.cli.context import MAX_JSON_INPUT, read_input
from memoriter.files.platform import command_line

_EXAMPLE = ("memoriter", "call", "memory_search", '{"query": "backups"}')

call_command = typer.Typer(add_completion=False)


@call_command.command(epilog=f"Examples: {command_line(_EXAMPLE)} · memoriter call entries.list")
def call(
    context: typer.Context,
    operation: Annotated[
        str | None, typer.Argument(help="Name of the operation. Without one, list them.")
    ] = None,
    arguments: Annotated[
        str, typer.Argument(help="Arguments as a JSON object, or '-' to read them from standard input.")
    ] = "{}",
    session: Annotated[str | None, typer.Option(help="Key of the session that makes the call.")] = None,
) -> None:
    """Call a tool or operation and print its result as JSON."""
    from memoriter.tools.table import OPERATIONS
    from memoriter.tools.toolbox import Toolbox

    if operation is None:
        for tool in OPERATIONS.values():
            typer.echo(f"{tool.name:<20} {tool.access:<6} {tool.description.split('. ')[0].rstrip('.')}")
        return
    text = read_input(MAX_JSON_INPUT) if arguments == "-" else arguments
    try:
        json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"This is not JSON: {error}.", param_hint="ARGUMENTS") from error
    with ExitStack() as stack:
        # The toolbox opens the memory itself, so that a memory that cannot be opened is an ordinary error result.
        toolbox = Toolbox(
            lambda: stack.enter_context(context.obj.memory()),
            session=session,
            tools=OPERATIONS,
            interface="cli",
        )
        result = toolbox.call(operation, text)
    render.to_json(result)
    if "error" in result:
        raise typer.Exit(1)
