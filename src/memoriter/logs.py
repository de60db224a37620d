"""One logger of memoriter's own, quiet until somebody asks.

A library must not print: everything goes to the logger `memoriter`, which stays silent until the host
configures logging or a door calls `setup`. The root logger is the host's and is never touched.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TextIO

NAME = "memoriter"
KEPT = 200  #: messages of trouble that are kept in memory, of all agents together
LONGEST = 500  #: characters of one

_concerned: ContextVar[str] = ContextVar("memoriter_concerned", default="")


@dataclass(frozen=True, slots=True)
class Trouble:
    """A warning or an error that was logged."""

    at: float
    level: str  #: "warning", "error", "critical"
    room: str
    text: str


class _Recent(logging.Handler):
    """Keeps the last messages of trouble, each with whom it concerns; they are gone with the process."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.kept: deque[tuple[str, Trouble]] = deque(maxlen=KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message; one that cannot be put together is no reason to fail."""
        try:
            text = " ".join(record.getMessage().split())[:LONGEST]
        except (TypeError, ValueError, KeyError):
            return
        room = record.name.removeprefix(NAME).strip(".")
        self.kept.append((_concerned.get(), Trouble(record.created, record.levelname.lower(), room, text)))


_recent = _Recent()
logging.getLogger(NAME).addHandler(_recent)


def get(name: str = "") -> logging.Logger:
    """The logger of one room, given the room's name or its `__name__`."""
    part = name.removeprefix(NAME).strip(".")
    return logging.getLogger(f"{NAME}.{part}" if part else NAME)


@contextmanager
def concerning(whom: str) -> Iterator[None]:
    """What is logged inside concerns this agent; messages of one are not shown to another."""
    token = _concerned.set(whom)
    try:
        yield
    finally:
        _concerned.reset(token)


def troubles(whom: str) -> list[Trouble]:
    """The last warnings and errors that concern this agent, newest first."""
    return [one for concerned, one in reversed(list(_recent.kept)) if concerned == whom]


def setup(
    level: str = "warning", stream: TextIO | None = None, formatter: logging.Formatter | None = None
) -> None:
    """Show messages of at least this level on standard error; called by doors, and safe to call again."""
    logger = get()
    for handler in [handler for handler in logger.handlers if isinstance(handler, _Shown)]:
        logger.removeHandler(handler)
    shown = _Shown(stream or sys.stderr)
    shown.setFormatter(formatter or logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger.addHandler(shown)
    logger.setLevel(level.upper())
    # Whoever shows our messages here does not want them a second time from the host's handlers.
    logger.propagate = False


class Quiet(logging.StreamHandler[TextIO]):
    """Writes messages where there is room for them: on a full disk a line is dropped, and nobody hears of that."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  as logging calls it
        """Say nothing: a traceback from the log would be read as trouble of the program's own."""


class _Shown(Quiet):
    """The one handler that `setup` puts in, known by its class so that a second call replaces it."""
