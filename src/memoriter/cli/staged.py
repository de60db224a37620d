"""The commands about what waits for the owner's word: `staged`, `approve`, `reject`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli.context import Json

if TYPE_CHECKING:
    from memoriter.memory import Memory
    from memoriter.records import Entry

PAGE = 500  #: entries that are looked up at a time
NOTHING = "Nothing waits to be approved."

Ids = Annotated[
    list[str] | None,
    typer.Argument(help="The entries' ids, or the beginnings of them.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="All that wait.")]


def staged(context: typer.Context, as_json: Json = False) -> None:
    """List what waits until you approve it."""
    from memoriter.cli import entry_tables

    with context.obj.memory() as memory:
        entry_tables.entries(_waiting(memory), as_json)


def approve(context: typer.Context, ids: Ids = None, everything: All = False, as_json: Json = False) -> None:
    """Let what waits come into force; what is known already is counted, not kept twice."""
    from memoriter.cli import entry_tables
    from memoriter.cli.render import to_json

    with context.obj.memory() as memory:
        named = _named(memory, ids, everything)
        if not named and not as_json:
            typer.echo(NOTHING)
        done = memory.entries.approve(named)
        if as_json:
            to_json([asdict(one) for one in done])
            return
        for one in done:
            entry_tables.remembered(one, as_json=False)


def reject(context: typer.Context, ids: Ids = None, everything: All = False, as_json: Json = False) -> None:
    """Refuse what waits: it is hidden, `memoriter undo ID` takes that back, and after a while it is erased."""
    from memoriter.cli import entry_tables

    with context.obj.memory() as memory:
        named = _named(memory, ids, everything)
        if not named and not as_json:
            typer.echo(NOTHING)
            return
        entry_tables.entries(memory.entries.reject(named), as_json)


def _named(memory: Memory, ids: list[str] | None, everything: bool) -> list[str]:
    """The ids that were typed, or those of all that wait."""
    if bool(ids) == everything:
        raise typer.BadParameter("name the entries by their ids, or give --all")
    if ids:
        return ids
    return [entry.id for entry in _waiting(memory)]


def _waiting(memory: Memory) -> list[Entry]:
    """All that waits, newest first."""
    found: list[Entry] = []
    after = None
    while True:
        page = memory.entries.page(states=("staged",), limit=PAGE, after=after)
        found += page.entries
        after = page.after
        if after is None:
            return found


def register(app: typer.Typer) -> None:
    """Give the application the commands of this module."""
    app.command()(staged)
    app.command(epilog="Example: memoriter approve 1f0c2a9e 77ab0310")(approve)
    app.command()(reject)
