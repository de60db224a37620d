"""The `qmd` program: how it is found, called and understood.

Each call is one process with a list of arguments. A query is the one argument after ``--``, whatever it says; the
environment is written here, so that an agent's qmd sees nothing of another's. The answers are checked strictly: what
is not exactly as expected is an `EngineError`. When to call what is not decided here.
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

from memoriter.engines.qmd import process
from memoriter.errors import EngineError

Mode = Literal["search", "vsearch", "query"]

MAX_BYTES = 2 * 1024 * 1024  #: of an answer; a hundred hits are a tenth of that
MAX_QUERY_CHARS = 4_000  #: the system limits one argument to 128 KiB, and no question is longer than this
VERSION_TIMEOUT_S = 5.0  #: starting node on a busy machine takes a second or two

#: Handed down from our own environment. Not `CI`: with it qmd refuses to expand queries.
PASSED_ON = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT",
    "LD_LIBRARY_PATH", "QMD_FORCE_CPU", "QMD_LLAMA_GPU", "QMD_EMBED_PARALLELISM", "QMD_EMBED_CONTEXT_SIZE",
    "QMD_SQLITE_BUSY_TIMEOUT",
)  # fmt: skip

_INDEXED = re.compile(r"^Indexed: (\d+) new, (\d+) updated, (\d+) unchanged, (\d+) removed\s*$", re.MULTILINE)
_HEADER = re.compile(r"@@ -(\d+),(\d+) @@[^\n]*(?:\n|$)")
_HYPHENS = re.compile(r"(?<!\S)-+")


@dataclass(frozen=True, slots=True)
class Row:
    """One result as qmd gives it."""

    collection: str
    path: str  #: below the collection's folder
    score: float
    start_line: int  #: of the snippet in the file, as it was when it was indexed
    lines: tuple[str, ...]  #: the snippet's


@dataclass(frozen=True, slots=True)
class Counts:
    """What one update did, over all collections."""

    new: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0


class Qmd:
    """One agent's qmd: the program with its own folders for configuration and cache."""

    def __init__(self, argv: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None) -> None:
        self.argv = tuple(argv)
        self.folder = folder
        inherited = os.environ if environ is None else environ
        self.env = {name: inherited[name] for name in PASSED_ON if name in inherited} | {
            "QMD_CONFIG_DIR": str(self.config),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "NO_COLOR": "1",
        }

    @property
    def config(self) -> Path:
        """The folder of `index.yml`."""
        return self.folder / "config"

    @property
    def index(self) -> Path:
        """The database that qmd keeps."""
        return self.folder / "cache" / "qmd" / "index.sqlite"

    @property
    def _introduction(self) -> Path:
        return self.folder / "version.json"

    def version(self) -> str:
        """What the program calls itself; the proof that it can be started.

        Starting node takes longer than a search should, so the answer is kept until the program changes.
        """
        note = self._introduction
        file = Path(self.argv[-1]).stat()
        program = [list(self.argv), file.st_mtime_ns, file.st_size]
        with suppress(OSError, ValueError, LookupError, TypeError):
            known = json.loads(note.read_text("utf-8"))
            if known["program"] == program:
                return str(known["version"])
        text = self._asked_version()
        note.write_text(json.dumps({"program": program, "version": text}), "utf-8")
        return text

    def _asked_version(self) -> str:
        text = self._run(["--version"], VERSION_TIMEOUT_S).split("\n")[0].strip()
        if not text.startswith("qmd"):
            raise EngineError(f"{self.argv[-1]} is not qmd: it calls itself {text[:60]!r}.")
        return text

    def update(self, timeout_s: float) -> Counts:
        """Let qmd take in what changed in its collections."""
        found = _INDEXED.findall(self._run(["update"], timeout_s))
        return Counts(*(sum(int(row[column]) for row in found) for column in range(4)))

    def embed(self, timeout_s: float) -> None:
        """Let qmd compute the vectors that are missing."""
        self._run(["embed"], timeout_s)

    def find(
        self, mode: Mode, query: str, collections: Sequence[str], *, limit: int, timeout_s: float
    ) -> list[Row]:
        """The results for a query that `as_argument` or `any_of` made, best first."""
        flags = ["--json", "-n", str(limit)]
        if mode == "query":
            flags.append("--no-rerank")
        for name in collections:
            flags += ["-c", name]
        try:
            return parse(self._run([mode, *flags, "--", query], timeout_s))
        except EngineError:
            self._introduction.unlink(missing_ok=True)  # a program that failed has to say again who it is
            raise

    def _run(self, arguments: Sequence[str], timeout_s: float) -> str:
        done = process.run(
            [*self.argv, *arguments], env=self.env, cwd=self.folder, timeout_s=timeout_s, max_bytes=MAX_BYTES
        )
        if done.code:
            raise EngineError(f"qmd {arguments[0]} ended with status {done.code}{_last_words(done.stderr)}.")
        try:
            return done.stdout.decode("utf-8")
        except UnicodeDecodeError as error:
            raise EngineError(f"qmd {arguments[0]} printed what is not UTF-8.") from error


