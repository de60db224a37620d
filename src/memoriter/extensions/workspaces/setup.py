"""The command `init`, which sets up a folder of notes."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli import render
from memoriter.cli.context import WORKSPACE_VARIABLES, GlobalOptions, Json
from memoriter.cli.folders import (
    describe_files,
    how_to_index,
    index_command,
    not_indexed,
    saying_how_to_continue,
)
from memoriter.errors import NotFound, SourceError
from memoriter.files.platform import make_private, quote, sync_file

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.extensions.programs.existing import ExistingNotes
    from memoriter.memory import Memory
    from memoriter.records import SyncReport

# The text is inside comments that the index ignores, so a search in a new memory finds nothing.
MEMORY_MD = """\
<!-- memoriter: keep lasting facts here, one per line: people, decisions, how things are done. -->
<!-- memoriter: daily notes go to memory/YYYY-MM-DD.md, longer topics to memory/<topic>/<name>.md. -->
"""

CONFIG_YAML = """# Settings of memoriter. Every setting has a default; `memoriter config show` lists them all.
# search:
#   max_results: 6
# embedding:
#   provider: auto
"""

#: `init` computes vectors for this long, in seconds: enough for a hundred short notes.
FIRST_VECTORS_S = 3.0
init_app = typer.Typer(add_completion=False)

WORKSPACE_YAML = "# memoriter: this folder is a workspace.\n"

#: The settings file of a workspace.
MARKER = ".memoriter.yaml"


@dataclass(frozen=True, slots=True)
class SetupReport:
    """The files and folders that `init` created, changed and left unchanged, and the notes it found."""

    workspace: Path
    home: Path
    made: tuple[Path, ...]
    changed: tuple[Path, ...]
    kept: tuple[Path, ...]
    #: Notes that belong to the memory, and the folders they are in.
    notes: int
    folders: int
    #: Notes in the workspace that do not belong to the memory.
    not_indexed: int
    #: All files in the workspace that do not belong to the memory, by kind.
    other_files: dict[str, int]
    #: Notes that agents keep on this machine, and whether they are collections now.
    agent_notes: tuple[ExistingNotes, ...]
    added: bool


@init_app.command(epilog="Examples: memoriter init · memoriter init ~/vault --all-notes")
def init(
    context: typer.Context,
    path: Annotated[
        Path | None, typer.Argument(help="Folder to set up (default: the current folder).")
    ] = None,
    all_notes: Annotated[
        bool | None,
        typer.Option(
            "--all-notes/--no-all-notes",
            help="Index every note in the folder, not only MEMORY.md and memory/. In a terminal, you are "
            "asked.",
        ),
    ] = None,
    agent_notes: Annotated[
        bool | None,
        typer.Option(
            "--agent-notes/--no-agent-notes",
            help="Also search what coding agents keep on this machine: Claude Code's and Codex's memories, Cursor's "
            "rules, CLAUDE.md, AGENTS.md. They become collections with the trust `agent`. In a terminal, you are "
            "asked.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Create a missing folder without a question.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Return when search by meaning is ready too, not only by keyword.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Set up a folder of notes as a workspace, and index it. Existing files are kept.

    Keywords are indexed at once. If search by meaning needs more than a few seconds, it follows in the background.
    """
    from memoriter.errors import MemoryDisabled

    options, named = _chosen_folder(context.obj, path), context.obj.workspace is not None
    settings = options.settings()
    if (path or named) and not settings.workspace.exists():
        _announce_folder(settings.workspace, yes=yes, ask=not (yes or as_json))
    if (
        (root := settings.workspace).is_dir()
        and not (root / MARKER).exists()
        and not os.access(root, os.W_OK)
    ):
        raise SourceError(f"{root} is read-only and cannot be set up. {how_to_index({'notes': 1}, root)}")
    every = _list_notes(settings)
    if all_notes is None:
        all_notes = _ask_about_notes(settings, every, as_json=as_json)
    created, existing = create_files(settings, all_notes=all_notes)
    changed = [settings.workspace / MARKER] if all_notes and _index_all_notes(settings) else []
    changed += _set_default(options, settings.workspace, replace_other=named)
    kept, changed_there = _offer_agent_notes(options, settings, agent_notes, as_json=as_json)
    changed += changed_there
    indexed, paths, others = None, tuple[str, ...](), dict[str, int]()
    with suppress(MemoryDisabled), options.memory() as memory:
        indexed = index_first(memory, wait=wait, as_json=as_json)
        paths, others = memory.notes.paths(), not_indexed(memory)
    follows = announce_rest(options, settings, indexed) if indexed else ""
    notes = [path for path in paths if not Path(path).is_absolute()]
    report = SetupReport(
        settings.workspace,
        settings.home,
        created,
        tuple(path for path in changed if path not in created),
        tuple(path for path in existing if path not in changed),
        len(notes),
        len({Path(note).parent for note in notes}),
        len(every.difference(notes)),
        others,
        kept,
        bool(changed_there),
    )
    render.show(
        as_json,
        lambda tools: {
            **render.plain_data(report),
            "index": indexed and tools.search.SyncResult.model_validate(indexed),
        },
        lambda: _print_report(report, indexed, follows),
    )


