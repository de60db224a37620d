"""The `qmd` program: how it is found and called, and how its output is parsed.

Each call is one process with a list of arguments. A query is always the one argument after ``--``. Each agent has its
own environment, so that its qmd does not see the files of other agents. Output of an unexpected form is an
`EngineError`.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memoriter.errors import EngineError
from memoriter.extensions.qmd import process

QmdMode = Literal["search", "vsearch", "query"]

#: Bytes of one answer. A hundred hits take a tenth of that.
MAX_BYTES = 2 * 1024 * 1024
#: The system limits one argument to 128 KiB, and no question is longer than this.
MAX_QUERY_CHARS = 4_000
#: Starting node on a busy machine takes a second or two.
VERSION_TIMEOUT_S = 5.0

#: Environment variables that qmd inherits. Not `CI`: with it qmd refuses to expand queries.
INHERITED_VARIABLES = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT",
    "LD_LIBRARY_PATH", "QMD_FORCE_CPU", "QMD_LLAMA_GPU", "QMD_EMBED_PARALLELISM", "QMD_EMBED_CONTEXT_SIZE",
    "QMD_SQLITE_BUSY_TIMEOUT",
)  # fmt: skip

_INDEXED = re.compile(r"^Indexed: (\d+) new, (\d+) updated, (\d+) unchanged, (\d+) removed\s*$", re.MULTILINE)
_HEADER = re.compile(r"@@ -(\d+),(\d+) @@[^\n]*(?:\n|$)")
_HYPHENS = re.compile(r"(?<!\S)-+")


@dataclass(frozen=True, slots=True)
class Row:
    """One result of qmd."""

    collection: str
    #: Relative to the folder of the collection.
    path: str
    score: float
    #: Of the snippet, in the file as it was indexed.
    start_line: int
    #: Of the snippet.
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdateCounts:
    """The changes that one update made, summed over all collections."""

    new: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0


class Qmd:
    """The program with the configuration and cache folders of one agent."""

    def __init__(self, argv: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None) -> None:
        self.argv = tuple(argv)
        self.folder = folder
        self._version_file = folder / "version.json"
        inherited = os.environ if environ is None else environ
        self.env = {name: inherited[name] for name in INHERITED_VARIABLES if name in inherited} | {
            "QMD_CONFIG_DIR": str(self.config),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "NO_COLOR": "1",
        }

    @property
    def config(self) -> Path:
        """The folder that holds `index.yml`."""
        return self.folder / "config"

    @property
    def index(self) -> Path:
        """The database of qmd."""
        return self.folder / "cache" / "qmd" / "index.sqlite"

    def version(self) -> str:
        """Return the version that the program prints, which proves that it starts.

        Starting node takes longer than a search should, so the version is cached until the program changes.
        """
        file = Path(self.argv[-1]).stat()
        program = [list(self.argv), file.st_mtime_ns, file.st_size]
        with suppress(OSError, ValueError, LookupError, TypeError):
            known = json.loads(self._version_file.read_text("utf-8"))
            if known["program"] == program:
                return str(known["version"])
        text = self._run(["--version"], VERSION_TIMEOUT_S).split("\n")[0].strip()
        if not text.startswith("qmd"):
            raise EngineError(f"{self.argv[-1]} is not qmd: its version is {text[:60]!r}.")
        self._version_file.write_text(json.dumps({"program": program, "version": text}), "utf-8")
        return text

    def update(self, timeout_s: float) -> UpdateCounts:
        """Update the index of qmd with the changed files of its collections."""
        found = _INDEXED.findall(self._run(["update"], timeout_s))
        return UpdateCounts(*(sum(int(row[column]) for row in found) for column in range(4)))

    def embed(self, timeout_s: float) -> None:
        """Compute the vectors that are missing."""
        self._run(["embed"], timeout_s)

    def find(
        self, mode: QmdMode, query: str, collections: Sequence[str], *, limit: int, timeout_s: float
    ) -> list[Row]:
        """Return the results for a query that `as_argument` or `any_of` built, best first."""
        flags = ["--json", "-n", str(limit)]
        if mode == "query":
            flags.append("--no-rerank")
        for name in collections:
            flags += ["-c", name]
        try:
            return parse(self._run([mode, *flags, "--", query], timeout_s))
        except EngineError:
            self._version_file.unlink(missing_ok=True)  # check the version again after a failure
            raise

    def _run(self, arguments: Sequence[str], timeout_s: float) -> str:
        finished = process.run(
            [*self.argv, *arguments], env=self.env, cwd=self.folder, timeout_s=timeout_s, max_bytes=MAX_BYTES
        )
        if finished.code:
            message = _last_line(finished.stderr)
            raise EngineError(f"qmd {arguments[0]} ended with status {finished.code}{message}.")
        try:
            return finished.stdout.decode("utf-8")
        except UnicodeDecodeError as error:
            raise EngineError(f"The output of qmd {arguments[0]} is not UTF-8.") from error


def locate(command: str, node: str = "node") -> tuple[str, ...]:
    """Return the arguments that start qmd: a program on the PATH, a file, or a script together with node."""
    if Path(command).suffix not in (".js", ".mjs", ".cjs"):
        program = Path(_program(command))
        if program.suffix.lower() not in (".cmd", ".bat"):
            return (str(program),)
        # Windows: a query among the arguments of a batch file could run any command. npm's file starts this script.
        command = str(program.parent / "node_modules" / "@tobilu" / "qmd" / "dist" / "cli" / "qmd.js")
    return (_program(node), str(_existing(command)))


def as_argument(query: str) -> str:
    """Return the query as one line of characters that an argument may hold.

    Leading hyphens are removed, since qmd excludes documents with a word that starts with one.
    """
    text = query[:MAX_QUERY_CHARS].encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    return _HYPHENS.sub("", " ".join(text.split())).strip()


def any_of(terms: Sequence[str]) -> str:
    """Build a query for documents with any of the terms. A plain search of qmd requires all of them."""
    return "\n".join(f"lex: {as_argument(term)}" for term in terms)


def both_legs(query: str) -> str:
    """Build a query by keyword and by vector that does not need a language model."""
    return f"lex: {query}\nvec: {query}"


def parse(stdout: str) -> list[Row]:
    """Parse the output of a search. Native libraries may print warnings before the JSON."""
    if not stdout.strip() or stdout.lstrip().startswith("No results"):
        return []
    value = _json(stdout)
    if not isinstance(value, list):
        raise EngineError("The output of qmd is not a list of results.")
    return [_row(item) for item in value]


def _json(stdout: str) -> object:
    # A warning may start with "[" too, so each such line is tried. Nothing may follow the JSON.
    for start in re.finditer(r"^\s*\[", stdout, re.MULTILINE):
        try:
            return json.loads(stdout[start.start() :])
        except (ValueError, RecursionError):
            continue
    raise EngineError(f"The output of qmd is not JSON: {stdout.strip()[:80]!r}.")


def _row(item: object) -> Row:
    match item:
        case {"file": str(file), "score": int() | float() as score, "snippet": str(snippet)}:
            scheme, _, rest = file.partition("://")
            collection, _, path = rest.partition("/")
            header = _HEADER.match(snippet)
            if scheme == "qmd" and path and header and math.isfinite(score):
                lines = snippet[header.end() :].split("\n")
                return Row(collection, path, min(max(float(score), 0.0), 1.0), int(header[1]), tuple(lines))
    raise EngineError(f"A result of qmd has an unknown form: {str(item)[:120]!r}.")


def _last_line(stderr: bytes) -> str:
    lines = list(_printable(stderr.decode("utf-8", "replace")))
    return f": {lines[-1][:200]}" if lines else ""


def _printable(text: str) -> Iterator[str]:
    for line in text.splitlines():
        shown = "".join(char for char in line if char.isprintable()).strip()
        # The error message precedes the stack trace.
        if shown and not shown.startswith(("at ", "Node.js v", "}")):
            yield shown.rstrip(".")


def _program(name: str) -> str:
    if os.sep in name or (os.altsep and os.altsep in name):
        return str(_existing(name))
    found = shutil.which(name)
    if found is None:
        raise EngineError(f"The program {name!r} is not on the PATH. Install it or set memory.qmd.command.")
    return found


def _existing(name: str) -> Path:
    path = Path(name).expanduser()
    if not path.is_file():
        raise EngineError(f"{path} does not exist. Set memory.qmd.command to the path of qmd.")
    return path.absolute()
