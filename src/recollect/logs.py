"""One logger of recollect's own, quiet until somebody asks.

A library must not print: everything goes to the logger `recollect`, which stays silent until the host
configures logging or a door calls `setup`. The root logger is the host's and is never touched.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

NAME = "recollect"

logging.getLogger(NAME).addHandler(logging.NullHandler())


def get(name: str = "") -> logging.Logger:
    """The logger of one room, given the room's name or its `__name__`."""
    part = name.removeprefix(NAME).strip(".")
    return logging.getLogger(f"{NAME}.{part}" if part else NAME)


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


class _Shown(logging.StreamHandler[TextIO]):
    """The one handler that `setup` puts in, known by its class so that a second call replaces it."""
