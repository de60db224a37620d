"""Recalled lines, checked against the working tree: what they name and the tree does not have.

Only lines about this project are checked, and only by what the tree itself can answer:

| named in a line | looked up in |
| --- | --- |
| a path or a file | the working tree, and Git's list of tracked files |
| `make x`, `just x`, `npm run x` | the targets of the Makefile or justfile, the scripts of package.json |
| a flag (`--fast`) | the file that the same line names |
| a port | the settings files in the top folder, if they name any port |
| a version (`Django 4.2`) | the manifests of packages, if they name the package |

Nothing is written or run. After `MAX_SECONDS` no further file is read, and the rest of the lines stays unchecked.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.extensions.projects.repository import index_file
from memoriter.extensions.projects.settings import ProjectSettings

if TYPE_CHECKING:
    from memoriter.memory import Memory
    from memoriter.recall.inject import Candidate, Check

#: Seconds for all lines of one recall.
MAX_SECONDS = 0.02
#: Bytes of a file that are read.
MAX_BYTES = 256 * 1024
#: Bytes of Git's list of files. A longer one is not read, and file names without a folder stay unchecked.
MAX_INDEX_BYTES = 16 * 1024 * 1024
#: Files of the top folder that are read for ports.
MAX_FILES = 40
#: Missing things that a label names, and the characters of each.
MAX_NAMED, MAX_CHARS = 3, 80

_SUFFIXES = (
    "py|pyi|ipynb|ts|tsx|jsx|mjs|cjs|go|rs|rb|java|kt|c|h|cc|cpp|hpp|cs|php|swift|sh|bash|ps1|bat|sql|md|mdx|rst|txt|"
    "toml|yaml|yml|json|jsonc|ini|cfg|conf|lock|xml|html|css|scss|proto|tf|gradle"
)
_URL = re.compile(r"\w+://\S+")
#: In plain text a path has a file's ending, since "TCP/IP" and "Node.js" are none. Between backticks a slash suffices.
_PATH = re.compile(
    rf"(?<![\w/.:@~*$-])((?:\.?[\w@+-][\w.@+-]*/)*[\w@+-][\w.@+-]*\.(?:{_SUFFIXES}))(?![\w/*-])", re.ASCII
)
_QUOTED_PATH = re.compile(r"`(?:\./)?([\w@+.-]*\w/[\w@+./-]*|[\w@+-]+\.js)`", re.ASCII)
#: "make" and "just" are also words: they are programs where they are run.
_COMMAND = re.compile(
    r"(?:(?:`|\b(?:run|runs|with|via) |运行 ?|执行 ?)(make|just)|\b(?:npm|pnpm|yarn|bun) run) ([\w:.-]*\w)"
    r"(?=[`\s,;.)，。；）]|$)"
)
_FLAG = re.compile(r"(?<![\w-])--([a-z][\w-]+)", re.ASCII)
_PORT = re.compile(
    r"\bport\W{0,3}(\d{2,5})\b|\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{2,5})\b|端口\D{0,3}(\d{2,5})",
    re.IGNORECASE,
)
_DECLARED_PORT = re.compile(
    r"port\w*[\"']?\s*[:= ]\s*[\"']?(\d{2,5})\b|\b(\d{2,5}):(\d{2,5})\b|:(\d{4,5})\b|expose\s+(\d{2,5})",
    re.IGNORECASE,
)
_VERSION = re.compile(r"([A-Za-z][\w.-]*\w)[`\"']?(?:\s+v?|==|@)(\d+(?:\.\d+)*)(?![\w.]*\w)", re.ASCII)
#: A package in a manifest, with the sign before its version.
_REQUIREMENT = (
    r"(?i)(?<![\w-]){}(?:js|ql)?[ \t:=(\[\"'@{{]*(?:version[ \t]*=[ \t\"']*)?"
    r"([<>~^=!]*)[ \t\"']*v?(\d+(?:\.\d+)*)"
)
#: Programs whose version is often one number.
_RUNTIMES = re.compile(
    r"node|python|postgres|mysql|redis|java|go|ruby|php|react|vue|next|angular|django|rails", re.IGNORECASE
)
#: Words before a number that name no package.
_NO_PACKAGE = frozenset(("version", "release", "section", "line", "page", "step", "chapter"))
_TARGET = re.compile(r"^([\w .:/-]+?)\s*:(?!=)", re.MULTILINE)
_RECIPE = re.compile(r"^@?([\w-]+)[^\n:]*:(?!=)", re.MULTILINE)
#: Types of entries that are about the owner and not about a project.
_PERSONAL = ("user_preference", "skill", "relationship")

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES = ("justfile", "Justfile", ".justfile")
_MANIFESTS = (
    *("pyproject.toml", "requirements.txt", "setup.cfg", "Pipfile", "package.json", "go.mod", "Cargo.toml"),
    *("Gemfile", "composer.json", ".tool-versions", ".python-version", ".nvmrc"),
    *("Dockerfile", "compose.yaml", "compose.yml", "docker-compose.yml"),
)
_SETTINGS = (".env", ".yml", ".yaml", ".toml", ".json", ".ini", ".cfg", ".conf", "Dockerfile", *_MAKEFILES)


def checker(memory: Memory, tree: str, sessions: Callable[[], Collection[str]]) -> Check | None:
    """Return the check of the lines of one recall, for an agent that works in ``tree``; None if it is off.

    ``sessions`` returns those of the project. Their entries are about it, as are lines that name it and notes in it.
    """
    settings = memory.settings
    if not tree or not settings.section(ProjectSettings).check_lines:
        return None
    return _Check(memory, Tree(Path(tree), settings.workspace), sessions)


class _Check:
    """Checks the lines of one recall, within a time limit."""

    def __init__(self, memory: Memory, tree: Tree, sessions: Callable[[], Collection[str]]) -> None:
        self._memory, self._tree, self._find_sessions = memory, tree, sessions
        self._name = re.compile(rf"(?<![^\W_]){re.escape(tree.folder.name)}(?![^\W_])", re.IGNORECASE)
        self._spent = 0.0

    def __call__(self, one: Candidate) -> str:
        """Return what a line names and the tree does not have."""
        start = time.perf_counter()
        left = MAX_SECONDS - self._spent
        if left <= 0 or one.line.group in _PERSONAL or not self._is_ours(one):
            return ""
        self._tree.ends = start + left
        # What a lookup found too late is left out: it may not have read every file.
        missing = takewhile(lambda _: not self._tree.is_late, self._tree.missing(one.line.text))
        named = list(islice(filter(None, missing), MAX_NAMED))
        self._spent += time.perf_counter() - start
        return ", ".join(dict.fromkeys(name[:MAX_CHARS] for name in named))

    @cached_property
    def _sessions(self) -> frozenset[str]:
        return frozenset(self._find_sessions())

    def _is_ours(self, one: Candidate) -> bool:
        if len(self._tree.folder.name) > 2 and self._name.search(f"{one.ref} {one.line.text}"):
            return True
        if one.kind == "entry":
            found = self._memory.entries.get_many([one.ref]).get(one.ref)
            return found is not None and found.session in self._sessions
        return (self._memory.settings.workspace / one.ref).is_relative_to(self._tree.folder)


class Tree:
    """A working tree, read on demand and at most once."""

    def __init__(self, folder: Path, notes: Path | None = None) -> None:
        self.folder = folder
        #: Where relative paths may begin: a note may name another note.
        self._roots = [folder, *([notes] if notes else [])]
        #: When to stop reading files, by `time.perf_counter`.
        self.ends = math.inf

    @property
    def is_late(self) -> bool:
        """Whether the time is over, so that no further file is read."""
        return time.perf_counter() >= self.ends

    def missing(self, text: str) -> Iterator[str]:
        """Yield what a text names and the tree does not have, and "" for what it has."""
        plain = _URL.sub(" ", text.replace(f"{self.folder}{os.sep}", ""))
        paths = list(
            dict.fromkeys(found[1] for form in (_PATH, _QUOTED_PATH) for found in form.finditer(plain))
        )
        for path in paths:
            yield "" if self._has(path) else path
        for program, name in _COMMAND.findall(plain):
            known = (
                self._targets if program == "make" else self._recipes if program == "just" else self._scripts
            )
            yield f"{program or 'script'} {name}" if known is not None and name not in known else ""
        for flag in _FLAG.findall(plain) if paths else ():
            yield f"--{flag}" if self._lacks_flag(flag, paths) else ""
        for port in dict.fromkeys(next(filter(None, found)) for found in _PORT.findall(text)):
            yield f"port {port}" if self._ports and port not in self._ports else ""
        for name, version in _VERSION.findall(plain):
            is_package = name.lower() not in _NO_PACKAGE and ("." in version or _RUNTIMES.fullmatch(name))
            yield f"{name} {version}" if is_package and self._differs(name, version) else ""

    # ---- paths --------------------------------------------------------------------------------------------------

    def _has(self, path: str) -> bool:
        """Return whether a path exists, or cannot be looked up."""
        parts = path.rstrip("/").split("/")
        if ".." in parts or any((root / path).exists() for root in self._roots):
            return True
        index = self._index
        if index is None:  # Without Git's list, a file may be in any folder.
            return len(parts) == 1 or not (self.folder / parts[0]).is_dir()
        # A path from the top folder would exist. The list is asked for the same path in another folder.
        name, found = b"/" + path.rstrip("/").encode(), -1
        while (found := index.find(name, found + 1)) >= 0:
            if index[found + len(name) : found + len(name) + 1] in (b"\0", b"/"):
                return True
        return False

    @cached_property
    def _index(self) -> bytes | None:
        """Git's list of tracked files. Version 4 shortens paths, so that they cannot be found in it."""
        if self.is_late:
            return None
        try:
            file = index_file(self.folder)
            data = file.read_bytes() if file.stat().st_size <= MAX_INDEX_BYTES else b""
        except OSError:
            return None
        return data if data[:4] == b"DIRC" and data[4:8] in (b"\0\0\0\2", b"\0\0\0\3") else None

    # ---- commands and flags -------------------------------------------------------------------------------------

    @cached_property
    def _targets(self) -> set[str] | None:
        text = self._first(_MAKEFILES)
        # Patterns and included files define targets that the text does not show.
        if not text or re.search(r"^-?include\b|^[^#\n]*%[^\n]*:", text, re.MULTILINE):
            return None
        return {name for found in _TARGET.findall(text) for name in found.split()}

    @cached_property
    def _recipes(self) -> set[str] | None:
        text = self._first(_JUSTFILES)
        return (
            set(_RECIPE.findall(text)) if text and not re.search(r"^import\b", text, re.MULTILINE) else None
        )

    @cached_property
    def _scripts(self) -> set[str] | None:
        try:
            scripts = json.loads(self._text("package.json"))["scripts"]
        except (ValueError, KeyError, TypeError):
            return None
        return set(scripts) if isinstance(scripts, dict) else None

    def _lacks_flag(self, flag: str, paths: list[str]) -> bool:
        """Return whether all of these files exist, and none has the flag."""
        files = [self._text(path) for path in paths]
        forms = {flag, flag.replace("-", "_"), flag.removeprefix("no-"), flag[3:].replace("-", "_")}
        return all(files) and not any(form in file for form in forms if len(form) > 1 for file in files)

    # ---- ports and versions -------------------------------------------------------------------------------------

    @cached_property
    def _ports(self) -> set[str]:
        """The ports that the settings files of the top folder name."""
        try:
            names = sorted(entry.name for entry in os.scandir(self.folder) if entry.is_file())
        except OSError:
            return set()
        files = [name for name in names if name.endswith(_SETTINGS) or name.startswith(".env")]
        texts = (
            self._text(name) for name in files[:MAX_FILES] if not name.endswith(("-lock.json", "-lock.yaml"))
        )
        return {port for text in texts for found in _DECLARED_PORT.findall(text) for port in found if port}

    def _differs(self, name: str, version: str) -> bool:
        """Return whether the manifests name a package with other versions only."""
        texts = [text for file in _MANIFESTS if name.lower() in (text := self._manifest(file)).lower()]
        found = [pair for text in texts for pair in re.findall(_REQUIREMENT.format(re.escape(name)), text)]
        return bool(found) and not any(_allows(sign, has, version) for sign, has in found)

    def _manifest(self, file: str) -> str:
        text = self._text(file)
        if file in (".python-version", ".nvmrc"):
            return text and f"{'python' if file == '.python-version' else 'node'} {text}"
        return text.replace("requires-python", "python")

    # ---- files --------------------------------------------------------------------------------------------------

    def _first(self, names: Collection[str]) -> str:
        return next((text for name in names if (text := self._text(name))), "")

    def _text(self, path: str) -> str:
        """Return the text of a file in the tree; empty if there is none, or if it is too long."""
        if path not in self._texts and not self.is_late:
            file, self._texts[path] = self.folder / path, ""
            try:
                if ".." not in path.split("/") and file.is_file() and file.stat().st_size <= MAX_BYTES:
                    self._texts[path] = file.read_bytes().decode("utf-8", "replace")
            except (OSError, ValueError):
                pass
        return self._texts.get(path, "")

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {}


def _allows(sign: str, has: str, version: str) -> bool:
    """Return whether a requirement of a manifest allows a version.

    >>> _allows("", "4.2.7", "4.2"), _allows(">=", "3.11", "3.12"), _allows("^", "18.2", "17.0")
    (True, True, False)
    """
    known, named = ([int(part) for part in text.split(".")] for text in (has, version))
    if sign.startswith((">", "!")):
        return named >= known[: len(named)]
    if sign.startswith("<"):
        return named <= known
    if sign.startswith(("^", "~")):
        return named[0] == known[0] and (sign[0] == "^" or named[1:2] == known[1:2] or len(known) < 3)
    shared = min(len(known), len(named))
    return known[:shared] == named[:shared]
