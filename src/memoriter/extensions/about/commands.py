"""The command `about`.

Imports of the package stay inside the function, so that ``--help`` loads only typer.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli.context import Json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from memoriter.extensions.about.operations import AboutResult, ThingsResult

command = typer.Typer(add_completion=False)


@command.command(epilog="Examples: memoriter about Fern · memoriter about")
def about(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A person, place, project or topic. Default: list them.")] = "",
    as_json: Json = False,
) -> None:
    """Show everything about one thing: entries, lines of notes and conversations, recalls.

    Without a name, list the names, tags and projects that recur.
    """
    from memoriter.cli import render
    from memoriter.extensions.about import operations
    from memoriter.tools.search import NoArguments
    from memoriter.tools.tool import Call

    with context.obj.memory() as memory:
        if name:
            found = operations.get.run(Call(memory, operations.AboutArguments(name=name)))
        else:
            found = operations.things.run(Call(memory, NoArguments()))
    if as_json:
        render.to_json(found)
    elif name:
        _print(render.console(), found)  # type: ignore[arg-type]
    else:
        _print_things(render.console(), found)  # type: ignore[arg-type]


def _print_things(out: Console, found: ThingsResult) -> None:
    for thing in found.things:
        others = f" ({', '.join(thing.aliases)})" if thing.aliases else ""
        out.print(f"{thing.count:6,}  {thing.name}{others}", markup=False, highlight=False)
    if not found.things:
        out.print("Nothing recurs yet.")


def _print(out: Console, found: AboutResult) -> None:
    def section(title: str, lines: Iterable[str]) -> None:
        some = list(lines)
        if some:
            out.print(f"\n{title}", markup=False, highlight=False)
            for line in some:
                out.print(f"  {line}", markup=False, highlight=False)

    out.print(" / ".join((found.name, *found.aliases)), markup=False, highlight=False)
    section(
        "Contradictions",
        (
            f"{_day(pair.earlier.created_at)} {pair.earlier.text} ≠ {_day(pair.later.created_at)} {pair.later.text}"
            for pair in found.contradictions
        ),
    )
    section("In force", (f"{_day(one.created_at)} {one.text} (entry:{one.id[:8]})" for one in found.entries))
    section("Earlier", (f"{_day(one.created_at)} {one.text} ({one.state})" for one in found.older))
    section("Notes", (f"{line.path}:{line.line}  {line.text}" for line in found.notes))
    section(
        "Conversations",
        (f"{line.path}:{line.line}  {line.role}: {line.text}" for line in found.conversations),
    )
    section("Recalls", (f"{_day(recall.at)} {recall.query}" for recall in found.recalls))
    if found.degraded:
        out.print(f"\n{found.degraded}", markup=False)
    if not (found.entries or found.older or found.notes or found.conversations):
        out.print("Nothing mentions it.")


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d}"