def index_first(memory: Memory, *, wait: bool, as_json: bool) -> SyncReport:
    """Index new notes: keywords now, and vectors for a few seconds, unless the caller waits for all of them."""
    with saying_how_to_continue(memory), render.progress(as_json) as progress:
        return memory.sync(vectors_s=None if wait else FIRST_VECTORS_S, progress=progress)


def announce_rest(options: GlobalOptions, settings: Settings, indexed: SyncReport) -> str:
    """Let the resident process compute the vectors that are missing. Return a sentence about it for the owner."""
    from memoriter.resident.commands import continue_index

    if not indexed.pending or indexed.remaining_s is None:
        return ""
    ready, time = "Searchable now by keyword.", render.about(indexed.remaining_s)
    if continue_index(settings, options):
        return f"{ready} Search by meaning follows in {time}; `memoriter status` shows how far it is."
    return f"{ready} For search by meaning, run `{index_command(settings)}` ({time})."


def _chosen_folder(options: GlobalOptions, path: Path | None) -> GlobalOptions:
    """Return the options with the folder to set up. The user's home and the root are not set up unless named."""
    if path is not None and options.workspace is not None:
        raise typer.BadParameter("Name the folder once: as PATH or with --workspace.", param_hint="PATH")
    folder = path or options.workspace
    if folder is None:
        settings, folder = options.settings(), Path.cwd()
        if settings.origin("workspace") in WORKSPACE_VARIABLES:
            return options
        if folder.resolve() in (Path.home().resolve(), Path(folder.anchor)):
            folder = settings.workspace
    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"'{folder}' is not a folder.", param_hint="PATH")
    return replace(options, workspace=folder.expanduser().absolute())


def _announce_folder(folder: Path, *, yes: bool, ask: bool) -> None:
    """Ask whether to create a folder, which may be mistyped.

    Without a terminal, say that it is created. If the folder above it is missing too, it is not created.
    """
    missing = f"There is no folder {render.plain(str(folder))}."
    if ask and sys.stdin.isatty() and sys.stdout.isatty():
        typer.confirm(f"{missing} Create it?", abort=True)
    elif not yes and not folder.parent.is_dir():
        raise NotFound(f"{missing} To create it and the folders above it, pass --yes.")
    else:
        sys.stderr.write(f"memoriter: {missing} It is created.\n")


def _list_notes(settings: Settings) -> set[str]:
    """List every note in the workspace, whether or not it belongs to the memory."""
    from memoriter.files.scan import Walk, tree_of

    tree = tree_of(settings.workspace, settings.workspace, settings.files.patterns)
    return {found.path for found in Walk(tree).files} if tree else set()


def _ask_about_notes(settings: Settings, every: set[str], *, as_json: bool) -> bool:
    """Return whether to index all notes of a folder that is not a workspace yet."""
    root = settings.workspace
    markers = ("MEMORY.md", "memory.md", settings.files.folder, MARKER)
    is_new = not any((root / name).exists() for name in markers)
    if not is_new or not every or as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    folders = len({Path(path).parent for path in every})
    question = f"{root} has {count_notes(len(every), folders)}. Index all of them?"
    return typer.confirm(question, default=True)


def _offer_agent_notes(
    options: GlobalOptions, settings: Settings, wanted: bool | None, *, as_json: bool
) -> tuple[tuple[ExistingNotes, ...], list[Path]]:
    """Return the notes that agents keep here, and the settings file if they became collections."""
    from memoriter.config.loading import owner_path
    from memoriter.extensions.programs import existing

    found = existing.find_notes(settings)
    if found and wanted is None and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        question = f"Agents keep notes here: {existing.describe(found)}. Search them too?"
        wanted = typer.confirm(question, default=False)
    if not found or not wanted:
        return tuple(found), []
    existing.add_notes(options, found)
    return tuple(found), [owner_path(options.config, options.arguments())]


