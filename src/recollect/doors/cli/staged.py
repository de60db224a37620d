"""The commands about what waits for the owner's word: `staged`, `approve`, `reject`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.doors.cli.options import Json

if TYPE_CHECKING:
    from recollect.memory import Memory

MOST = 500  #: that are listed, or approved with --all

Ids = Annotated[
    list[str] | None,
    typer.Argument(help="The entries' ids, or the beginnings of them.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="All that wait.")]


def staged(context: typer.Context, as_json: Json = False) -> None:
    """List what waits until you approve it."""
    from recollect.doors.cli import entry_tables

    with context.obj.memory() as memory:
        page = memory.keeper.listing.page(states=("staged",), limit=MOST)
        entry_tables.entries(page.entries, as_json)


def approve(context: typer.Context, ids: Ids = None, everything: All = False, as_json: Json = False) -> None:
    """Let what waits come into force; what is known already is counted, not kept twice."""
    from recollect.doors.cli import entry_tables
    from recollect.doors.cli.render import to_json

    with context.obj.memory() as memory:
        done = memory.keeper.staging.approve(_named(memory, ids, everything))
        if as_json:
            to_json([asdict(one) for one in done])
            return
        for one in done:
            entry_tables.remembered(one, as_json=False)


def reject(context: typer.Context, ids: Ids = None, everything: All = False, as_json: Json = False) -> None:
    """Refuse what waits: it is hidden, `recollect undo ID` takes that back, and after a while it is erased."""
    from recollect.doors.cli import entry_tables

    with context.obj.memory() as memory:
        entry_tables.entries(memory.keeper.staging.reject(_named(memory, ids, everything)), as_json)


def _named(memory: Memory, ids: list[str] | None, everything: bool) -> list[str]:
    """The ids that were typed, or those of all that wait."""
    if bool(ids) == everything:
        raise typer.BadParameter("name the entries by their ids, or give --all")
    if ids:
        return ids
    return [entry.id for entry in memory.keeper.listing.page(states=("staged",), limit=MOST).entries]


def register(app: typer.Typer) -> None:
    """Give the application the commands of this module."""
    app.command()(staged)
    app.command(epilog="Example: recollect approve 1f0c2a9e 77ab0310")(approve)
    app.command()(reject)
