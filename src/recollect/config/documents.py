"""A settings file as plain data, or one sentence why not.

YAML as its version 1.2 reads it (`citations: off` is a word, not a boolean), without aliases, and each
key once. What the keys mean is not known here.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Hashable
from pathlib import Path
from typing import ClassVar

import yaml

from recollect.errors import ConfigError

SIZE_LIMIT = 256 * 1024  #: bytes; a settings file is a page or two


def read(path: Path, *, follow_links: bool) -> str | None:
    """The file's text, or None if there is no such file.

    A workspace may come from a stranger: its file is not followed out by a link, and a pipe in its place is
    never waited for.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (0 if follow_links else getattr(os, "O_NOFOLLOW", 0))
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{shown(path)} is not a plain file, so no settings are read from it")
            data = file.read(SIZE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"settings file {shown(path)} cannot be read: {reason}") from error
    if len(data) > SIZE_LIMIT:
        raise ConfigError(f"settings file {shown(path)} is larger than {SIZE_LIMIT // 1024} KiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"settings file {shown(path)} is not UTF-8 (byte {error.start})") from error


def parse(text: str, place: str) -> object:
    """What the YAML text says; `place` names it in the error."""
    try:
        # A SafeLoader with fewer features.
        return yaml.load(text, _Loader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{place}{line}: not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ConfigError(f"{place}: not valid YAML: {reason}") from error


def shown(path: Path | str) -> str:
    """A path as it stands in a sentence: on one line, whatever its name holds."""
    text = str(path)
    return text if text.isprintable() else repr(text)


class _Loader(yaml.SafeLoader):
    """Safe, and smaller than YAML 1.1: what a settings file needs and no more."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}  # type: ignore[misc]

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        # Nested aliases make a few lines stand for gigabytes; settings have no use for them.
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="aliases are not used in settings", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        # Of two equal keys YAML would quietly keep the last; the reader of the file saw the first.
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                problem = f"the key {key.value[:80]!r} stands twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def _resolve(kind: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(f"^(?:{pattern})$"), list(first))


_resolve("null", r"~|null|Null|NULL|", "~nN")
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("^$"), [""])
_resolve("bool", "true|True|TRUE|false|False|FALSE", "tTfF")
_resolve("int", r"[-+]?[0-9]+", "-+0123456789")
_resolve(
    "float",
    r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.inf|\.nan",
    "-+0123456789.",
)
