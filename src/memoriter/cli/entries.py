"""Commands for entries: add, list, history, undo, redo, export, forget, approval and the recall ledger."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli import entry_tables, render
from memoriter.cli.context import Json, Words, read_words

if TYPE_CHECKING:
    from memoriter.memory import Memory

Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        help="user_preference, project_context, technical_decision, workflow, fact, skill, relationship, other.",
    ),
]
Tags = Annotated[str, typer.Option(help="Only entries with all of these tags, separated by commas.")]
MinImportance = Annotated[
    float, typer.Option(min=0, max=5, help="Only entries of at least this importance.", show_default=False)
]
Here = Annotated[bool, typer.Option("--here", help="Only entries that were learned in this workspace.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Entry ids, or unique prefixes of them.")]
AllStaged = Annotated[bool, typer.Option("--all", help="All staged entries.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Example: memoriter add 'I prefer tabs' --type user_preference --importance 4")(add)
    app.command("list", epilog="Example: memoriter list --type fact --limit 20")(list_)
    app.command(epilog="Examples: memoriter edit 1f0c2a9e · memoriter edit 1f0c2a9e --text 'I prefer tea'")(
        edit
    )
    app.command(epilog="Example: memoriter history 1f0c2a9e")(history)
    app.command(epilog="Examples: memoriter undo · memoriter undo 1f0c2a9e")(undo)
    app.command(epilog="Examples: memoriter redo · memoriter redo 1f0c2a9e")(redo)
    app.command(epilog="Example: memoriter export --output entries.jsonl --min-importance 4 --tags work")(
        export
    )
    app.command(epilog="Example: memoriter forget --query 'my old address' --dry-run")(forget)
    app.command()(cleanup)
    app.command(epilog="Example: memoriter recalls --session 3f2a")(recalls)
    app.command(epilog="Examples: memoriter why · memoriter why 7c1e09ab · memoriter why entry:1f0c2a9e")(why)
    app.command()(staged)
    app.command(epilog="Example: memoriter approve 1f0c2a9e 77ab0310")(approve)
    app.command(epilog="Example: memoriter reject --all")(reject)


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
    tags: Annotated[str, typer.Option(help="Tags, separated by commas.")] = "",
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
            tags=_split(tags),
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
    tags: Tags = "",
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
                tags=_split(tags),
                min_importance=min_importance,
                states=() if everything else None,
                workspace=_workspace(memory, here),
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
        lambda: entry_tables.events(events),
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


def export(
    context: typer.Context,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: standard output).")
    ] = None,
    type_: Type = None,
    tags: Tags = "",
    min_importance: MinImportance = 0,
    here: Here = False,
    as_json: Json = False,
) -> None:
    """Export entries with their history as JSON lines. Filters select some of them."""

    with context.obj.memory() as memory:
        workspace = _workspace(memory, here)
        lines = memory.entries.export(
            type_, tags=_split(tags), min_importance=min_importance, workspace=workspace
        )
        if output is None:
            for line in lines:
                sys.stdout.write(line + "\n")
            return
        total = entry_tables.write_private(output, lines)
    text = f"Exported {entry_tables.count_entries(total)} to {output}."
    render.show(as_json, {"total": total, "path": output}, text)


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
        lambda tools: tools.entry_changes.ForgetResult.of(receipt),
        lambda: entry_tables.receipt(receipt, erased=now),
    )
    if query is not None and not receipt.forgotten and not dry_run:
        raise typer.Exit(1)  # scripts must notice that nothing was erased


def cleanup(context: typer.Context, as_json: Json = False) -> None:
    """Mark expired entries and erase old ones."""

    with context.obj.memory() as memory:
        counts = memory.entries.cleanup()
    render.show(as_json, counts, lambda: entry_tables.cleaned_up(counts))


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
    render.show(
        as_json,
        lambda tools: tools.recalls.RecallListResult.of(page),
        lambda: entry_tables.recalls(page),
    )


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
        lambda: entry_tables.recall(record, texts, entries),
    )


# ---- approval -------------------------------------------------------------------------------------------------


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
            lambda: entry_tables.staged(waiting, notes),
        )


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
            lambda tools: {**tools.entry_changes.ApproveResult.of(outcomes).to_json(), **shown},
            lambda: entry_tables.approved(outcomes, notes),
        )


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
        lambda: entry_tables.entries(rejected, if_none=entry_tables.NOTHING_STAGED),
    )


def _select_ids(memory: Memory, ids: list[str] | None, everything: bool) -> list[str]:
    if bool(ids) == everything:
        raise typer.BadParameter("Give the ids of entries, or --all.", param_hint="IDS")
    return ids or [entry.id for entry in memory.entries.list(states=("staged",))]


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


def _workspace(memory: Memory, here: bool) -> str | None:
    return memory.settings.workspace_name if here else None


def _split(text: str) -> tuple[str, ...]:
    return tuple(part for part in (piece.strip() for piece in text.split(",")) if part)
