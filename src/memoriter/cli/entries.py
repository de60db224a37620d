"""The commands about entries: what each takes, and which call of the keeper it is. Looks are `entry_tables`' duty.

Imports of the package stay inside the functions, so that ``--help`` costs no more than typer itself.
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from memoriter.cli import staged
from memoriter.cli.context import Json

Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        help="user_preference, project_context, technical_decision, workflow, fact, skill, relationship, other.",
        show_default=False,
    ),
]
PROGRAMS = ("openclaw", "claude-code")  #: whose whole memory can be taken in


def add(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="One statement worth remembering.")],
    type_: Type = None,
    importance: Annotated[float, typer.Option(min=1, max=5, help="1 to 5; 5 never expires.")] = 3,
    tags: Annotated[str, typer.Option(help="Separated by commas.", show_default=False)] = "",
    as_json: Json = False,
) -> None:
    """Remember a statement."""
    from memoriter.cli import entry_tables

    with context.obj.memory() as memory:
        done = memory.entries.add(
            text, type_ or "other", importance=importance, tags=_words(tags), source="cli"
        )
        entry_tables.remembered(done, as_json)


def list_(
    context: typer.Context,
    type_: Type = None,
    tags: Annotated[str, typer.Option(help="Only with all of these tags.", show_default=False)] = "",
    everything: Annotated[bool, typer.Option("--all", help="Also superseded and expired ones.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 100,
    as_json: Json = False,
) -> None:
    """List what was learned, newest first."""
    from memoriter.cli import entry_tables

    with context.obj.memory() as memory:
        states = () if everything else None
        found = memory.entries.list(type_, tags=_words(tags), states=states, limit=limit)
        entry_tables.entries(found, as_json)


def history(
    context: typer.Context,
    entry_id: Annotated[str, typer.Argument(help="The entry's id, or the beginning of it.")],
    as_json: Json = False,
) -> None:
    """Show everything that happened to an entry."""
    from memoriter.cli import entry_tables

    with context.obj.memory() as memory:
        entry_tables.events(memory.entries.history(entry_id), as_json)


def undo(
    context: typer.Context,
    entry_id: Annotated[
        str | None, typer.Argument(help="Only changes of this entry.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Take back the newest change."""
    from memoriter.cli import entry_tables

    with context.obj.memory() as memory:
        undone, now = memory.entries.undo(entry_id)
        entry_tables.undone(undone, now, as_json)


def export(
    context: typer.Context,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write.", show_default=False)
    ] = None,
    type_: Type = None,
    as_json: Json = False,
) -> None:
    """Write all entries with their history, one JSON object a line."""
    from memoriter.cli import entry_tables

    with context.obj.memory() as memory:
        lines = memory.entries.export(type_)
        if output is None:
            for line in lines:
                sys.stdout.write(line + "\n")
            return
        entry_tables.exported(entry_tables.write_private(output, lines), output, as_json)


def import_(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            help="An export of memoriter, mem0 or ChatGPT, or plain JSON; or the word openclaw or claude-code."
        ),
    ],
    place: Annotated[
        Path | None,
        typer.Argument(help="For those: their folder, if it is another than usual.", show_default=False),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="For those: only say what would be done.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Take in what another program kept, or an export: what is there already is left as it is."""
    from memoriter.cli import entry_tables

    program = str(file) if place is not None or not file.is_file() else ""
    if program not in PROGRAMS and (place or dry_run):
        raise typer.BadParameter(
            "a second place and --dry-run are for: memoriter import openclaw|claude-code"
        )
    with context.obj.memory() as memory:
        if program in PROGRAMS:
            from memoriter.cli import importing

            take_in = memory.import_openclaw if program == "openclaw" else memory.import_claude_code
            importing.report(take_in(place, dry_run=dry_run), as_json)
        else:
            entry_tables.imported(memory.entries.import_(_text_of(file)), as_json)


def forget(
    context: typer.Context,
    entry_id: Annotated[
        str | None, typer.Argument(help="The entry's id, or the beginning of it.", show_default=False)
    ] = None,
    query: Annotated[str | None, typer.Option(help="What the entry says.", show_default=False)] = None,
    session: Annotated[
        str | None, typer.Option(help="All that was learned in this session.", show_default=False)
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="All that came from this source.", show_default=False)
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="All that was learned since this day (YYYY-MM-DD).", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be forgotten.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Erase entries for good, every copy of them, and say what was covered."""
    from memoriter.cli import entry_tables

    if as_json and not (yes or dry_run):
        # A machine cannot be asked, and to want JSON is not to agree.
        raise typer.BadParameter(
            "--json does not ask: add --yes to forget, or --dry-run to see what would go."
        )
    with context.obj.memory() as memory:
        what = {"query": query, "session": session, "source": source, "since": _day(since)}
        receipt = memory.entries.forget(entry_id, **what, dry_run=True)
        if receipt.forgotten and not dry_run:
            if not yes:
                typer.confirm(f"Forget {len(receipt.forgotten)} entries for good?", abort=True)
            receipt = memory.forget(entry_id, **what)
        entry_tables.receipt(receipt, as_json)
    if query is not None and not receipt.forgotten and not dry_run:
        raise typer.Exit(1)  # somebody wanted something gone, and it is still there


def cleanup(context: typer.Context, as_json: Json = False) -> None:
    """Mark what has expired, and erase what expired long ago."""
    from memoriter.cli import entry_tables

    with context.obj.memory() as memory:
        entry_tables.cleaned_up(memory.entries.cleanup(), as_json)


def why(
    context: typer.Context,
    recall_id: Annotated[str, typer.Argument(help="The id in the block that the agent was told.")],
    as_json: Json = False,
) -> None:
    """Say what entered a prompt, what did not, and why."""
    from memoriter.cli import entry_tables

    with context.obj.memory() as memory:
        entry_tables.recall(memory.entries.get_recall(recall_id), as_json)


def _text_of(file: Path) -> str:
    from memoriter.errors import SourceError

    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{file} is not UTF-8 text (byte {error.start}); nothing was taken in.") from error


def _day(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter("must be a day, such as 2026-02-08") from error
    return found.astimezone().timestamp()


def _words(text: str) -> tuple[str, ...]:
    return tuple(part for part in (piece.strip() for piece in text.split(",")) if part)


def register(app: typer.Typer) -> None:
    """Give the application the commands of this module."""
    app.command(epilog="Example: memoriter add 'I prefer tabs' --type user_preference --importance 4")(add)
    app.command("list")(list_)
    app.command()(history)
    app.command()(undo)
    app.command()(export)
    app.command("import", epilog="Example: memoriter import openclaw --dry-run")(import_)
    app.command(epilog="Example: memoriter forget --query 'my old address' --dry-run")(forget)
    app.command("delete", hidden=True)(forget)
    app.command()(cleanup)
    app.command()(why)
    staged.register(app)
