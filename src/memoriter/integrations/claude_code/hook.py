"""`memoriter hook`: called by hosts. It never fails, prints at most one JSON object, and exits with status 0.

It is not a typer command. On wrong usage typer exits with status 2, which Claude Code treats as a veto, and loading
typer takes longer than the rest of the start.
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
from memoriter.integrations.claude_code.hook_input import SESSION_EVENTS, SILENT_EVENTS, HookCommand, parse

if TYPE_CHECKING:
    from memoriter.integrations.claude_code.worker import Respond

LOG_NAME = "hooks.log"
#: At this size the log is renamed to hooks.log.1 and a new one starts.
MAX_LOG_BYTES = 512 * 1024

__all__ = ["main", "parse"]


def main(command: HookCommand) -> NoReturn:
    """Answer the host and end the process."""
    worker.run(
        lambda data, respond: _answer(command, data, respond),
        command.deadline_s,
        wait=command.wait,
        continue_late=command.event in SESSION_EVENTS,
        silent=command.event in SILENT_EVENTS,
        log_failure=lambda reason: _log_failure(command, reason),
    )


def _answer(command: HookCommand, data: bytes, respond: Respond) -> None:
    has_responded = False

    def respond_once(answer: dict[str, object]) -> None:
        nonlocal has_responded
        has_responded = True
        respond(answer)

    os.environ.setdefault(
        "PYDANTIC_DISABLE_PLUGINS", "__all__"
    )  # searching for plugins is a tenth of the start
    logs.setup("warning")
    _log_to_file(_find_home(command, os.environ))
    log = logs.get("hooks")
    try:
        if command.mistake:
            log.warning("%s %s: %s", command.host, command.event, command.mistake)
        if command.host != "claude-code":
            raise ValueError(f"Unknown host {command.host[:80]!r}. Supported: claude-code.")  # noqa: TRY301
        from memoriter.integrations.claude_code import events

        events.answer(command, data, respond_once)
    except Exception as error:  # noqa: BLE001  a failure must never stop the host
        log.warning("%s %s: %s", command.host, command.event, _describe(error))
    finally:
        if not has_responded:
            sys.stderr.flush()
            respond({})


def _describe(error: Exception) -> str:
    from memoriter.errors import MemoriterError

    is_readable = isinstance(error, MemoriterError | ValueError)
    return str(error) if is_readable else f"{type(error).__name__}: {error}"


# ---- log ------------------------------------------------------------------------------------------------------


def _find_home(command: HookCommand, environ: Mapping[str, str]) -> Path:
    """Return the home folder, even if the settings cannot be read."""
    home = command.options.get("home") or environ.get("MEMORITER_HOME") or environ.get("STORAGE_DIR")
    with contextlib.suppress(RuntimeError):
        return Path(home or "~/.memoriter").expanduser()
    return Path()


def _log_failure(command: HookCommand, reason: str) -> None:
    """Log a failure that the child process could not log itself, because it was late or has ended."""
    _log_to_file(_find_home(command, os.environ))
    logs.get("hooks").warning("%s %s: %s", command.host, command.event, reason)


def _log_to_file(home: Path) -> None:
    """Write warnings to the log file. Hosts do not show the standard error of a hook."""
    with contextlib.suppress(OSError):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = home / LOG_NAME
        if file.exists() and file.stat().st_size > MAX_LOG_BYTES:
            file.replace(file.with_name(f"{LOG_NAME}.1"))
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        handler = logs.Quiet(os.fdopen(descriptor, "a", encoding="utf-8", errors="replace"))
        formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        formatter.converter = time.gmtime
        handler.setFormatter(formatter)
        handler.setLevel(logging.WARNING)
        logs.get().addHandler(handler)
