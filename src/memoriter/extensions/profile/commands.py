"""The command `profile`.

Imports of the package stay inside the function, so that ``--help`` loads only typer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli.context import Json

if TYPE_CHECKING:
    from memoriter.extensions.profile.files import Kept

command = typer.Typer(add_completion=False)


@command.command(epilog="Examples: memoriter profile · memoriter profile --project --tokens 800")
def profile(
    context: typer.Context,
    project: Annotated[
        bool, typer.Option("--project", help="Show what is known about the project of this workspace.")
    ] = False,
    tokens: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum size in tokens.")] = 400,
    as_json: Json = False,
) -> None:
    """Show who you are: your newest statements about you, preferences, people, projects and plans.

    With `profile.files`, it also brings USER.md and PROJECT.md up to date, and remembers what you wrote between their
    marks.
    """
    from memoriter.cli import render
    from memoriter.extensions.profile.files import refresh
    from memoriter.tools.recalls import ProfileResult

    with context.obj.memory() as memory:
        kept = refresh(memory)
        found = memory.profile(project=project, tokens=tokens)
    if as_json:
        render.to_json(ProfileResult.model_validate(found))
    else:
        _print(found.text, kept)
    for one in kept:
        if one.problem:
            typer.echo(f"memoriter: {one.path}: {one.problem}", err=True)
    if any(one.problem for one in kept):
        raise typer.Exit(1)


def _print(text: str, kept: list[Kept]) -> None:
    from memoriter.cli import render

    out = render.console()
    out.print(text or "Nothing is known yet.")
    for one in kept:
        if one.changed:
            out.print(f"{one.path} is up to date.")
        for learned in one.learned:
            out.print(f"Remembered from {one.path}: {learned}")
