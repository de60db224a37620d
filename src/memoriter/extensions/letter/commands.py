"""The command `letter`.

Imports of the package stay inside the function, so that ``--help`` loads only typer.
"""

from __future__ import annotations

from typing import Annotated

import typer

from memoriter.cli.context import Json

command = typer.Typer(add_completion=False)


@command.command(epilog="Examples: memoriter letter · memoriter letter --days 30 > letter.md")
def letter(
    context: typer.Context,
    days: Annotated[int, typer.Option(min=1, max=366, help="Number of days until now.")] = 7,
    as_json: Json = False,
) -> None:
    """Write a letter about the last days, as Markdown: what was learned, changed, retired and never used.

    It also proposes what to forget. Nothing is changed.
    """
    from memoriter.cli import render
    from memoriter.extensions.letter import operations
    from memoriter.tools.tool import Call

    with context.obj.memory() as memory:
        found = operations.letter.run(Call(memory, operations.LetterArguments(days=days)))
    if as_json:
        render.to_json(found)
    else:
        assert isinstance(found, operations.LetterResult)
        typer.echo(found.markdown)
