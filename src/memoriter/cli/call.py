"""`memoriter call`: any operation by its name, with the result as the other doors give it."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import Annotated

import typer


def call(
    context: typer.Context,
    operation: Annotated[
        str | None, typer.Argument(help="Its name; without one, all are listed.", show_default=False)
    ] = None,
    arguments: Annotated[
        str, typer.Argument(help="Its arguments, a JSON object; `-`: read them from standard input.")
    ] = "{}",
    session: Annotated[
        str | None, typer.Option(help="The key of the session that asks.", show_default=False)
    ] = None,
) -> None:
    """Call a tool or an operation by its name; prints its result as JSON."""
    from memoriter.tools.table import OPERATIONS
    from memoriter.tools.toolbox import Toolbox

    if operation is None:
        for tool in OPERATIONS.values():
            typer.echo(f"{tool.name:<20} {tool.access:<6} {tool.description.split('. ')[0].rstrip('.')}")
        return
    given = sys.stdin.read() if arguments == "-" else arguments
    with ExitStack() as stack:
        # Opened within the call: a memory that cannot be is told as every door tells it.
        box = Toolbox(
            lambda: stack.enter_context(context.obj.memory()), session_key=session, tools=OPERATIONS
        )
        result = box.call(operation, given)
    typer.echo(json.dumps(result, ensure_ascii=False, indent=2))
    if "error" in result:
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog='Examples: memoriter call memory_search \'{"query": "backups"}\' · memoriter call entries.list'
    )(call)
