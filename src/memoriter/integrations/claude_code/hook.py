"""`memoriter hook`: called by hosts, so it never refuses, prints at most one JSON object, and always exits 0.

It is no command of typer's: wrong usage would exit with 2, which Claude Code takes for "do not let this happen", and
typer would cost more than the rest of the start.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from memoriter import logs
from memoriter.integrations.claude_code import worker
from memoriter.integrations.claude_code.hook_input import HEARD, SILENT, Wanted, parse

if TYPE_CHECKING:
    from memoriter.integrations.claude_code.worker import Say

LOG = "hooks.log"
LOG_BYTES = 512 * 1024  #: then the log begins anew, and the old one is kept beside it

__all__ = ["main", "parse"]


def main(wanted: Wanted) -> NoReturn:
    """Answer the host, and end the process."""
    worker.run(
        lambda data, say: _work(wanted, data, say),
        wanted.deadline_s,
        wait=wanted.wait,
        goes_on=wanted.event in HEARD,
        silent=wanted.event in SILENT,
        note=lambda reason: _note(wanted, reason),
    )


def _work(wanted: Wanted, data: bytes, say: Say) -> None:
    answered = False

    def once(answer: dict[str, object]) -> None:
        nonlocal answered
        answered = True
        say(answer)

    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them is a tenth of the start
    logs.setup("warning")
    _log_into(_home(wanted, os.environ))
    log = logs.get("hooks")
    try:
        if wanted.mistake:
            log.warning("%s %s: %s", wanted.host, wanted.event, wanted.mistake)
        if wanted.host != "claude-code":
            raise ValueError(f"{wanted.host[:80]!r} is no host that we know; claude-code is")  # noqa: TRY301
        from memoriter.integrations.claude_code import events

        events.answer(wanted, data, once)
    except Exception as error:  # noqa: BLE001  the host goes on, whatever it is
        log.warning("%s %s: %s", wanted.host, wanted.event, _sentence(error))
    finally:
        if not answered:
            sys.stderr.flush()
            say({})


def _sentence(error: Exception) -> str:
    from memoriter.errors import MemoriterError

    told = isinstance(error, MemoriterError | ValueError)
    return str(error) if told else f"{type(error).__name__}: {error}"


# ---- the log --------------------------------------------------------------------------------------------------


def _home(wanted: Wanted, environ: Mapping[str, str]) -> Path:
    """Where memoriter keeps its own files, known even when the settings cannot be read."""
    given = wanted.places.get("home") or environ.get("MEMORITER_HOME") or environ.get("STORAGE_DIR")
    with contextlib.suppress(RuntimeError):
        return Path(given or "~/.memoriter").expanduser()
    return Path()


def _note(wanted: Wanted, reason: str) -> None:
    """Write down what the child could not, because it was late or is no more; standard error has it already."""
    _log_into(_home(wanted, os.environ))
    logs.get("hooks").warning("%s %s: %s", wanted.host, wanted.event, reason)


def _log_into(home: Path) -> None:
    """Let warnings be read later: what a hook says on standard error, hosts show to nobody."""
    with contextlib.suppress(OSError):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = home / LOG
        if file.exists() and file.stat().st_size > LOG_BYTES:
            file.replace(file.with_name(f"{LOG}.1"))
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        handler = logs.Quiet(os.fdopen(descriptor, "a", encoding="utf-8", errors="replace"))
        formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        formatter.converter = time.gmtime
        handler.setFormatter(formatter)
        handler.setLevel(logging.WARNING)
        logs.get().addHandler(handler)
