"""The command `export`.

Imports of the package stay inside the function, so that ``--help`` loads only typer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from memoriter.cli.context import Json
from memoriter.cli.entries import Here, MinImportance, Tags, Type, split, workspace_of

command = typer.Typer(add_completion=False)
FORMATS = ("jsonl", "mem0", "markdown", "okf")


@command.command(
    epilog="Examples: memoriter export --output entries.jsonl · memoriter export --format okf --output bundle"
)
def export(
    context: typer.Context,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write (default: standard output). For okf, a new folder."
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option("--format", help="jsonl (with everything), mem0, markdown, or okf: a folder of files."),
    ] = "jsonl",
    type_: Type = None,
    tags: Tags = None,
    min_importance: MinImportance = 0,
    here: Here = False,
    as_json: Json = False,
) -> None:
    """Export entries with their history. `memoriter import` reads every format again and loses nothing.

    The digest is the same for two memories with the same entries and history.
    """
    from memoriter.cli import entry_tables, render
    from memoriter.errors import BadArgument
    from memoriter.extensions.passport import formats

    if form not in FORMATS:
        raise BadArgument(f"--format must be one of {', '.join(FORMATS)}.")
    if form == "okf" and (output is None or output.exists()):
        raise BadArgument("--format okf needs --output with the name of a new folder.")
    with context.obj.memory() as memory:
        workspace = workspace_of(memory, here)
        lines = list(
            memory.entries.export(type_, tags=split(tags), min_importance=min_importance, workspace=workspace)
        )
    texts = {"mem0": formats.to_mem0, "markdown": formats.to_markdown}
    written = texts[form](lines).splitlines() if form in texts else lines
    if output is None:
        for line in written:
            sys.stdout.write(line + "\n")
        return
    if form == "okf":
        for name, text in formats.to_okf(lines):
            file = output / name
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_private(file, text.splitlines())
    else:
        _write_private(output, written)
    total, digest = len(lines) - 1, formats.digest(lines)
    text = f"Exported {entry_tables.count_entries(total)} to {output}. Digest: {digest[:16]}."
    render.show(as_json, {"total": total, "path": output, "digest": digest}, text)


def _write_private(path: Path, lines: Iterable[str]) -> None:
    """Write an export to a file that only its owner may read."""
    from memoriter.files.platform import set_mode, sync_file

    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
        set_mode(path, 0o600)
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        sync_file(descriptor)
