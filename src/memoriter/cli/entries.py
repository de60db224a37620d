"""Commands for entries: `add`, `list`, `edit`, `undo`, `redo` and `forget`."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli import entry_tables, render
from memoriter.cli.context import Json, Words, read_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memoriter.memory import Memory

Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        help="user_preference, project_context, technical_decision, workflow, fact, skill, relationship, other.",
    ),
]
NewTags = Annotated[
    list[str] | None, typer.Option("--tags", help="Tags, separated by commas. Can be repeated.")
]
Tags = Annotated[
    list[str] | None, typer.Option(help="Only entries with all of these tags, separated by commas.")
]
MinImportance = Annotated[
    float, typer.Option(min=0, max=5, help="Only entries of at least this importance.", show_default=False)
]
Here = Annotated[bool, typer.Option("--here", help="Only entries that were learned in this workspace.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Example: memoriter add 'I prefer tabs' --type user_preference --importance 4")(add)
    app.command("list", epilog="Example: memoriter list --type fact --limit 20")(list_)
    app.command(epilog='Examples: memoriter edit 1f0c2a9e · memoriter edit 1f0c2a9e --text "I prefer tea"')(
        edit
    )
    app.command(epilog="Examples: memoriter undo · memoriter undo 1f0c2a9e")(undo)
    app.command(epilog="Examples: memoriter redo · memoriter redo 1f0c2a9e")(redo)
    app.command(epilog='Example: memoriter forget --query "my old address" --dry-run')(forget)


def add(
    context: typer.Context,
    words: Annotated[
        Words,
        typer.Argument(metavar="TEXT", help="One statement to remember. '-': read it from standard input."),
    ],
    type_: Type = None,
    importance: Annotated[
        float,
        typer.Option(min=1, max=5, help="How important it is, from 1 to 5 (default: 3).", show_default=False),
    ] = 3,
    tags: NewTags = None,
    expires: Annotated[
        str | None,
        typer.Option(help="When it expires: a day (2027-03-31) or a number of days (90). Default: never."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Remember one statement. A repetition is counted, and a newer statement replaces the one it contradicts.

    `add` is for single statements about you and your work. `save` writes longer text to a note.
    """
    text = read_words(words, "The statement is empty.")
    with context.obj.memory() as memory:
        remembered = memory.entries.add(
            text,
            type_,
            importance=importance,
            tags=split(tags),
            source="cli",
            expires_at=_parse_expiry(expires),
        )
        render.show(
            as_json,
            lambda tools: tools.entry_changes.AddResult.of(memory, remembered),
            lambda: entry_tables.remembered(remembered),
        )


def list_(
    context: typer.Context,
    type_: Type = None,
    tags: Tags = None,
    min_importance: MinImportance = 0,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list superseded and expired entries.")
    ] = False,
    undone: Annotated[
        bool, typer.Option("--undone", help="List what `undo` removed. `forget` erases it.")
    ] = False,
    here: Here = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of entries.")] = 100,
    as_json: Json = False,
) -> None:
    """List entries, newest first."""
    from memoriter.records import EntryPage

    with context.obj.memory() as memory:
        if undone:
            removed = tuple(memory.entries.undone())
            page = EntryPage(removed[:limit], len(removed))
        else:
            page = memory.entries.page(
                sort="updated",
                limit=limit,
                types=(type_,) if type_ else (),
                tags=split(tags),
                min_importance=min_importance,
                states=() if everything else None,
                workspace=workspace_of(memory, here),
            )
    render.show(
        as_json,
        lambda tools: tools.entries.EntryListResult.of(page, "updated"),
        lambda: entry_tables.entries(page.entries, state="undone" if undone else None, total=page.total),
    )


