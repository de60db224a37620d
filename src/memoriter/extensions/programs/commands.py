"""Commands that connect the memory to other programs: `import`, `install`, `hook` and others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memoriter.cli import entry_tables, render
from memoriter.cli.context import GlobalOptions, Json
from memoriter.extensions.workspaces.setup import create_files
from memoriter.files.platform import quote

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.hosts import Host, ImportAction, ImportReport, InstallReport, InstallRequest
    from memoriter.records import Imported

HostName = Annotated[str, typer.Argument(metavar="HOST", help="Program that runs the agent.")]
ScopeOption = Annotated[
    Literal["user", "project"],
    typer.Option(help="Install for all projects, or only for the project in the current folder."),
]
HostHome = Annotated[Path | None, typer.Option("--home", help="Folder of the host, if not the default one.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


import_command, install_command, uninstall_command, hook_command, queue_command = (
    typer.Typer(add_completion=False) for _ in range(5)
)


# ---- import ---------------------------------------------------------------------------------------------------


@import_command.command(epilog="Example: memoriter import openclaw --dry-run")
def import_(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(
            help="A file or folder that memoriter or another program exported, or the name of a program."
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Argument(help="After the name of a program: its file or folder, if not the default one."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    as_json: Json = False,
) -> None:
    """Import an export, or the memory of another program. Existing data is kept."""
    from memoriter.errors import MemoriterError
    from memoriter.extension import offers
    from memoriter.extensions.importing import import_export, import_from
    from memoriter.extensions.importing.operations import ImportResult
    from memoriter.files.scan import NOTE_SUFFIXES

    program = str(source) if folder is not None or not source.is_file() else ""
    programs = offers("importers")
    if program not in programs and (folder or not source.exists()):
        names = ", ".join(sorted(programs))
        raise typer.BadParameter(f"'{source}' is neither a file nor one of: {names}.", param_hint="SOURCE")
    with context.obj.memory() as memory:
        named = import_from(memory, program, folder, dry_run=dry_run) if program in programs else None
        try:
            report = named or import_export(memory, source, dry_run=dry_run)
        except MemoriterError as error:
            if source.suffix.lower() not in NOTE_SUFFIXES:
                raise
            command = f"memoriter collection add NAME {quote(str(source.parent.absolute()))}"
            message = f"Notes are not imported, but searched where they are: run `{command}`."
            raise typer.BadParameter(message, param_hint="SOURCE") from error
    is_simple = not (named or report.steps or dry_run)
    render.show(
        as_json,
        lambda _: _report_of(named) if named else ImportResult.of(report),
        lambda: _print_imported(report.entries) if is_simple else _print_import(report),
    )


def _print_imported(counts: Imported) -> None:
    """Print how many entries an import added."""
    render.console().print(
        f"Imported {entry_tables.count_entries(counts.added)}; {counts.already} existed already."
    )
    if counts.refused:
        render.console().print(
            f"{entry_tables.count_entries(counts.refused)} not imported: the text was forgotten before."
        )


#: Files that a dry run lists one by one.
MAX_LISTED_FILES = 20
IMPORT_ACTIONS: dict[ImportAction, str] = {
    "new": "new",
    "grown": "updated",
    "same": "unchanged",
    "other": "skipped",
}


def _print_import(report: ImportReport) -> None:
    """Print what an import from another program copied, and what it skipped."""
    lines = [
        f"{report.program} in {report.home}, agent {report.agent}"
        + (" (dry run: nothing is changed)" if report.dry_run else "")
    ]
    for kind, title in (("note", "notes"), ("session", "sessions")):
        actions = [step.action for step in report.steps if step.kind == kind]
        counts = [f"{actions.count(one)} {label}" for one, label in IMPORT_ACTIONS.items() if one in actions]
        lines.append(f"{title}: {', '.join(counts) or 'none'}")
    lines.append(f"entries: {report.entries.added} new, {report.entries.already} unchanged")
    if report.dry_run:
        copies = [step for step in report.steps if step.action in ("new", "grown")]
        lines += [
            f"  {IMPORT_ACTIONS[step.action]} {step.source} -> {step.target}"
            for step in copies[:MAX_LISTED_FILES]
        ]
        lines += [f"  and {len(copies) - MAX_LISTED_FILES} more"] if len(copies) > MAX_LISTED_FILES else []
    lines += [f"skipped: {step.source}: {step.note}" for step in report.steps if step.action == "other"]
    lines += report.remarks
    sys.stdout.write(render.plain("\n".join(lines)) + "\n")


def _report_of(report: ImportReport) -> dict[str, object]:
    """Return the report of an import from another program for JSON."""
    names = ("kind", "source", "target", "action", "note")
    return {
        "program": report.program,
        "home": report.home,
        "agent": report.agent,
        "dryRun": report.dry_run,
        "files": [{name: getattr(step, name) for name in names} for step in report.steps],
        "turns": report.turns,
        "entries": {name: getattr(report.entries, name) for name in ("added", "already", "refused")},
        "remarks": report.remarks,
    }


# ---- install --------------------------------------------------------------------------------------------------


@install_command.command(epilog="Example: memoriter --workspace ~/notes install claude-code --dry-run")
def install(
    context: typer.Context,
    host: Annotated[
        str,
        typer.Argument(metavar="[HOST]", help="Program that runs the agent. Without it: choose from a list."),
    ] = "",
    scope: ScopeOption = "user",
    host_home: HostHome = None,
    with_import: Annotated[
        bool,
        typer.Option("--import", help="Also import the sessions and entries of the host, if it has any."),
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Make this memory the memory of a host. Prints what changes."""
    from dataclasses import replace

    options: GlobalOptions = context.obj
    request = _request(options, scope, host_home, dry_run)
    if not host:
        from memoriter.extensions.programs.hosts import choose

        for name in choose(request):
            install(context, name, scope, host_home, with_import, dry_run, as_json)
        return
    found = _find_host(host)
    request = replace(
        request,
        with_import=with_import,
        open_memory=lambda agent, workspace: replace(options, agent=agent, workspace=workspace).memory(),
    )
    if not dry_run:
        create_files(request.settings)
    _show(host, found.install(request), request, as_json)


