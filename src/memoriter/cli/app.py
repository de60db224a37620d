"""The command line application and the commands for setup, search and health.

In all modules of commands, imports of the package stay inside the functions, so that ``--help`` loads only typer.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memoriter.cli import entries, folders, render
from memoriter.cli.context import CommandGroup, GlobalOptions, Json, Words, join_words, read_words
from memoriter.resident import commands as resident

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memoriter.records import Finding

app = typer.Typer(
    name="memoriter",
    help="Long-term memory for AI agents: search your Markdown notes by meaning and by keyword, offline. Statements "
    "that you add or that agents learn are entries; the web page calls them memories.",
    epilog="Options such as --home also work after the command. Start with: memoriter init, memoriter search TEXT",
    no_args_is_help=True,
    cls=CommandGroup,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        from memoriter import __version__

        typer.echo(f"memoriter {__version__}")
        raise typer.Exit


@app.callback()
def _set_options(
    context: typer.Context,
    workspace: Annotated[
        Path | None,
        typer.Option(help="Folder of notes or its name (default: the current folder, if set up)."),
    ] = None,
    home: Annotated[
        Path | None, typer.Option(help="Folder for memoriter's own files (default: ~/.memoriter).")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Agent name (default: main).")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings file (default: <home>/config.yaml).")] = None,
    store: Annotated[
        str | None, typer.Option(help="URL of the server that holds the memory (default: files in the home).")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    context.obj = replace(
        context.obj or GlobalOptions(),
        workspace=workspace,
        home=home,
        agent=agent,
        config=config,
        store=store,
    )


@app.command("sync", hidden=True)
@app.command(epilog="Examples: memoriter index --force · memoriter index --batch")
def index(
    context: typer.Context,
    force: Annotated[
        bool, typer.Option("--force", help="Rebuild the whole index. The old one is used until it is ready.")
    ] = False,
    batch: Annotated[
        bool, typer.Option("--batch", help="Use the provider's batch API: cheaper, but up to an hour slower.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring the index up to date with the files. Exits with status 1 if chunks have no vector afterwards.

    `sync` is another name of this command, and `reindex` one of `index --force`.
    """
    with (
        context.obj.memory() as memory,
        folders.saying_how_to_continue(memory),
        render.progress(as_json) as progress,
    ):
        report = memory.sync(force=force, verify=True, batch=batch, progress=progress)
    render.show(
        as_json,
        lambda tools: tools.search.SyncResult.model_validate(report),
        lambda: render.sync_report(report),
    )
    if report.pending:
        raise typer.Exit(1)


@app.command(hidden=True)
def reindex(context: typer.Context, as_json: Json = False) -> None:
    """Rebuild the whole index: `memoriter index --force`."""
    index(context, force=True, as_json=as_json)


@app.command(
    epilog="Examples: memoriter search how do we back up · memoriter search 数据库 --max-results 3 --explain"
)
def search(
    context: typer.Context,
    words: Annotated[Words, typer.Argument(metavar="QUERY", help="Keywords or a question, in any language.")],
    max_results: Annotated[
        int | None, typer.Option("--max-results", "-n", min=1, help="Maximum number of results (default: 6).")
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Minimum score of a result.")
    ] = None,
    source: Annotated[
        Literal["memory", "sessions", "entries"] | None,
        typer.Option(help="Search only notes (memory), session transcripts or entries."),
    ] = None,
    path: Annotated[
        str | None, typer.Option(help="Only search files whose path starts with this prefix.")
    ] = None,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Only search the notes of this collection.")
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="DAY", help="Search what was valid on a day, such as 2026-03-01.", show_default=False
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each score is computed.")] = False,
    as_json: Json = False,
) -> None:
    """Search notes, session transcripts and entries.

    `search` is for you and finds everything. `recall` shows what an agent would get for a message.
    """
    query = join_words(words, "The query is empty. Write what you are looking for.")
    with context.obj.memory() as memory:
        answer = memory.search(
            query,
            max_results=max_results,
            min_score=min_score,
            source=source,
            path_prefix=path,
            collection=collection,
            as_of=as_of,
        )
        threshold = memory.settings.retrieval.min_confidence
        left_out = {} if answer.relevant or as_json else folders.not_indexed(memory)
    render.show(
        as_json,
        lambda tools: tools.search.ExplainedSearchResult.of(answer, explain=explain, threshold=threshold),
        lambda: render.answer(answer, explain=explain),
    )
    if left_out:
        hint = folders.how_to_index(left_out, memory.settings.workspace)
        typer.echo(f"Not indexed in the workspace: {folders.describe_files(left_out)}. {hint}".rstrip())