def locate(command: str, node: str = "node") -> tuple[str, ...]:
    """The arguments that start qmd: a program on the path, a file, or its script together with node."""
    if Path(command).suffix in (".js", ".mjs", ".cjs"):
        return (_program(node), str(_existing(command)))
    return (_program(command),)


def as_argument(query: str) -> str:
    """The query as qmd can take it: one line of characters that an argument may hold.

    qmd reads a word that begins with a hyphen as "without it"; nobody who asks a memory means that.
    """
    text = query[:MAX_QUERY_CHARS].encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    return _HYPHENS.sub("", " ".join(text.split())).strip()


def any_of(terms: Sequence[str]) -> str:
    """A query for documents with any of the terms; qmd's plain search wants all of them in one document."""
    return "\n".join(f"lex: {as_argument(term)}" for term in terms)


def both_legs(query: str) -> str:
    """A query by words and by meaning that needs no language model."""
    return f"lex: {query}\nvec: {query}"


def parse(stdout: str) -> list[Row]:
    """The results in qmd's answer, in which warnings of native libraries may stand before the JSON."""
    if not stdout.strip() or stdout.lstrip().startswith("No results"):
        return []
    value = _json(stdout)
    if not isinstance(value, list):
        raise EngineError("qmd's answer is not the list that was asked for.")
    return [_row(item) for item in value]


def _json(stdout: str) -> object:
    # A warning may itself begin with "[": each line that does is tried, and what follows the JSON must be nothing.
    for start in re.finditer(r"^\s*\[", stdout, re.MULTILINE):
        try:
            return json.loads(stdout[start.start() :])
        except (ValueError, RecursionError):
            continue
    raise EngineError(f"qmd's answer is not JSON: {stdout.strip()[:80]!r}.")


def _row(item: object) -> Row:
    match item:
        case {"file": str(file), "score": int() | float() as score, "snippet": str(snippet)}:
            scheme, _, rest = file.partition("://")
            collection, _, path = rest.partition("/")
            header = _HEADER.match(snippet)
            if scheme == "qmd" and path and header and math.isfinite(score):
                lines = snippet[header.end() :].split("\n")
                return Row(collection, path, min(max(float(score), 0.0), 1.0), int(header[1]), tuple(lines))
    raise EngineError(f"qmd's answer has a result of an unknown form: {str(item)[:120]!r}.")


def _last_words(stderr: bytes) -> str:
    lines = list(_printable(stderr.decode("utf-8", "replace")))
    return f": {lines[-1][:200]}" if lines else ""


def _printable(text: str) -> Iterator[str]:
    for line in text.splitlines():
        shown = "".join(char for char in line if char.isprintable()).strip()
        # A trace of the stack says where in qmd; the sentence before it says what.
        if shown and not shown.startswith(("at ", "Node.js v", "}")):
            yield shown.rstrip(".")


def _program(name: str) -> str:
    if os.sep in name or (os.altsep and os.altsep in name):
        return str(_existing(name))
    found = shutil.which(name)
    if found is None:
        raise EngineError(f"the program {name!r} is not on the PATH; install it or set memory.qmd.command.")
    return found


def _existing(name: str) -> Path:
    path = Path(name).expanduser()
    if not path.is_file():
        raise EngineError(f"{path} does not exist; set memory.qmd.command to where qmd is.")
    return path.absolute()
