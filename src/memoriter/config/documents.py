"""A settings file as plain data, or one sentence why not. What the keys mean is not known here."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from memoriter.errors import ConfigError

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
    # Most people have no settings file at all: they do not wait for a YAML parser.
    import yaml

    from memoriter.config.dialect import Loader

    try:
        return yaml.load(text, Loader)  # noqa: S506 - a SafeLoader with fewer features
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
