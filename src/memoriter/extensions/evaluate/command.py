"""The command `evaluate`.

Imports of the package stay inside the function, so that ``--help`` loads only typer.
"""

from __future__ import annotations

from typing import Annotated

import typer

from memoriter.cli.context import Json

command = typer.Typer(add_completion=False)


@command.command(epilog="Examples: memoriter evaluate · memoriter evaluate --questions 200 --json")
def evaluate(
    context: typer.Context,
    questions: Annotated[int, typer.Option(min=1, max=1_000, help="Number of questions.")] = 50,
    seed: Annotated[int, typer.Option(help="Another number asks about other lines.")] = 0,
    rules: Annotated[bool, typer.Option("--rules", help="Do not use the language model.")] = False,
    as_json: Json = False,
) -> None:
    """Measure how well the lines of your own notes and entries are found.

    It asks questions that these lines answer. The configured language model writes them, and answers them with and
    without the memory; without one, rules make them, and nothing leaves this machine. The memory does not change.
    """
    from dataclasses import asdict

    from memoriter.cli import render
    from memoriter.extensions.evaluate.measuring import evaluate as measure

    with context.obj.memory() as memory:
        memory.sync()
        found = measure(memory, questions, seed=seed, use_model=not rules)
    if as_json:
        render.to_json(asdict(found))
        return
    out = render.console()
    if not found.questions:
        out.print("There is nothing to ask about yet: no line of a note or entry is long enough.")
        return
    out.print(f"{found.questions} questions about your own lines, made by {found.written_by}:")
    out.print(f"  found first            {found.found_first:6.0%}")
    out.print(f"  among the first five   {found.found:6.0%}")
    out.print(f"  in the prompt          {found.in_the_prompt:6.0%}   {found.tokens:.0f} tokens on average")
    out.print(f"  nothing in the prompt  {found.silent:6.0%}")
    out.print(f"  unrelated questions that got lines {found.noise:.0%}")
    if found.superseded:
        out.print(f"  replaced statements that still enter a prompt: {found.stale} of {found.superseded}")
    if found.answers_with_memory is not None:
        out.print(
            f"  answers of the model share {found.answers_with_memory:.0%} of their words with the line, "
            f"without the memory {found.answers_without:.0%}"
        )
    for missed in found.missed:
        out.print(f"  not found: {missed.text} ({missed.path}#L{missed.number})")
