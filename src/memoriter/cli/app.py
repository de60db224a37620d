"""The commands: what each takes, and which call of `Memory` it is. How answers look is `render`'s duty.

Imports of the package stay inside the functions, so that ``--help`` and completion cost no more than typer itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memoriter.cli import call, entries, hooks, mcp, server, sessions
from memoriter.cli.context import Json

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.memory import Memory

app = typer.Typer(
    name="memoriter",
    help="Long-term memory for AI agents: your Markdown notes, found by meaning and by keyword, offline.",
    epilog="Start with: memoriter init && memoriter index && memoriter search 'what did we decide?'",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
#: What click raises for an argument that is wrong: typer may have a click of its own, and exports this part of it.
WrongUsage: Any = typer.BadParameter.__mro__[2]
Abort = typer.Abort  #: a question that was answered with no

config_app = typer.Typer(help="The settings and where each came from.", no_args_is_help=True)
app.add_typer(config_app, name="config")


@dataclass(frozen=True, slots=True)
class Globals:
    """What was typed before the command."""

    workspace: Path | None = None
    home: Path | None = None
    agent: str | None = None
    config: Path | None = None

    def arguments(self, **more: object) -> dict[str, object]:
        given = {"workspace": self.workspace, "home": self.home, "agent": self.agent, **more}
        return {key: value for key, value in given.items() if value is not None}

    def settings(self, **more: object) -> Settings:
        from memoriter import logs
        from memoriter.config import load

        settings = load(config=self.config, arguments=self.arguments(**more))
        logs.setup(settings.logging.level)
        return settings

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        from memoriter.memory import Memory

        # A command ends when its answer is there; what would go on in the background is `index`'s work.
        settings = self.settings(**{"embedding.background": False})
        with Memory.open(settings=settings) as memory:
            yield memory


def _print_version(wanted: bool) -> None:
    if wanted:
        from memoriter import __version__

        typer.echo(f"memoriter {__version__}")
        raise typer.Exit


@app.callback()
def _globals(
    context: typer.Context,
    workspace: Annotated[
        Path | None, typer.Option(help="The folder with MEMORY.md and memory/.", show_default=False)
    ] = None,
    home: Annotated[
        Path | None,
        typer.Option(help="Where memoriter keeps its own files [~/.memoriter].", show_default=False),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Whose memory [main].", show_default=False)] = None,
    config: Annotated[
        Path | None, typer.Option(help="The settings file [<home>/config.yaml].", show_default=False)
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    context.obj = Globals(workspace, home, agent, config)


@app.command(epilog="Example: memoriter --workspace ~/notes init")
def init(context: typer.Context, as_json: Json = False) -> None:
    """Set up a workspace and the settings file; what exists is left as it is."""
    from memoriter.cli import render
    from memoriter.cli.setup import set_up

    render.setup(set_up(context.obj.settings()), as_json)


@app.command(epilog="Examples: memoriter index --force · memoriter index --batch")
def index(
    context: typer.Context,
    force: Annotated[
        bool, typer.Option("--force", help="Build everything anew, beside the old index, then switch.")
    ] = False,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch", help="Embed through the provider's batch API: cheaper, and up to an hour slower."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring the index up to date with the files."""
    from memoriter.cli import render

    with context.obj.memory() as memory, render.progress(as_json) as progress:
        report = memory.sync(force=force, verify=True, batch=batch, progress=progress)
    render.sync_report(report, as_json)


@app.command(hidden=True)
def sync(context: typer.Context, as_json: Json = False) -> None:
    """Another name of `index`."""
    index(context, force=False, batch=False, as_json=as_json)


@app.command(hidden=True)
def reindex(context: typer.Context, as_json: Json = False) -> None:
    """Another name of `index --force`."""
    index(context, force=True, batch=False, as_json=as_json)


@app.command(
    epilog="Examples: memoriter search 'how do we back up?' · memoriter search 数据库 --max-results 3 --explain"
)
def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for: words, a question, in Chinese or English.")],
    max_results: Annotated[
        int | None,
        typer.Option("--max-results", "-n", min=1, help="At most so many hits [6].", show_default=False),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Only hits that score at least this.", show_default=False),
    ] = None,
    source: Annotated[
        Literal["memory", "sessions", "entries"] | None,
        typer.Option(help="Only from notes, from sessions, or from what was learned."),
    ] = None,
    path: Annotated[
        str | None, typer.Option(help="Only from files whose path begins so.", show_default=False)
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each score was made.")] = False,
    as_json: Json = False,
) -> None:
    """Find the few lines that answer a query."""
    from memoriter.cli import render

    with context.obj.memory() as memory:
        answer = memory.search(
            query, max_results=max_results, min_score=min_score, source=source, path_prefix=path
        )
    render.answer(answer, as_json=as_json, explain=explain)


@app.command(epilog="Example: memoriter get memory/2026-02-08.md --from 10 --lines 20")
def get(
    context: typer.Context,
    path: Annotated[str, typer.Argument(help="A file of the workspace, as a citation names it.")],
    start: Annotated[int, typer.Option("--from", help="The first line.")] = 1,
    lines: Annotated[int | None, typer.Option(help="How many lines.", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """Read some lines of a note."""
    from memoriter.cli import render

    with context.obj.memory() as memory:
        excerpt = memory.read(path, start, lines)
    render.excerpt(excerpt, as_json)


@app.command()
def status(
    context: typer.Context,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also try the embedder and check the store's bytes.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what is indexed, by which embedder, and what is missing."""
    from memoriter.cli import render

    with context.obj.memory() as memory:
        render.status(memory.status(deep=deep), as_json)


@app.command()
def stats(context: typer.Context, as_json: Json = False) -> None:
    """Count files, chunks, bytes, and what was learned."""
    from memoriter.cli import render
    from memoriter.errors import MemoriterError

    with context.obj.memory() as memory:
        now = memory.status()
        try:
            learned, note = memory.entries.stats() if memory.has_entries else None, None
        except MemoriterError as error:  # the files can be counted all the same
            learned, note = None, str(error)
        render.stats(now, as_json, learned, note)


@app.command()
def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Check everything, and say how to mend what is wrong. Exits with 1 when something is."""
    from memoriter.cli import render
    from memoriter.tools.doctor import examine

    findings = examine(context.obj.settings, context.obj.memory)
    render.findings(findings, as_json)
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


@config_app.command("show")
def config_show(context: typer.Context, as_json: Json = False) -> None:
    """Print every setting with its value and where it came from."""
    from memoriter.cli import render

    render.settings(context.obj.settings(), as_json)


entries.register(app)
sessions.register(app)
server.register(app)
mcp.register(app)
hooks.register(app)
call.register(app)
