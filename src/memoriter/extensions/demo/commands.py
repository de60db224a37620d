"""`memoriter demo`: notes in, the right few lines out, step by step, in English and Chinese, offline."""

from __future__ import annotations

import shutil
from pathlib import Path

import typer

from memoriter.files.platform import command_line

WORKSPACE = Path("demo-workspace")
HOME = WORKSPACE / ".home"


command = typer.Typer(add_completion=False)


@command.command()
def demo() -> None:
    """Write a small workspace to ./demo-workspace, index it and search it, step by step.

    Every command is printed before it runs, so that you can continue by hand.
    """
    from memoriter.testing import sample_workspace

    if WORKSPACE.exists():
        if not HOME.is_dir():
            raise typer.BadParameter(f"{WORKSPACE} exists and was not written by a demo. Use another folder.")
        shutil.rmtree(WORKSPACE)
    sample_workspace(WORKSPACE)
    HOME.mkdir()
    _say(
        "1. A workspace is a folder of Markdown notes. This one belongs to Mira, who builds an app in Lisbon:"
    )
    for file in sorted(WORKSPACE.rglob("*.md")):
        typer.echo(f"   {file.relative_to(WORKSPACE).as_posix()}")

    _say("2. Index it. The embedding model comes with the package: no key, no download.")
    _run("index")

    _say("3. Search by meaning. The note says “vegetarian, allergic to hazelnuts”; the question does not.")
    _run("search", "what must I not cook for Mira?", "-n", "1", "--explain")

    _say("4. 用中文问，意思对就行：笔记里写的是“亏损要早认”，问题里没有这几个字。")
    _run("search", "赔钱了应该怎么办？", "-n", "1", "--explain")

    _say("5. Search across languages: an English question finds a Chinese note.")
    _run("search", "why was the site offline at night?", "-n", "1")

    _say("6. Keywords find identifiers, and Chinese words inside mixed text.")
    _run("search", "ERR_IMAGE_TOO_LARGE", "-n", "1")
    _run("search", "备份", "-n", "1", "--explain")

    _say("7. Every hit cites its lines. Read only those.")
    _run("get", "memory/projects/backup.md", "--from", "8", "--lines", "3")

    _say("8. Edit a note in any editor. The next search finds the change.")
    note = WORKSPACE / "memory/2026-02-15.md"
    text = "# 2026-02-15\n\n- The spare key of the studio is with Dona Graça on the second floor.\n"
    note.write_text(text, "utf-8")
    typer.echo(f"   (wrote {note.as_posix()})")
    _run("search", "who has the spare key?", "-n", "1")

    _say("Continue on your own:")
    options = f"--workspace {WORKSPACE.as_posix()} --home {HOME.as_posix()}"  # in any shell
    _say(f'  memoriter {options} search "what is Tomás afraid of?"')


def _say(line: str) -> None:
    typer.echo()
    typer.secho(line, bold=True)


def _run(*arguments: str) -> None:
    from memoriter.cli import execute

    typer.echo(f"\n$ memoriter {command_line(arguments)}")
    if status := execute([f"--workspace={WORKSPACE}", f"--home={HOME}", *arguments]):
        raise typer.Exit(status)
