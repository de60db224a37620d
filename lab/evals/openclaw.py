"""OpenClaw's builtin memory and memoriter in the same slot: the same notes, the same questions, one run.

    make openclaw                       # installs OpenClaw below .tools/
    python -m lab.evals.openclaw            # sets/memories: offline, without a key
    python -m lab.evals.openclaw --sample 100 --json results.json

Each memory runs in a process of its own and is asked through OpenClaw's search manager, which its memory page and its
commands use. The notes are one file per item, dated in the front matter. CPU and memory are those of the process tree.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.evals.sets import EvalSet, Query, language_of, load_set
from memoriter.extensions import openclaw
from memoriter.extensions.clients.installed_files import plugin_folder
from memoriter.hosts import program

ROOT = Path(__file__).parents[2]
MODULES = ROOT / ".tools" / "openclaw" / "node_modules"
NODE = MODULES / "node" / "bin" / "node"
DRIVER = Path(__file__).with_name("openclaw_slots.mjs")
SETS = Path(__file__).with_name("sets")
MEMORIES = ("builtin, default settings", "builtin, keywords only", "memoriter")


@dataclass(frozen=True, slots=True)
class Figures:
    """What one memory achieved."""

    memory: str
    #: Share of questions whose answer is among the first 6 results, by language.
    found: dict[str, float]
    questions: dict[str, int]
    index_s: float
    #: Milliseconds of a search: the first one, the median and the 95th percentile of the others.
    first_ms: float
    median_ms: float
    p95_ms: float
    memory_mb: float
    #: The first error of a search, if any.
    error: str = ""


class Slot:
    """A running OpenClaw memory."""

    def __init__(self, settings: Path, home: Path) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "OPENCLAW": str(MODULES / "openclaw")}
        self._process = subprocess.Popen(
            [str(NODE), str(DRIVER), str(settings)],
            env=environment,
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, op: str, **arguments: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))

    def memory_mb(self) -> float:
        """Return the resident memory of the process and its children."""
        tree, todo = 0.0, [self._process.pid]
        while todo:
            pid = todo.pop()
            status = Path(f"/proc/{pid}/status").read_text()
            tree += int(status.partition("VmRSS:")[2].split()[0]) / 1024
            todo += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return tree

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def settings_of(memory: str, workspace: Path, home: Path) -> dict[str, Any]:
    """Return OpenClaw's settings with this memory in the slot."""
    settings: dict[str, Any] = {
        "agents": {
            "defaults": {"workspace": str(workspace)},
            "entries": {"main": {"workspace": str(workspace)}},
        },
        "memory": {"search": {"rememberAcrossConversations": False}},
    }
    if memory == "builtin, keywords only":
        settings["memory"]["search"]["provider"] = "none"
    if memory == "memoriter":
        config = {"command": list(program()), "home": str(home / "memoriter"), "dreaming": {"enabled": False}}
        settings["plugins"] = {
            "load": {"paths": [str(plugin_folder(Path(openclaw.__file__).parent, "openclaw"))]},
            "slots": {"memory": "memoriter"},
            "entries": {"memoriter": {"enabled": True, "config": config}},
        }
    return settings


def write_notes(found: EvalSet, workspace: Path) -> dict[str, str]:
    """Write one note per item. Return the path of each item."""
    paths = {}
    for number, item in enumerate(found.items):
        path = f"memory/{item.day or 'undated'}-{number:03}.md"
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(f"{item.text}\n", "utf-8")
        paths[item.id] = path
    return paths


def measure(memory: str, found: EvalSet, queries: Sequence[Query], folder: Path) -> Figures:
    """Index the notes and ask all questions."""
    workspace, state = folder / "workspace", folder / "state"
    state.mkdir(parents=True)
    paths = write_notes(found, workspace)
    settings = state / "openclaw.json"
    settings.write_text(json.dumps(settings_of(memory, workspace, folder)), "utf-8")
    slot = Slot(settings, folder)
    try:
        started = time.monotonic()
        opened = slot.ask("open")
        indexed = slot.ask("index") if "error" not in opened else opened
        index_s = time.monotonic() - started
        answers = [slot.ask("search", query=query.text) for query in queries]
        resident = slot.memory_mb()
    finally:
        slot.close()
    hits: dict[str, list[bool]] = {"en": [], "zh": []}
    for query, answer in zip(queries, answers, strict=True):
        relevant = {paths[item] for item in query.relevant}
        hits[language_of(query.text)].append(not relevant.isdisjoint(answer.get("paths", ())))
    first, *others = [float(answer.get("ms", 0)) for answer in answers]
    errors = [str(answer["error"]) for answer in (opened, indexed, *answers) if "error" in answer]
    return Figures(
        memory,
        {language: statistics.mean(found) for language, found in hits.items()},
        {language: len(found) for language, found in hits.items()},
        index_s,
        first,
        statistics.median(others),
        statistics.quantiles(others, n=20)[-1],
        resident,
        errors[0] if errors else "",
    )


def table(rows: Sequence[Figures]) -> str:
    """Return the figures as a table in Markdown."""
    asked = rows[0].questions
    columns = [
        "memory",
        f"found in the first 6, English ({asked['en']})",
        f"Chinese ({asked['zh']})",
        *("search, median", "95 %", "first", "start and index", "memory"),
    ]
    cells = [columns, ["---"] * len(columns), *map(_cells, rows)]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join(lines + [f"\n{row.memory}: {row.error}" for row in rows if row.error])


def _cells(row: Figures) -> list[str]:
    shares = [f"{row.found[language]:.0%}" for language in ("en", "zh")]
    times = [f"{value:.0f} ms" for value in (row.median_ms, row.p95_ms, row.first_ms)]
    return [row.memory, *shares, *times, f"{row.index_s:.1f} s", f"{row.memory_mb:.0f} MB"]


def main() -> int:
    """Run every memory and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=200, help="Number of questions (default: 200).")
    parser.add_argument("--json", type=Path, help="Also write the figures to this file.")
    options = parser.parse_args()
    if not NODE.exists():
        sys.stderr.write("OpenClaw is not installed. Run `make openclaw` first.\n")
        return 1
    found = load_set("memories", SETS / "memories" / "corpus.jsonl", SETS / "memories" / "queries.jsonl")
    answerable = [query for query in found.queries if query.relevant]
    step = max(1, len(answerable) // options.sample)
    queries = answerable[::step][: options.sample]
    rows = []
    for memory in MEMORIES:
        folder = Path(tempfile.mkdtemp(prefix="memoriter-openclaw-"))
        try:
            rows.append(measure(memory, found, queries, folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(table(rows) + "\n")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
