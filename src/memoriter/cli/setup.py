"""Commands that connect the memory to other programs: `import`, `install`, `hook` and others.

Imports of the package stay inside the functions, so that ``--help`` loads only typer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memoriter.cli.context import GlobalOptions, Json
from memoriter.cli.folders import create_files

if TYPE_CHECKING:
    from memoriter.agent.installed_files import FileChange
    from memoriter.config import Settings
    from memoriter.extensions.claude_code.install import ClaudePlugin

#: Programs that can use this memory as their own.
HOSTS = ("claude-code", "openclaw")

HostName = Annotated[
    str, typer.Argument(metavar="HOST", help="Program that runs the agent: claude-code or openclaw.")
]
ScopeOption = Annotated[
    Literal["user", "project"],
    typer.Option(help="Install for all projects, or only for the project in the current folder."),
]
HostHome = Annotated[
    Path | None,
    typer.Option("--home", help="For openclaw: its folder, if not the default one.", show_default=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("import", epilog="Example: memoriter import openclaw --dry-run")(import_)
    app.command(epilog="Example: memoriter --workspace ~/notes install claude-code --dry-run")(install)
    app.command(epilog="Example: memoriter uninstall claude-code")(uninstall)
    app.command(epilog="Example: memoriter hook claude-code UserPromptSubmit < event.json")(hook)
    app.command("process-queue")(process_queue)


# ---- import ---------------------------------------------------------------------------------------------------


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
        typer.Argument(
            help="After the name of a program: its file or folder, if not the default one.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    as_json: Json = False,
) -> None:
    """Import an export, or the memory of another program. Existing data is kept."""
    from memoriter.cli import entry_tables, render
    from memoriter.extension import offers
    from memoriter.importing import import_export, import_from

    program = str(source) if folder is not None or not source.is_file() else ""
    programs = offers("importers")
    if program not in programs and (folder or not source.exists()):
        names = ", ".join(sorted(programs))
        raise typer.BadParameter(
            f"{str(source)!r} is neither a file nor one of: {names}.", param_hint="SOURCE"
        )
    with context.obj.memory() as memory:
        named = import_from(memory, program, folder, dry_run=dry_run) if program in programs else None
        report = named or import_export(memory, source, dry_run=dry_run)
    is_simple = not (named or report.steps or dry_run)
    render.show(
        as_json,
        lambda results: (results.ProgramImportResult if named else results.ImportResult).of(report),
        lambda: entry_tables.imported(report.entries) if is_simple else render.import_report(report),
    )


# ---- install --------------------------------------------------------------------------------------------------


def install(
    context: typer.Context,
    host: HostName,
    scope: ScopeOption = "user",
    host_home: HostHome = None,
    with_import: Annotated[
        bool, typer.Option("--import", help="For openclaw: also import its sessions and entries.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Make this memory the memory of a host. Prints what changes."""
    _check_host(host)
    if host == "openclaw":
        _install_openclaw(context.obj, host_home, with_import=with_import, dry_run=dry_run, as_json=as_json)
        return
    from memoriter.extensions.claude_code.install import ClaudePlugin

    settings = _hook_settings(context.obj)
    plugin = ClaudePlugin.of(settings.home, scope)
    if not dry_run:
        create_files(settings)
        plugin.install(_hook_options(context.obj, settings))
    _print_plugin(plugin, plugin.install_commands, settings, as_json=as_json, dry_run=dry_run)
    if not dry_run and not as_json:
        sys.stdout.write(f"Installed: {host}, workspace {settings.workspace}\n")
        if settings.origin("workspace") == "default":
            sys.stdout.write(
                "To use another folder of notes, run `memoriter init` in it, and then this again.\n"
            )


