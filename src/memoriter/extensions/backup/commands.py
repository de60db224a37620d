"""The commands `backup`, `restore` and `migrate`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli import render
from memoriter.cli.context import GlobalOptions, Json

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.extensions.backup.creating import BackupReport
    from memoriter.extensions.backup.migrating import MigrationReport
    from memoriter.extensions.backup.restoring import RestoreReport

backup_command, restore_command, migrate_command = (typer.Typer(add_completion=False) for _ in range(3))


@backup_command.command(epilog="Example: memoriter backup ~/memory.zip")
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
    from memoriter.config.loading import owner_path
    from memoriter.extensions.backup.creating import create

    options: GlobalOptions = context.obj
    settings = options.settings()
    config = owner_path(options.config, options.arguments())
    with render.progress(as_json) as progress:
        report = create(settings, file, config=config, version=__version__, force=force, progress=progress)
    render.show(as_json, report, lambda: _print_backup(report))


def _print_backup(report: BackupReport) -> None:
    out = render.console()
    size = render.size(report.bytes)
    agents = f"the memory of {', '.join(report.agents)}" if report.agents else "no memory of an agent"
    notes, files = render.count(report.notes, "note"), render.count(report.files, "file")
    out.print(f"Wrote {report.path} ({size}, {files}): {notes} and {agents}. Every file was verified.")
    out.print("It may contain private notes and API keys. Only you can read it.")
    for folder in report.not_included:
        out.print(f"Not included, because it is outside the workspace: {folder}", style="yellow")


@restore_command.command(
    epilog="Example: memoriter --home ~/.memoriter --workspace ~/notes restore ~/memory.zip"
)
def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file that `memoriter backup` wrote.")],
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an existing memory. Its files are kept in another folder."),
    ] = False,
    accept: Annotated[
        bool,
        typer.Option(
            "--yes",
            "-y",
            help="Accept settings and files that may run a program, send or read text elsewhere, or trust others.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only verify the file and show what it contains.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Restore a backup after verifying every file. `--home` and `--workspace` name other places."""
    from memoriter.config.loading import explicit_places
    from memoriter.extensions.backup.restoring import restore as restore_backup

    home, workspace = explicit_places(context.obj.arguments())
    with render.progress(as_json) as progress:
        report = restore_backup(
            file,
            home=home,
            workspace=workspace,
            force=force,
            accept=accept,
            dry_run=dry_run,
            progress=progress,
        )
    render.show(as_json, report, lambda: _print_restore(report))


def _print_restore(report: RestoreReport) -> None:
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


@migrate_command.command(epilog="Example: memoriter migrate --from sqlite --to $DATABASE_URL")
def migrate(
    context: typer.Context,
    source: Annotated[str, typer.Option("--from", help="`sqlite`, or the URL of a server.")],
    target: Annotated[str, typer.Option("--to", help="`sqlite`, or the URL of a server.")],
    as_json: Json = False,
) -> None:
    """Copy the memory of an agent from files to a server, or back, and verify every row and file.

    The source is only read. If the copy is interrupted, run the same command again.
    """
    from memoriter.extensions.backup.migrating import migrate as migrate_memory

    places = [_settings_at(context.obj, place) for place in (source, target)]
    with render.progress(as_json) as progress:
        report = migrate_memory(*places, progress=progress)
    render.show(as_json, report, lambda: _print_migration(report))


def _settings_at(options: GlobalOptions, place: str) -> Settings:
    """Return the settings with the memory in files or on a server. A workspace that was named is that of the files."""
    from memoriter.config.layers import variables

    if place == "sqlite":
        return options.settings(**{"store.url": ""})
    environ = os.environ if options.environ is None else options.environ
    others = {name: value for name, value in environ.items() if variables().get(name) != "workspace"}
    return replace(options, workspace=None, environ=others).settings(**{"store.url": place})


def _print_migration(report: MigrationReport) -> None:
    out = render.console()
    for one in report.tables:
        out.print(f"{one.area}/{one.name}: {render.count(one.rows, 'row')}, digest {one.digest[:12]}")
    notes, files = render.count(report.notes, "note"), render.count(report.files, "other file")
    out.print(f"Copied the memory of {report.agent}: {notes} and {files}. Every table and file was verified.")
    for folder in report.not_included:
        out.print(f"Not included, because it is outside the workspace: {folder}", style="yellow")
    out.print("Next: set `store.url` to use the target, or remove it. The source is unchanged.")
