"""The commands `backup`, `restore` and `migrate`.

Imports of the package stay inside the functions, so that ``--help`` loads only typer.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli.context import GlobalOptions, Json

if TYPE_CHECKING:
    from memoriter.backup import BackupReport, MigrationReport, RestoreReport
    from memoriter.config import Settings


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Example: memoriter backup ~/memory.zip")(backup)
    app.command(epilog="Example: memoriter --home ~/.memoriter --workspace ~/notes restore ~/memory.zip")(
        restore
    )
    app.command(epilog="Example: memoriter migrate --from sqlite --to $DATABASE_URL")(migrate)


def backup(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="File to write, or a folder for a file with the date in its name.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Write entries, sessions, notes and settings to one verified file."""
    from memoriter import __version__
    from memoriter.backup import create
    from memoriter.cli import render
    from memoriter.config.loading import owner_path

    options: GlobalOptions = context.obj
    settings = options.settings()
    config = owner_path(options.config, options.arguments())
    with render.progress(as_json) as progress:
        report = create(settings, file, config=config, version=__version__, force=force, progress=progress)
    _print_backup(report, as_json)


def _print_backup(report: BackupReport, as_json: bool) -> None:
    from memoriter.cli import render

    if as_json:
        render.to_json(
            {
                "path": str(report.path),
                "bytes": report.bytes,
                "files": report.files,
                "notes": report.notes,
                "agents": report.agents,
                "notIncluded": report.not_included,
            }
        )
        return
    out = render.console()
    size = render.size(report.bytes)
    agents = f"the memory of {', '.join(report.agents)}" if report.agents else "no memory of an agent"
    notes, files = render.count(report.notes, "note"), render.count(report.files, "file")
    out.print(f"Wrote {report.path} ({size}, {files}): {notes} and {agents}. Every file was verified.")
    out.print("It may contain private notes and API keys. Only you can read it.")
    for folder in report.not_included:
        out.print(f"Not included, because it is outside the workspace: {folder}", style="yellow")


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file that `memoriter backup` wrote.")],
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an existing memory. Its files are kept in another folder."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only verify the file and show what it contains.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Restore a backup after verifying every file. `--home` and `--workspace` name other places."""
    from memoriter.backup import restore as restore_backup
    from memoriter.cli import render
    from memoriter.config.loading import explicit_places

    home, workspace = explicit_places(context.obj.arguments())
    with render.progress(as_json) as progress:
        report = restore_backup(
            file, home=home, workspace=workspace, force=force, dry_run=dry_run, progress=progress
        )
    _print_restore(report, as_json)


def _print_restore(report: RestoreReport, as_json: bool) -> None:
    from memoriter.cli import render

    if as_json:
        render.to_json(
            {
                "home": str(report.home),
                "workspace": str(report.workspace),
                "files": report.files,
                "notes": report.notes,
                "agents": report.agents,
                "replaced": str(report.replaced) if report.replaced else None,
                "dryRun": report.dry_run,
            }
        )
        return
    out = render.console()
    verb = "Would restore" if report.dry_run else "Restored"
    out.print(f"{verb} {render.count(report.files, 'file')}; every file was verified.")
    out.print(f"Home: {report.home} (agents: {', '.join(report.agents) or 'none'})")
    out.print(f"Workspace: {report.workspace} ({render.count(report.notes, 'note')})")
    if report.replaced:
        out.print(
            f"The replaced files are in {report.replaced}. Delete the folder when you no longer need it."
        )
    if not report.dry_run:
        out.print("Next: run `memoriter index`. The index is not part of a backup.")


def migrate(
    context: typer.Context,
    source: Annotated[str, typer.Option("--from", help="`sqlite`, or the URL of a server.")],
    target: Annotated[str, typer.Option("--to", help="`sqlite`, or the URL of a server.")],
    as_json: Json = False,
) -> None:
    """Copy the memory of an agent from files to a server, or back, and verify every row and file.

    The source is only read. If the copy is interrupted, run the same command again.
    """
    from memoriter.backup import migrate as migrate_memory
    from memoriter.cli import render

    places = [_settings_at(context.obj, place) for place in (source, target)]
    with render.progress(as_json) as progress:
        report = migrate_memory(*places, progress=progress)
    _print_migration(report, as_json)


def _settings_at(options: GlobalOptions, place: str) -> Settings:
    """Return the settings with the memory in files or on a server. A workspace that was named is that of the files."""
    from memoriter.config.layers import variables

    if place == "sqlite":
        return options.settings(**{"store.url": ""})
    environ = os.environ if options.environ is None else options.environ
    others = {name: value for name, value in environ.items() if variables().get(name) != "workspace"}
    return replace(options, workspace=None, environ=others).settings(**{"store.url": place})


def _print_migration(report: MigrationReport, as_json: bool) -> None:
    from memoriter.cli import render

    if as_json:
        render.to_json(
            {
                "agent": report.agent,
                "tables": [
                    {"area": one.area, "table": one.name, "rows": one.rows, "digest": one.digest}
                    for one in report.tables
                ],
                "notes": report.notes,
                "files": report.files,
                "notIncluded": report.not_included,
            }
        )
        return
    out = render.console()
    for one in report.tables:
        out.print(f"{one.area}/{one.name}: {render.count(one.rows, 'row')}, digest {one.digest[:12]}")
    notes, files = render.count(report.notes, "note"), render.count(report.files, "other file")
    out.print(f"Copied the memory of {report.agent}: {notes} and {files}. Every table and file was verified.")
    for folder in report.not_included:
        out.print(f"Not included, because it is outside the workspace: {folder}", style="yellow")
    out.print("Next: set `store.url` to use the target, or remove it. The source is unchanged.")