@app.command(epilog="Example: memoriter get memory/2026-02-08.md --from 10 --lines 20")
def get(
    context: typer.Context,
    path: Annotated[str, typer.Argument(help="Path or citation of a file, or the id of an entry.")],
    start: Annotated[int, typer.Option("--from", help="First line.")] = 1,
    lines: Annotated[int | None, typer.Option(help="Number of lines.")] = None,
    as_json: Json = False,
) -> None:
    """Print lines of a note or transcript, or an entry."""
    with context.obj.memory() as memory:
        excerpt = memory.read(path, start, lines)
    render.show(
        as_json,
        lambda tools: tools.search.GetResult.of(excerpt, max_chars=sys.maxsize),
        lambda: render.excerpt(excerpt),
    )


@app.command(epilog='Example: memoriter save "Anna prefers tea." --title Anna --tags people')
def save(
    context: typer.Context,
    words: Annotated[
        Words, typer.Argument(metavar="TEXT", help="Text of the note. '-': read it from standard input.")
    ],
    title: Annotated[str, typer.Option(help="Title of the note.")] = "",
    tags: entries.NewTags = None,
    category: Annotated[str | None, typer.Option(help="Write to memory/<category>/<title>.md.")] = None,
    as_json: Json = False,
) -> None:
    """Save a note, to today's log or to a file of a category.

    `save` writes text that people read to a file. `add` remembers one statement, which can be merged, replaced and
    forgotten.
    """
    text = read_words(words, "The note is empty.")
    with context.obj.memory() as memory:
        render.saved(memory.save(text, title, entries.split(tags), category), as_json)


@app.command()
def status(
    context: typer.Context,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also call the embedder and check the integrity of the index.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the state of the index and of the embedder."""
    with context.obj.memory() as memory:
        now, left_out = memory.status(deep=deep), folders.not_indexed(memory)
        hint = folders.how_to_index(left_out, memory.settings.workspace)
    details: dict[str, object] = {"not_indexed": left_out, "to_index_them": hint} if left_out else {}
    details |= {"resident": resident.state(context.obj.settings())}
    now = replace(now, details={**now.details, **details})
    render.show(
        as_json, lambda tools: tools.search.StatusResult.model_validate(now), lambda: render.status(now)
    )


@app.command()
def stats(context: typer.Context, as_json: Json = False) -> None:
    """Count files, chunks, bytes and entries."""
    from memoriter.errors import MemoriterError
    from memoriter.sentences import join

    with context.obj.memory() as memory:
        status = memory.status()
        try:
            entry_counts, note = asdict(memory.entries.stats()) if memory.has_entries else None, None
        except MemoriterError as error:  # the files can still be counted
            entry_counts, note = None, str(error)
    status = replace(status, degraded=join(status.degraded, note))
    learned = {"entries": entry_counts} if entry_counts else {}
    render.show(
        as_json,
        lambda tools: tools.search.StatsResult.of(status).to_json() | learned,
        lambda: render.stats(status, entry_counts),
    )


@app.command()
def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Check the installation and suggest fixes. Exits with status 1 if a problem is found."""
    from memoriter import __version__
    from memoriter.records import Finding
    from memoriter.tools.doctor import examine

    findings = [
        Finding("memoriter", "ok", f"version {__version__}"),
        *examine(context.obj.settings, context.obj.memory),
        *_left_out(context.obj),
        *resident.findings(context.obj.settings),
    ]
    render.show(as_json, {"findings": findings}, lambda: render.findings(findings))
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


def _left_out(options: GlobalOptions) -> Iterator[Finding]:
    """Name the files of the workspace that are not indexed. Other findings say why a memory cannot be opened."""
    from memoriter.errors import MemoriterError
    from memoriter.records import Finding

    with suppress(MemoriterError):
        workspace = options.settings().workspace
        with replace(options, workspace=workspace).memory() as memory:
            counts = folders.not_indexed(memory)
        if counts:
            fix = folders.how_to_index(counts, workspace)
            yield Finding("not indexed", "note", folders.describe_files(counts), fix)


@app.command("help", epilog="Example: memoriter help search")
def show_help(
    words: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="Command to explain.")] = None,
) -> None:
    """Show the help of a command, or of the program."""
    program()(args=[*(words or ()), "--help"], prog_name="memoriter", standalone_mode=False)


entries.register(app)
app.add_typer(resident.app, name="resident")


@cache
def program() -> Callable[..., object]:
    """Return the program with all its commands. Building them takes longer than most of them, so it is done once."""
    from typer.main import get_command

    return get_command(app)