def uninstall(
    context: typer.Context,
    host: HostName,
    scope: ScopeOption = "user",
    host_home: HostHome = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Undo what `install` changed. The memory is kept."""
    _check_host(host)
    if host == "openclaw":
        _uninstall_openclaw(context.obj, host_home, dry_run=dry_run, as_json=as_json)
        return
    from memoriter.extensions.claude_code.install import ClaudePlugin
    from memoriter.resident.commands import stop_process

    settings = _hook_settings(context.obj)
    plugin = ClaudePlugin.of(settings.home, scope)
    is_installed = plugin.folder.is_dir()
    if not dry_run:
        plugin.uninstall()
        stop_process(settings)  # it served the hooks; a command starts it again
    commands = plugin.uninstall_commands if is_installed else ()
    _print_plugin(plugin, commands, settings, as_json=as_json, dry_run=dry_run)
    if not dry_run and not as_json:
        sys.stdout.write(f"Uninstalled: {host}\n")


def _print_plugin(
    plugin: ClaudePlugin,
    commands: Sequence[Sequence[str]],
    settings: Settings,
    *,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Print the folder of the plugin and the commands of Claude Code that register or remove it."""
    import shlex

    from memoriter.cli import render

    lines = [shlex.join(["claude", *command]) for command in commands]
    if as_json:
        from memoriter.cli.results import InstallResult

        shown = InstallResult(host="claude-code", dry_run=dry_run, workspace=settings.workspace)
        render.to_json(shown.model_copy(update={"plugin": plugin.folder, "commands": lines}))
        return
    sys.stdout.write("".join(f"{line}\n" for line in (f"plugin: {plugin.folder}", *lines)))


def _install_openclaw(
    options: GlobalOptions, folder: Path | None, *, with_import: bool, dry_run: bool, as_json: bool
) -> None:
    from memoriter.agent.installed_files import program
    from memoriter.extensions.openclaw.install import OpenClawHost
    from memoriter.extensions.openclaw.install import install as select_plugin

    settings = _hook_settings(options)
    host = OpenClawHost.find(folder)
    memory_home = settings.home if settings.origin("home") != "default" else None
    changes = select_plugin(settings.home, host, program(), memory_home, dry_run=dry_run)
    workspaces = host.workspaces()
    if with_import:
        for agent, workspace in workspaces.items():
            _import_agent(options, host.state, agent, workspace, dry_run=dry_run, as_json=as_json)
    if as_json or dry_run:
        _print_changes("openclaw", changes, settings, as_json=as_json, dry_run=dry_run)
        return
    lines = [
        f"{host.settings}: memory slot and plugin settings"
        if changes[0].is_change
        else f"{host.settings}: unchanged",
        f"{host.plugin}: plugin",
        *(f"Agent {agent}: workspace {workspace}" for agent, workspace in workspaces.items()),
        f"memoriter keeps its data in {settings.home}.",
        "OpenClaw applies the change while it runs. Check it with: openclaw memory status",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _import_agent(
    options: GlobalOptions, state: Path, agent: str, workspace: Path, *, dry_run: bool, as_json: bool
) -> None:
    """Import sessions and entries of one agent. Its notes are used in place."""
    from dataclasses import replace

    from memoriter.cli import render
    from memoriter.extensions.openclaw.importing import import_openclaw

    with replace(options, agent=agent, workspace=workspace).memory() as memory:
        report = import_openclaw(memory, state, dry_run=dry_run)
    if not as_json:
        render.import_report(report)


def _uninstall_openclaw(options: GlobalOptions, folder: Path | None, *, dry_run: bool, as_json: bool) -> None:
    from memoriter.extensions.openclaw.install import OpenClawHost
    from memoriter.extensions.openclaw.install import uninstall as deselect_plugin

    settings = _hook_settings(options)
    host = OpenClawHost.find(folder)
    is_installed = host.plugin.is_dir()
    changes = deselect_plugin(settings.home, host, dry_run=dry_run)
    _print_changes("openclaw", changes, settings, as_json=as_json, dry_run=dry_run)
    if not as_json and not dry_run:
        result = "removed" if is_installed else "not installed"
        sys.stdout.write(f"{host.plugin}: {result}\nThe memory stays in {settings.home}.\n")


def _check_host(host: str) -> None:
    if host not in HOSTS:
        raise typer.BadParameter(f"Unknown host {host!r}. Supported: {', '.join(HOSTS)}.", param_hint="HOST")


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


def _print_changes(
    host: str, changes: Sequence[FileChange], settings: Settings, *, as_json: bool, dry_run: bool
) -> None:
    from memoriter.cli import render

    if as_json:
        from memoriter.cli.results import FileChangeJson, InstallResult

        files = [
            FileChangeJson(path=one.path, changed=one.is_change, diff=one.diff() if dry_run else None)
            for one in changes
        ]
        render.to_json(InstallResult(host=host, dry_run=dry_run, workspace=settings.workspace, files=files))
        return
    for change in changes:
        if dry_run and change.is_change:
            sys.stdout.write(render.plain(change.diff()))
        else:
            state = "unchanged" if not change.is_change else "removed" if change.after is None else "changed"
            sys.stdout.write(render.plain(f"{change.path}: {state}\n"))


# ---- hooks ----------------------------------------------------------------------------------------------------


def hook(
    context: typer.Context,
    host: Annotated[str, typer.Argument(help="Program that runs the agent: claude-code.")],
    event: Annotated[
        str, typer.Argument(help="SessionStart, UserPromptSubmit, Stop, SessionEnd or PreCompact.")
    ] = "",
    deadline: Annotated[float, typer.Option(help="Seconds within which the hook answers.")] = 2.0,
    server: Annotated[
        str, typer.Option(help="Name of the memoriter MCP server in the host's settings.", show_default=False)
    ] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Exit when all work is finished, not when the answer is printed.")
    ] = False,
) -> None:
    """Answer a hook of a host. Reads JSON from standard input, prints at most one JSON object, and exits with 0."""
    from memoriter.extensions.claude_code.hook import main
    from memoriter.resident.command_line import GLOBAL_OPTIONS, HookCommand

    # `memoriter.cli.main` answers hooks without typer. This function serves `--help` and programs that run the app.
    named = {name: getattr(context.obj, name) for name in GLOBAL_OPTIONS}
    given = {name: str(value) for name, value in named.items() if value is not None}
    main(HookCommand(host, event, deadline_s=deadline, wait=wait, server=server, options=given))


def process_queue(context: typer.Context, as_json: Json = False) -> None:
    """Process queued sessions."""
    from memoriter.agent import Agent
    from memoriter.cli import render
    from memoriter.extensions.claude_code import capture

    settings = context.obj.settings(**{"embedding.background": False})
    with Agent.open(settings, slot="memory-full") as agent:
        agent.service  # noqa: B018 - raises the reason if there is no memory
        processed = capture.process_queue(agent)
    queue = capture.session_queue(settings)
    waiting = len(queue.pending())
    busy = "; another process is working on them" if waiting and queue.is_draining() else ""
    render.show(
        as_json,
        lambda results: results.QueueResult(done=processed, waiting=waiting),
        lambda: typer.echo(f"{processed} processed, {waiting} waiting{busy}"),
    )