def edit(
    context: typer.Context,
    entry_id: Annotated[str, typer.Argument(help="Entry id, or a unique prefix of it.")],
    text: Annotated[
        str | None, typer.Option(help="The new text (default: edit the text in $EDITOR).", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Change the text of an entry. `undo` restores the old one."""
    with context.obj.memory() as memory:
        entry = memory.entries.get(entry_id)
        new = entry_tables.edit_text(entry.text) if text is None else text
        if new.strip() != entry.text:
            entry = memory.entries.update(entry.id, if_seq=entry.seq, text=new.strip())
    render.show(
        as_json,
        lambda tools: tools.entry_changes.EditResult(entry=tools.entries.EntryJson.model_validate(entry)),
        lambda: entry_tables.entries([entry]),
    )


def undo(
    context: typer.Context,
    entry_id: Annotated[str | None, typer.Argument(help="Undo the newest change of this entry.")] = None,
    as_json: Json = False,
) -> None:
    """Undo the newest change. Repeat it to undo the changes before. `redo` makes an undone change again."""
    with context.obj.memory() as memory:
        events, entries = memory.entries.undo(entry_id)
        render.show(
            as_json,
            lambda tools: tools.entry_changes.UndoResult.of(memory, events, entries),
            lambda: entry_tables.undone(events),
        )


def redo(
    context: typer.Context,
    entry_id: Annotated[
        str | None, typer.Argument(help="Redo the newest undone change of this entry.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the change again that `undo` reverted last. Repeat it for the changes undone before."""
    with context.obj.memory() as memory:
        events, entries = memory.entries.redo(entry_id)
    render.show(
        as_json,
        lambda tools: {
            "redone": list(map(tools.entries.EventJson.model_validate, events)),
            "entries": list(map(tools.entries.EntryJson.model_validate, entries)),
        },
        lambda: entry_tables.redone(events),
    )


def forget(
    context: typer.Context,
    entry_id: Annotated[str | None, typer.Argument(help="Entry id, or a unique prefix of it.")] = None,
    query: Annotated[str | None, typer.Option(help="Forget the entry that says this.")] = None,
    session: Annotated[str | None, typer.Option(help="Forget all entries from this session.")] = None,
    source: Annotated[str | None, typer.Option(help="Forget all entries from this source.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Forget all entries created since this day (YYYY-MM-DD).")
    ] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Erase every copy at once. This cannot be undone.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be forgotten.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Forget entries. They are hidden at once and erased after the retention time (30 days); `undo` restores them.

    With --now every copy is erased at once, and so are the lines of daily logs that say exactly the same: they are
    listed before you confirm. Prints which notes and sessions still say it.
    """
    from memoriter.errors import NotFound
    from memoriter.records import Selection

    if as_json and not (yes or dry_run):
        raise typer.BadParameter(
            "It cannot ask for confirmation. Add --yes to forget, or --dry-run to see what would be erased.",
            param_hint="--json",
        )
    what = Selection(entry_id, query, session, source, _parse_day(since))
    with context.obj.memory() as memory:
        forget_ = memory.erase if now else memory.forget
        try:
            receipt = forget_(what, dry_run=True)
        except NotFound as error:
            raise NotFound(f"{error} To forget an entry by what it says, use --query.") from error
        if (guess := entry_tables.clear_candidate(receipt)) and not (dry_run or yes or as_json):
            what = Selection(guess.id)
            receipt = forget_(what, dry_run=True)
        if receipt.forgotten and not dry_run:
            if not yes:
                entry_tables.entries(list(memory.entries.get_many(receipt.forgotten).values()))
                entry_tables.note_lines(receipt)
                verb = "Permanently erase" if now else "Forget"
                typer.confirm(f"{verb} {entry_tables.count_entries(len(receipt.forgotten))}?", abort=True)
            receipt = forget_(what)
        if source is not None and not (receipt.forgotten or as_json):
            known = ", ".join(memory.entries.facets().sources) or "none"
            raise NotFound(f"No entry comes from the source {source!r}. Sources of entries: {known}.")
    render.show(
        as_json,
        lambda tools: tools.entry_changes.ForgetResult.model_validate(receipt),
        lambda: entry_tables.receipt(receipt, erased=now),
    )
    if query is not None and not receipt.forgotten and not dry_run:
        raise typer.Exit(1)  # scripts must notice that nothing was erased


# ---- arguments ------------------------------------------------------------------------------------------------


def _parse_expiry(text: str | None) -> float | None:
    if text is not None and text.isascii() and text.isdigit():
        return time.time() + min(int(text), 36_500) * 86_400
    return _parse_day(text, "--expires")


def _parse_day(text: str | None, option: str = "--since") -> float | None:
    if text is None:
        return None
    try:
        day = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{text!r} is not a day. Write it as 2026-02-08."
        raise typer.BadParameter(message, param_hint=option) from error
    return day.astimezone().timestamp()


def workspace_of(memory: Memory, here: bool) -> str | None:
    """Return the name of the workspace if only its entries are asked for."""
    return memory.settings.workspace_name if here else None


def split(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Return the parts of lists that are separated by commas."""
    return tuple(part for text in texts or () for piece in text.split(",") if (part := piece.strip()))
