"""Commands by which the owner reviews the memory: changes, approval, the recall ledger and cleanup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli import entry_tables, render
from memoriter.cli.context import Json
from memoriter.extensions.review import tables

if TYPE_CHECKING:
    from memoriter.memory import Memory

Ids = Annotated[list[str] | None, typer.Argument(help="Entry ids, or unique prefixes of them.")]
AllStaged = Annotated[bool, typer.Option("--all", help="All staged entries.")]

(
    history_command,
    cleanup_command,
    recalls_command,
    why_command,
    staged_command,
    approve_command,
    reject_command,
) = (typer.Typer(add_completion=False) for _ in range(7))


@history_command.command(epilog="Example: memoriter history 1f0c2a9e")
def history(
    context: typer.Context,
    entry_id: Annotated[str, typer.Argument(help="Entry id, or a unique prefix of it.")],
    as_json: Json = False,
) -> None:
    """Show every change of an entry."""
    with context.obj.memory() as memory:
        events = memory.entries.history(entry_id)
    render.show(
        as_json,
        lambda tools: {"history": list(map(tools.entries.EventJson.model_validate, events))},
        lambda: tables.events(events),
    )


@cleanup_command.command()
def cleanup(context: typer.Context, as_json: Json = False) -> None:
    """Mark expired entries and erase old ones."""
    with context.obj.memory() as memory:
        counts = memory.entries.cleanup()
    render.show(as_json, counts, lambda: tables.cleaned_up(counts))


@recalls_command.command(epilog="Example: memoriter recalls --session 3f2a")
def recalls(
    context: typer.Context,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-n", min=1, help="Maximum number of recalls (default: 20).", show_default=False
        ),
    ] = 20,
    session: Annotated[str | None, typer.Option(help="Only from this session.")] = None,
    as_json: Json = False,
) -> None:
    """List the recalls, newest first: when notes and entries were added to a prompt, and for which query."""
    with context.obj.memory() as memory:
        page = memory.entries.recalls(limit=limit, session=session)
    render.show(as_json, lambda tools: tools.recalls.RecallListResult.of(page), lambda: tables.recalls(page))


@why_command.command(epilog="Examples: memoriter why · memoriter why 7c1e09ab · memoriter why entry:1f0c2a9e")
def why(
    context: typer.Context,
    recall_id: Annotated[
        str | None,
        typer.Argument(
            help="Id of a recall, as in the block that the agent received, or id of an entry (default: the newest "
            "recall)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show which notes and entries entered a prompt, and why."""
    from memoriter.memory import parts_of

    with context.obj.memory() as memory:
        record = memory.entries.get_recall(recall_id)
        entries = memory.entries.get_many(record.refs("entry"))
        texts = parts_of(memory).search.texts_of(record)
    render.show(
        as_json,
        lambda tools: tools.recalls.RecallGetResult.of(record, texts, entries),
        lambda: tables.recall(record, texts, entries),
    )


@staged_command.command()
def staged(context: typer.Context, as_json: Json = False) -> None:
    """List the entries and notes that wait for your approval."""
    with context.obj.memory() as memory:
        waiting, notes = memory.entries.list(states=("staged",)), memory.notes.pending()
        render.show(
            as_json,
            lambda tools: {
                "entries": list(map(tools.entries.EntryJson.model_validate, waiting)),
                "notes": [tools.notes.WaitingNoteJson.of(memory, path) for path in notes],
            },
            lambda: tables.staged(waiting, notes),
        )


@approve_command.command(epilog="Example: memoriter approve 1f0c2a9e 77ab0310")
def approve(
    context: typer.Context, ids: Ids = None, everything: AllStaged = False, as_json: Json = False
) -> None:
    """Approve staged entries, or notes by their path. Duplicates of known entries are counted, not stored again."""
    with context.obj.memory() as memory:
        selected = _select_ids(memory, ids, everything)
        notes = [one for one in selected if one.endswith(".md")]
        for path in notes:
            memory.notes.approve(path)
        outcomes = memory.entries.approve([one for one in selected if one not in notes])
        shown = {"notes": [memory.notes.text(path) for path in notes]} if notes else {}
        render.show(
            as_json,
            lambda tools: {
                "approved": list(map(tools.entry_tools.RememberedJson.model_validate, outcomes)),
                **shown,
            },
            lambda: tables.approved(outcomes, notes),
        )


@reject_command.command(epilog="Example: memoriter reject --all")
def reject(
    context: typer.Context, ids: Ids = None, everything: AllStaged = False, as_json: Json = False
) -> None:
    """Reject staged entries. `memoriter undo ID` restores one until it is erased."""
    with context.obj.memory() as memory:
        selected = _select_ids(memory, ids, everything)
        rejected = memory.entries.reject(selected)
    render.show(
        as_json,
        {"rejected": [entry.id for entry in rejected]},
        lambda: entry_tables.entries(rejected, if_none=tables.NOTHING_STAGED),
    )


def _select_ids(memory: Memory, ids: list[str] | None, everything: bool) -> list[str]:
    if bool(ids) == everything:
        raise typer.BadParameter("Give the ids of entries, or --all.", param_hint="IDS")
    return ids or [entry.id for entry in memory.entries.list(states=("staged",))]
