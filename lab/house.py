"""The size of the package, measured: `python -m lab.house`. `make check` runs it.

It prints each figure with its limit and exits with status 1 if one is above it. With `--report` it only prints.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import memoriter
from memoriter import Memory
from memoriter.testing import sample_workspace

PACKAGE = Path(memoriter.__file__).parent
EXTENSIONS = PACKAGE / "extensions"
ROOT = Path(__file__).parent.parent

CORE_LINES = 41_320
CORE_FILES = 200
ALL_LINES = 69_290
MODULE_LINES = 450
EXTENSION_LINES = 2_000
#: Extensions that may be larger than the others.
LARGE_EXTENSIONS = {"postgres": 4_500}
SEARCH_FILES = 40
#: Words of the pages in docs/, without the parts that docs/generate.py writes.
DOC_WORDS = 45_000


class Figure(NamedTuple):
    """A measured value with its limit."""

    name: str
    value: int
    limit: int

    @property
    def is_above(self) -> bool:
        return self.value > self.limit

    def __str__(self) -> str:
        mark = "  above the limit" if self.is_above else ""
        return f"{self.name:44}{self.value:>8,}{self.limit:>8,}{mark}"


def line_counts() -> dict[Path, int]:
    """Count the lines of every module, by its path below the package."""
    return {
        file.relative_to(PACKAGE): len(file.read_text("utf-8").splitlines()) for file in PACKAGE.rglob("*.py")
    }


def sizes(counts: dict[Path, int]) -> list[Figure]:
    """Return the figures of the core, of all modules, of long modules and of each extension."""
    core = [lines for path, lines in counts.items() if path.parts[0] != EXTENSIONS.name]
    long = [
        Figure(f"lines of {path}", lines, MODULE_LINES)
        for path, lines in sorted(counts.items())
        if lines > MODULE_LINES
    ]
    folders = sorted(path.name for path in EXTENSIONS.iterdir() if (path / "__init__.py").exists())
    extensions = [
        Figure(
            f"lines of extensions/{name}",
            sum(lines for path, lines in counts.items() if path.parts[:2] == (EXTENSIONS.name, name)),
            LARGE_EXTENSIONS.get(name, EXTENSION_LINES),
        )
        for name in folders
    ]
    return [
        Figure("lines of the core", sum(core), CORE_LINES),
        Figure("files of the core", len(core), CORE_FILES),
        Figure("lines of core and extensions", sum(counts.values()), ALL_LINES),
        *long,
        *extensions,
    ]


def lab_sizes() -> list[Figure]:
    """Return the figures of long modules in lab/."""
    counts = {file: len(file.read_text("utf-8").splitlines()) for file in (ROOT / "lab").rglob("*.py")}
    return [
        Figure(f"lines of {file.relative_to(ROOT)}", lines, MODULE_LINES)
        for file, lines in sorted(counts.items())
        if lines > MODULE_LINES
    ]


def doc_words() -> Figure:
    """Count the words of the user documentation."""
    generated = re.compile(r"<!-- generated: [\w-]+ -->\n.*?<!-- end -->", re.DOTALL)
    texts = (generated.sub("", page.read_text("utf-8")) for page in (ROOT / "docs").glob("*.md"))
    return Figure("words of the user docs", sum(len(text.split()) for text in texts), DOC_WORDS)


def searched_files() -> set[str]:
    """Return the modules of the package that a search runs through once everything is loaded."""
    called: set[str] = set()

    def see(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code.co_filename)

    with tempfile.TemporaryDirectory(prefix="memoriter-house-") as name:
        workspace = sample_workspace(Path(name, "workspace"))
        for file in (workspace, *workspace.rglob("*")):
            os.utime(file, (0, 0))  # a file that was written just now is read again
        with Memory.open(workspace, home=Path(name, "home")) as memory:
            memory.remember("Mira prefers tea over coffee")
            memory.sync()  # so that every chunk has its vector
            memory.search("does Mira prefer tea or coffee?")
            sys.setprofile(see)
            try:
                answer = memory.search("when is the birthday of Tomás?")
            finally:
                sys.setprofile(None)
    assert answer.hits
    return {path for path in called if Path(path).is_relative_to(PACKAGE)}


def main() -> int:
    """Print the figures and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.house", description=__doc__)
    parser.add_argument("--report", action="store_true", help="Only print.")
    options = parser.parse_args()
    searched = Figure("files of a warm search", len(searched_files()), SEARCH_FILES)
    found = [*sizes(line_counts()), *lab_sizes(), searched, doc_words()]
    print(f"{'figure':44}{'now':>8}{'limit':>8}")
    print("\n".join(map(str, found)))
    return 1 if any(figure.is_above for figure in found) and not options.report else 0


if __name__ == "__main__":
    raise SystemExit(main())
