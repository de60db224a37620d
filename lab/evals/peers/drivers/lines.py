"""The loop that every driver in Python shares."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Arguments(NamedTuple):
    """What a driver gets on its command line."""

    #: The folder that holds `memory/*.md`.
    workspace: Path
    #: An empty folder for the peer's own files.
    state: Path
    #: An OpenAI-compatible server for embeddings.
    url: str
    model: str
    dimensions: int


def arguments() -> Arguments:
    """Read the command line."""
    workspace, state, url, model, dimensions = sys.argv[1:]
    return Arguments(Path(workspace), Path(state), url, model, int(dimensions))


def notes(workspace: Path) -> dict[str, str]:
    """Path → text of every note, with its day in front, for peers that take texts instead of files."""
    found = {}
    for path in sorted((workspace / "memory").glob("*.md")):
        text = path.read_text("utf-8", "replace")
        if text.startswith("---\ndate: "):
            day, _, text = text.removeprefix("---\ndate: ").partition("\n---\n")
            text = f"{day}: {text}"
        found[f"memory/{path.name}"] = text.strip()
    return found


def serve(index: Callable[[], object], search: Callable[[str, int], list[str]]) -> None:
    """Answer requests until stdin ends. What the peer prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer: dict[str, object] = {}
            if request["op"] == "index":
                index()
            elif request["op"] == "search":
                answer = {"paths": search(request["query"], request["limit"])}
        except Exception as error:  # noqa: BLE001 - a peer may raise anything, and the table says so
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, ensure_ascii=False), file=answers, flush=True)
