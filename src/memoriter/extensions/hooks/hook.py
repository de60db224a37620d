"""`memoriter hook`: called by hosts. It never fails, prints at most one JSON object, and exits with status 0.

`memoriter.resident.command_line` reads its command line, without typer.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from memoriter import logs
from memoriter.extensions.hooks import worker
from memoriter.extensions.hooks.hook_input import SESSION_EVENTS, SILENT_EVENTS
from memoriter.files.durable import make_folder
from memoriter.hosts import HookAnswer
from memoriter.resident.calls import PROMPT_EVENTS
from memoriter.resident.client import INSIDE_HOOK, Declined
from memoriter.resident.command_line import HookCommand, find_home, read_hook

if TYPE_CHECKING:
    from memoriter.extensions.hooks.events import Afterwards, Surroundings
    from memoriter.extensions.hooks.host import HookHost
    from memoriter.extensions.hooks.worker import Respond
    from memoriter.hosts import HookRequest
    from memoriter.resident.calls import Unanswered

log = logs.get("hooks")


def main(host: HookHost, command: HookCommand, unanswered: Unanswered | None = None) -> NoReturn:
    """Answer the host and end the process. ``unanswered``: the resident process did not answer in its share of time."""
    if unanswered and unanswered.late and command.event in PROMPT_EVENTS:
        worker.give_up(command.deadline_s, log_failure=lambda reason: _log_failure(command, reason))
    worker.run(
        lambda data, respond: _answer(host, command, data, respond),
        max(unanswered.remaining_s, 0.05) if unanswered else command.deadline_s,
        data=unanswered.data if unanswered else None,
        wait=command.wait,
        continue_late=command.event in SESSION_EVENTS,
        silent=command.event in SILENT_EVENTS,
        log_failure=lambda reason: _log_failure(command, reason),
    )


def _answer(host: HookHost, command: HookCommand, data: bytes, respond: Respond) -> None:
    has_responded = False

    def respond_once(answer: dict[str, object]) -> None:
        nonlocal has_responded
        has_responded = True
        respond(answer)

    # Searching for plugins is a tenth of the start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    logs.setup("warning")
    _open_log(command)
    try:
        from memoriter.extensions.hooks.events import Ignored, Surroundings

        if os.environ.get(INSIDE_HOOK):
            raise Ignored(f"this session was started by a hook of memoriter ({INSIDE_HOOK} is set)")  # noqa: TRY301
        os.environ[INSIDE_HOOK] = "1"
        if afterwards := _dispatch(host, command, data, respond_once, Surroundings(os.environ)):
            if hasattr(os, "nice"):
                os.nice(5)  # the next prompt is more urgent
            afterwards()
    except Exception as error:  # noqa: BLE001  a failure must never stop the host
        log.warning("%s %s: %s", command.host, command.event, _describe(error))
    finally:
        if not has_responded:
            sys.stderr.flush()
            respond({})


def _dispatch(
    host: HookHost, command: HookCommand, data: bytes, respond: Respond, surroundings: Surroundings
) -> Afterwards | None:
    """Answer the event and return the work that follows."""
    if command.mistake:
        log.warning("%s %s: %s", command.host, command.event, command.mistake)
    from memoriter.extensions.hooks import events

    return events.answer(host, command, data, respond, surroundings)


def answer_in_process(host: HookHost, request: HookRequest, surroundings: Surroundings) -> HookAnswer:
    """Answer a hook of another process. Raises `Declined` if that process has to do it itself."""
    command = read_hook(request.arguments)
    if command is None:
        raise Declined("This is not a hook.")
    command.deadline_s = request.deadline_s
    answers, errors, afterwards = list[dict[str, object]](), "", None
    try:
        afterwards = _dispatch(host, command, request.data, answers.append, surroundings)
    except Declined:
        raise
    except Exception as error:  # noqa: BLE001  a failure must never stop the host
        errors = f"memoriter: {_describe(error)}"
        log.warning("%s %s: %s", command.host, command.event, _describe(error))
    answer = answers[0] if answers else {}
    is_silent = not answer and command.event in SILENT_EVENTS
    return HookAnswer("" if is_silent else json.dumps(answer), errors, _logged(command, afterwards))


def _logged(command: HookCommand, afterwards: Afterwards | None) -> Afterwards | None:
    """Return work that logs its failure, because no caller waits for it."""
    if afterwards is None:
        return None

    def run() -> None:
        try:
            afterwards()
        except Exception as error:  # noqa: BLE001  the process goes on
            log.warning("%s %s: %s", command.host, command.event, _describe(error))

    return run


def _describe(error: Exception) -> str:
    from memoriter.errors import MemoriterError, message_of

    is_readable = isinstance(error, MemoriterError | OSError | ValueError)
    return message_of(error) if is_readable else f"{type(error).__name__}: {error}"


# ---- log ------------------------------------------------------------------------------------------------------


def _open_log(command: HookCommand) -> None:
    home = Path(find_home(command.options, os.environ))
    with suppress(OSError):
        make_folder(home)
    logs.to_file(home)


def _log_failure(command: HookCommand, reason: str) -> None:
    """Log a failure that the child process could not log itself, because it was late or has ended."""
    _open_log(command)
    logs.get("hooks").warning("%s %s: %s", command.host, command.event, reason)