@uninstall_command.command(epilog="Example: memoriter uninstall claude-code")
def uninstall(
    context: typer.Context,
    host: HostName,
    scope: ScopeOption = "user",
    host_home: HostHome = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Undo what `install` changed. The memory is kept."""
    found, request = _find_host(host), _request(context.obj, scope, host_home, dry_run)
    _show(host, found.uninstall(request), request, as_json)


def _find_host(name: str) -> Host:
    from memoriter.errors import BadArgument
    from memoriter.hosts import find_host

    try:
        return find_host(name)
    except BadArgument as error:
        from memoriter.extensions.mcp.commands import LOCATIONS

        client = name if name in LOCATIONS else "json"
        hint = f"Other programs use MCP: run `memoriter mcp --print-config {client}`."
        raise typer.BadParameter(f"{error} {hint}", param_hint="HOST") from error


def _request(
    options: GlobalOptions, scope: Literal["user", "project"], host_home: Path | None, dry_run: bool
) -> InstallRequest:
    from memoriter.hosts import InstallRequest

    settings = _hook_settings(options)
    return InstallRequest(
        settings, _hook_options(options, settings), scope=scope, home=host_home, dry_run=dry_run
    )


def _show(host: str, report: InstallReport, request: InstallRequest, as_json: bool) -> None:
    """Print what changed: lines for people, or one object."""
    if not as_json:
        for imported in report.imports:
            _print_import(imported)
        sys.stdout.write(render.plain("".join(f"{line}\n" for line in report.lines)))
        return
    result = {"host": host, "dryRun": request.dry_run, "workspace": request.settings.workspace}
    details = {"plugin": report.plugin, "commands": report.commands, "files": report.files}
    render.to_json(result | {name: value for name, value in details.items() if value is not None})


def _hook_settings(options: GlobalOptions) -> Settings:
    """Load the settings as the hooks will. The current folder counts if it is a workspace: often it is a project.

    A project may have a folder `memory` of its own, so this alone does not make it a workspace.
    """
    from memoriter.config import find_workspace, load

    here = Path.cwd()
    is_workspace = find_workspace(here) is not None or (here / "MEMORY.md").is_file()
    paths = {"workspace": options.workspace, "home": options.home}
    absolute = {name: path.expanduser().absolute() for name, path in paths.items() if path}
    return load(
        config=_config_path(options),
        arguments={**options.arguments(), **absolute},
        cwd=here if is_workspace else Path.home(),
    )


def _config_path(options: GlobalOptions) -> Path | None:
    return options.config.expanduser().absolute() if options.config else None


def _hook_options(options: GlobalOptions, settings: Settings) -> dict[str, str]:
    """Return the options that hooks need to find the same memory."""
    needed = dict[str, str]()
    config = _config_path(options)
    if config:
        needed["config"] = str(config)
    for name in ("home", "workspace", "agent"):
        origin = settings.origin(name)
        in_file = origin.endswith((".yaml", ".yml"))
        # The MCP server runs in the folder of a project, which may be another workspace.
        if name == "workspace" or (origin != "default" and not in_file):
            needed[name] = str(getattr(settings, name))
    return needed


# ---- hooks ----------------------------------------------------------------------------------------------------


@hook_command.command(epilog="Example: memoriter hook claude-code UserPromptSubmit < event.json")
def hook(
    context: typer.Context,
    host: Annotated[str, typer.Argument(help="Program that runs the agent.")],
    event: Annotated[
        str, typer.Argument(help="SessionStart, UserPromptSubmit, Stop, SessionEnd or PreCompact.")
    ] = "",
    deadline: Annotated[float, typer.Option(help="Seconds within which the hook answers.")] = 2.0,
    server: Annotated[
        str, typer.Option(help="Name of the memoriter MCP server in the host's settings.")
    ] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Exit when all work is finished, not when the answer is printed.")
    ] = False,
) -> None:
    """Answer a hook of a host. Reads JSON from standard input, prints at most one JSON object, and exits with 0."""
    from memoriter.hosts import find_host
    from memoriter.resident.command_line import GLOBAL_OPTIONS, HookCommand

    # `memoriter.cli.main` answers hooks without typer. This function serves `--help` and programs that run the app.
    named = {name: getattr(context.obj, name) for name in GLOBAL_OPTIONS}
    given = {name: str(value) for name, value in named.items() if value is not None}
    command = HookCommand(host, event, deadline_s=deadline, wait=wait, server=server, options=given)
    find_host(host).answer_hook(command)


@queue_command.command()
def process_queue(context: typer.Context, as_json: Json = False) -> None:
    """Process queued sessions."""
    from memoriter.agent import Agent
    from memoriter.hosts import queues

    settings = context.obj.settings(**{"embedding.background": False})
    with Agent.open(settings, slot="memory-full") as agent:
        agent.service  # noqa: B018 - raises the reason if there is no memory
        states = [host.process_queue(agent) for host in queues()]
    processed, waiting = sum(one.done for one in states), sum(one.waiting for one in states)
    busy = "; another process is working on them" if any(one.busy for one in states) else ""
    text = f"{processed} processed, {waiting} waiting{busy}"
    render.show(as_json, {"done": processed, "waiting": waiting}, text)
