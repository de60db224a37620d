"""Hooks and commands that the resident process answers. Where it cannot, the caller does the work itself.

A hook or a command should cost little more than the start of Python, so this module imports few others.
"""

from __future__ import annotations

import os
import sys
import time

from memoriter.files.platform import DeadlineMissed, start_detached, within
from memoriter.resident import client
from memoriter.resident.client import Connection, Unavailable
from memoriter.resident.command_line import find_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from memoriter.resident.command_line import CommandLine, HookCommand

#: Commands that the resident process runs: they only read, ask nothing and print one answer.
COMMANDS = ("search", "get", "why")
#: Share of the time for an answer after which a hook for the end of a turn queues the session itself.
QUEUEING_SHARE = 0.5
#: Events that wait for text. The others only queue a session.
PROMPT_EVENTS = ("SessionStart", "UserPromptSubmit")
MAX_INPUT_BYTES = 16 * 1024 * 1024


# ---- commands --------------------------------------------------------------------------------------------------


def run_command(line: CommandLine, arguments: Sequence[str]) -> int | None:
    """Let the resident process run a command and print its output; return its status, None if it could not."""
    if line.command not in COMMANDS or line.unknown or {"-h", "--help"} & {*line.words}:
        return None
    if client.is_off(line.options, os.environ):
        return None
    home = find_home(line.options, os.environ)
    if "home" in line.options and not os.path.isdir(home):  # noqa: PTH112 - pathlib is slow
        return None  # the command says so; the process would create it
    try:
        connection = within(client.greeting_s(home), lambda: Connection(home))
        result = connection.ask(
            {"operation": "command", "arguments": {"arguments": list(arguments)}}, line.options
        )
    except (Unavailable, OSError):
        return None
    except DeadlineMissed:
        client.abandon_hanging(home)
        return None
    sys.stdout.write(str(result["output"]))
    sys.stdout.flush()
    sys.stderr.write(str(result["errors"]))
    if result["status"] == 0:
        client.announce(home, float(str(result["idle_minutes"])))
    return result["status"] if isinstance(result["status"], int) else 1


# ---- hooks -----------------------------------------------------------------------------------------------------


class Unanswered(Exception):
    """The resident process did not answer a hook. The caller has the rest of the time, and the input."""

    def __init__(self, data: bytes, remaining_s: float, *, late: bool = False) -> None:
        super().__init__("the resident process did not answer")
        self.data, self.remaining_s, self.late = data, remaining_s, late


def answer_hook(command: HookCommand, arguments: Sequence[str]) -> None:
    """Answer a hook through the resident process and end this one. Returns, or raises `Unanswered`, if it cannot."""
    until = time.monotonic() + command.deadline_s
    detached = _detach(arguments) if command.detach else None
    if command.wait or os.environ.get(client.INSIDE_HOOK) or client.is_off(command.options, os.environ):
        if detached is None:
            return
        raise Unanswered(detached, until - time.monotonic())
    share = 1.0 if command.event in PROMPT_EVENTS else QUEUEING_SHARE
    home, data, greeted = find_home(command.options, os.environ), b"", False

    def ask() -> dict[str, object]:
        nonlocal data, greeted
        data = read_input() if detached is None else detached
        connection = Connection(home)
        greeted = True
        return connection.ask(
            {
                "operation": "hook",
                "arguments": {
                    "arguments": list(arguments),
                    "data": data.decode("utf-8", "surrogateescape"),
                    "deadline_s": until - time.monotonic(),
                },
            },
            command.options,
        )

    try:
        result = within(share * command.deadline_s, ask)
    except (Unavailable, OSError) as error:
        raise Unanswered(data, until - time.monotonic()) from error
    except DeadlineMissed as error:
        if not greeted:
            client.abandon_hanging(home)
        raise Unanswered(data, until - time.monotonic(), late=True) from error
    _print_answer(result)


def _detach(arguments: Sequence[str]) -> bytes:
    """End this process, and return the input in one that the host does not wait for and cannot end."""
    data = read_input()
    if sys.platform != "win32":
        if os.fork():
            os._exit(0)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        return data
    others = [argument for argument in arguments if argument != "--detach"]
    start_detached([sys.executable, "-P", "-m", "memoriter", *others, "--wait"], os.environ, lambda _: data)
    os._exit(0)


def _print_answer(result: Mapping[str, object]) -> NoReturn:
    try:
        if result["errors"]:
            os.write(2, f"{result['errors']}\n".encode("utf-8", "replace"))
        if result["output"]:
            output = memoryview(f"{result['output']}\n".encode("utf-8", "replace"))
            while output:
                output = output[os.write(1, output) :]
    except OSError:
        pass  # the host no longer reads
    os._exit(0)


def read_input() -> bytes:
    """Return standard input, up to a limit."""
    parts, size = list[bytes](), 0
    while size <= MAX_INPUT_BYTES and (part := os.read(0, 1 << 20)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)
