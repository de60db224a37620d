"""The logger of the package.

Everything goes to the logger `memoriter`. It prints nothing until the program configures logging or an interface calls
`setup`. The root logger is never changed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from memoriter.invisible import reveal

NAME = "memoriter"
#: Warnings and errors that are kept in memory, of all agents together.
MAX_MESSAGES = 200
#: Characters of one message.
MAX_MESSAGE_CHARS = 500

_concerned: ContextVar[str] = ContextVar("memoriter_concerned", default="")


@dataclass(frozen=True, slots=True)
class Trouble:
    """A warning or an error that was logged."""

    at: float
    #: "warning", "error" or "critical".
    level: str
    #: The logger, such as `engines.builtin`, without the name of the package.
    logger: str
    text: str


class _Recent(logging.Handler):
    """Keeps the last warnings and errors of this process, each with the agent that it concerns."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.kept: deque[tuple[str, Trouble]] = deque(maxlen=MAX_MESSAGES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message, unless it cannot be formatted."""
        try:
            text = reveal(" ".join(record.getMessage().split()))[:MAX_MESSAGE_CHARS]
        except (TypeError, ValueError, KeyError):
            return
        logger = record.name.removeprefix(NAME).strip(".")
        self.kept.append((_concerned.get(), Trouble(record.created, record.levelname.lower(), logger, text)))


_recent = _Recent()
logging.getLogger(NAME).addHandler(_recent)


def get(name: str = "") -> logging.Logger:
    """Return the logger of one package, by its name or a module's `__name__`."""
    part = name.removeprefix(NAME).strip(".")
    return logging.getLogger(f"{NAME}.{part}" if part else NAME)


@contextmanager
def concerning(whom: str) -> Iterator[None]:
    """Mark what is logged inside as concerning this agent. An agent sees only its own messages."""
    token = _concerned.set(whom)
    try:
        yield
    finally:
        _concerned.reset(token)


def troubles(whom: str) -> list[Trouble]:
    """Return the last warnings and errors that concern this agent, newest first."""
    return [trouble for agent, trouble in reversed(list(_recent.kept)) if agent == whom]


def setup(
    level: str = "warning", stream: TextIO | None = None, formatter: logging.Formatter | None = None
) -> None:
    """Print messages of at least this level to standard error. A second call replaces the first."""
    logger = get()
    for handler in [handler for handler in logger.handlers if isinstance(handler, _Shown)]:
        logger.removeHandler(handler)
    shown = _Shown(stream or sys.stderr)
    shown.setFormatter(formatter or _Visible("%(levelname)s %(name)s: %(message)s"))
    logger.addHandler(shown)
    logger.setLevel(level.upper())
    # Otherwise the handlers of the program would print every message a second time.
    logger.propagate = False


class _Visible(logging.Formatter):
    """Draws invisible characters, so that a name in a message cannot look like another."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return reveal(super().format(record))


class Quiet(logging.StreamHandler[TextIO]):
    """A handler that drops a message that it cannot write, for example on a full disk."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name in `logging`
        """Do nothing: a traceback of the logger would look like a failure of the program."""


class _Shown(Quiet):
    """The handler of `setup`. Its class identifies it, so that a second call can replace it."""


LOG_NAME = "hooks.log"
#: At this size the log is renamed to hooks.log.1 and a new one starts.
MAX_LOG_BYTES = 512 * 1024


def to_file(home: Path) -> None:
    """Write warnings to the log file. Hosts do not show the standard error of a hook."""
    with contextlib.suppress(OSError):
        file = home / LOG_NAME
        if file.exists() and file.stat().st_size > MAX_LOG_BYTES:
            file.replace(file.with_name(f"{LOG_NAME}.1"))
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        handler = Quiet(os.fdopen(descriptor, "a", encoding="utf-8", errors="replace"))
        formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        formatter.converter = time.gmtime
        handler.setFormatter(formatter)
        handler.setLevel(logging.WARNING)
        get().addHandler(handler)
