"""`python -m lab.bench first`: size of an installation, and time until the first right answer in two folders.

The CPU time is that of the commands. What the resident process computes after an answer is left out. The size is that
of the files on disk with bytecode, without pip and setuptools, which come with an environment.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.bench.corpus import Writer
from lab.page import put

ROOT = Path(__file__).parent.parent.parent
SIZES = (20, 5_000)
ANSWER = "The spare key of the boathouse hangs behind the blue barometer."
QUESTION = "where is the spare key of the boathouse?"
#: Packages that have a row of their own.
LARGEST = 8
#: Prints the megabytes that each package of an environment has on disk, by name.
_SIZES_PROGRAM = """
import importlib.metadata, json
sizes = {}
for package in importlib.metadata.distributions():
    if package.name not in ("pip", "setuptools"):
        files = {path.locate().resolve() for path in package.files or ()}
        sizes[package.name] = sum(file.stat().st_blocks * 512 for file in files if file.is_file()) / 1e6
print(json.dumps(sizes))
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Install once, then measure each folder in an empty home."""
    options = argparse.ArgumentParser(prog="python -m lab.bench first", description=__doc__)
    options.add_argument(
        "--installed", type=Path, help="Folder of an environment that has memoriter already."
    )
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="Numbers of notes.")
    options.add_argument("--out", type=Path, help="Page with the mark <!-- measured: first -->.")
    given = options.parse_args(arguments)
    # A resident process that is still ending may write into its folder.
    with tempfile.TemporaryDirectory(prefix="memoriter-first-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        rows = [] if given.installed else [("pip install .", *_timed(lambda: _install(root / "venv")))]
        program = (given.installed or root / "venv") / "bin" / "memoriter"
        installing = rows[:1]
        for size in given.sizes:
            steps = _first_answer(program, root / str(size), size)
            walls, cpus = zip(*((wall_s, cpu_s) for _, wall_s, cpu_s in [*installing, *steps]), strict=True)
            rows += [*steps, (f"in all, {size:,} notes", sum(walls), sum(cpus))]
        tables = [
            "| step | seconds | CPU seconds |\n| --- | --- | --- |",
            *(f"| {step} | {wall_s:.1f} | {cpu_s:.1f} |" for step, wall_s, cpu_s in rows),
            "",
            *_sizes(given.installed or root / "venv"),
        ]
    text = "\n".join(tables)
    if given.out:
        put(given.out, "first", text)
    else:
        print(text)
    return 0


def _install(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip: list[str | Path] = [
        folder / "bin" / "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        ROOT,
    ]
    subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)


def _sizes(environment: Path) -> list[str]:
    """Return a table of the installed packages by size."""
    program = environment / "bin" / "python"
    done = subprocess.run([program, "-c", _SIZES_PROGRAM], check=True, capture_output=True)
    sizes: dict[str, float] = json.loads(done.stdout)
    ranked = sorted(sizes.items(), key=lambda row: -row[1])
    largest, others = ranked[:LARGEST], ranked[LARGEST:]
    return [
        "| package | MB |\n| --- | --- |",
        f"| {len(sizes)} packages | {sum(sizes.values()):.0f} |",
        *(f"| {name} | {size:.0f} |" for name, size in largest),
        f"| {len(others)} others | {sum(size for _, size in others):.0f} |",
    ]


def _first_answer(program: Path, root: Path, size: int) -> list[tuple[str, float, float]]:
    """Set up a folder of notes and ask. The answer must be right."""
    notes = root / "notes"
    notes.mkdir(parents=True)
    writer = Writer(seed=size)
    for number in range(size - 1):
        (notes / f"{number}.md").write_text(writer.note(4), encoding="utf-8")
    (notes / "boathouse.md").write_text(f"# Boathouse\n\n{ANSWER}\n", encoding="utf-8")
    outer = {name: value for name, value in os.environ.items() if not name.startswith("MEMORITER_")}
    env = {**outer, "HOME": str(root)}

    def run(*words: str) -> str:
        done = subprocess.run([program, *words], cwd=notes, env=env, check=True, capture_output=True)
        return done.stdout.decode()

    def ask() -> None:
        found = run("search", QUESTION, "-n", "1")
        if ANSWER not in found:
            raise SystemExit(f"The first answer is wrong:\n{found}")

    try:
        set_up = _timed(lambda: run("init", "--all-notes"))
        answer = _timed(ask)
    finally:
        run("resident", "stop")
    return [(f"init, {size:,} notes", *set_up), (f"first right answer, {size:,} notes", *answer)]


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of the processes that the work starts and waits for."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, cpu_s