def create_files(settings: Settings, *, all_notes: bool = False) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Create the first files of the workspace and of the home. Return those that are new, and those that existed."""
    root, home = settings.workspace, settings.home
    marker, config = root / MARKER, home / "config.yaml"
    core = next(
        (root / name for name in ("MEMORY.md", "memory.md") if (root / name).is_file()), root / "MEMORY.md"
    )
    has_all = all_notes or root.resolve() in settings.files.extra_paths
    own = () if has_all else ((root / settings.files.folder, 0o777),)
    created, existing = list[Path](), list[Path]()
    for folder, mode in ((root, 0o777), *own, (home, 0o700)):
        (existing if folder.is_dir() else created).append(folder)
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        if mode == 0o700 and folder in created:
            make_private(folder)
    texts = {marker: (WORKSPACE_YAML, 0o666), config: (CONFIG_YAML, 0o600)}
    if not has_all:
        texts = {core: (MEMORY_MD, 0o666), **texts}
    for file, (text, mode) in texts.items():
        (created if _create_file(file, text, mode) else existing).append(file)
    return tuple(dict.fromkeys(created)), tuple(dict.fromkeys(existing))


def _create_file(file: Path, text: str, mode: int) -> bool:
    """Write a new file; return False if it exists."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
        stream.flush()
        sync_file(descriptor)
    return True


def _index_all_notes(settings: Settings) -> bool:
    """Add the workspace itself to the extra paths in its settings file. Return whether the file changed."""
    from memoriter.extensions.settings.editing import change_value

    marker = settings.workspace / MARKER
    if settings.workspace.resolve() in settings.files.extra_paths:
        return False

    def add(paths: object) -> list[object]:
        known = paths if isinstance(paths, list) else [paths] if paths else []
        return [*known, "."]

    return change_value(marker, "files.extra_paths", add, mode=marker.stat().st_mode & 0o777)


def _set_default(options: GlobalOptions, workspace: Path, *, replace_other: bool) -> list[Path]:
    """Write the workspace to the owner's settings file, for commands that run elsewhere; return the changed file."""
    from memoriter.config.loading import owner_path
    from memoriter.extensions.settings.editing import change_value

    if any(os.environ.get(name) for name in WORKSPACE_VARIABLES) and not replace_other:
        return []
    path = owner_path(options.config, options.arguments())
    is_changed = change_value(
        path, "workspace", lambda known: str(workspace) if known is None or replace_other else known
    )
    return [path] if is_changed else []


def _print_report(report: SetupReport, indexed: SyncReport | None, follows: str) -> None:
    """Print what `init` created and indexed."""
    out = render.console()
    for verb, paths in (("created", report.made), ("changed", report.changed), ("kept", report.kept)):
        for path in paths:
            out.print(f"{verb:<7}  {render.shorten_home(path)}")
    if report.notes:
        out.print(f"{count_notes(report.notes, report.folders)}.")
    if report.other_files:
        hint = how_to_index(report.other_files, report.workspace)
        out.print(f"Not indexed: {describe_files(report.other_files)}. {hint}".rstrip(), style="yellow")
    if report.agent_notes:
        from memoriter.extensions.programs.existing import describe

        how = f" To search them too, run `memoriter init {quote(str(report.workspace))} --agent-notes`."
        verb, how = ("Added", "") if report.added else ("Not searched", how)
        out.print(f"{verb}: {describe(report.agent_notes)}, written by agents.{how}")
    if indexed and indexed.files:
        render.sync_report(replace(indexed, degraded=None) if follows else indexed)
    if follows:
        out.print(follows)
    first = "" if indexed and indexed.chunks else "write a note under memory/, then "
    out.print(f"Next: {first}run `memoriter search …`.")


def count_notes(notes: int, folders: int) -> str:
    """Return a number of notes in words.

    >>> count_notes(412, 38), count_notes(1, 1)
    ('412 notes in 38 folders', '1 note in 1 folder')
    """
    return f"{render.count(notes, 'note')} in {render.count(folders, 'folder')}"
