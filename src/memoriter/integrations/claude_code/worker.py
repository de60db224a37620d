"""One moment, one answer, in time: whatever happens to the work, standard output holds one JSON object and we exit 0.

Where a host takes whatever is printed for words to its agent, an answer that says nothing is not printed.

The work is done by a child, so that neither a crash nor a call that never returns can reach the answer. A child whose
answer comes too late is ended, unless the work is worth having without it. After its answer it has nothing to do with
the host any more, and may go on with what is to be kept, within a limit of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

LIMIT_S = 180  #: seconds that a child may live; what it has not done by then waits in the spool
MOST_READ = 16 * 1024 * 1024  #: bytes of standard input

Say = Callable[[dict[str, object]], None]
"""Give the answer; what is done after that is done in the background."""
Work = Callable[[bytes, Say], None]
"""What is to be done with what the host said."""
Rest = Callable[[], object]
"""Wait until all is done."""
Note = Callable[[str], None]
"""Write down, for the owner, why the work gave no answer."""


class Deadline(Exception):
    """The answer is due."""


class Ended(Exception):
    """The host waits no longer."""


def run(
    work: Work,
    deadline_s: float,
    *,
    wait: bool = False,
    goes_on: bool = False,
    silent: bool = False,
    note: Note = lambda _: None,
) -> NoReturn:
    """Answer for this process. ``wait``: stay until all is done, not only until the answer is there.

    ``goes_on``: what has no answer in time is done all the same, in the background. ``silent``: nothing is printed
    where there is nothing to say.
    """
    answer, reason = b"", ""
    rest: Rest = _nothing
    try:
        if hasattr(os, "fork"):
            answer, reason, rest = _in_child(work, deadline_s, goes_on)
        else:
            answer, reason, rest = _in_thread(work, deadline_s, wait)
    except BaseException as error:  # noqa: BLE001  an interrupt too: the host gets its answer
        reason = f"memoriter: {error or type(error).__name__}"
    if not answer and not reason:
        reason = "memoriter: the memory ended without an answer, so there is none"
    if reason:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{reason}\n")
            sys.stderr.flush()
    given = answer if _is_object(answer) else b"{}"
    if given != b"{}" or not silent:
        with contextlib.suppress(OSError):
            os.write(1, given + b"\n")
    if not answer:
        with contextlib.suppress(BaseException):
            note(reason.removeprefix("memoriter: "))
    if wait:
        with contextlib.suppress(BaseException):  # the answer is given, so the host may end us as it likes
            rest()
    os._exit(0)


def _nothing() -> None:
    """There is nothing left to wait for."""


def _is_object(answer: bytes) -> bool:
    try:
        return isinstance(json.loads(answer), dict)
    except (ValueError, RecursionError):
        return False


# ---- a child --------------------------------------------------------------------------------------------------


def _in_child(work: Work, deadline_s: float, goes_on: bool) -> tuple[bytes, str, Rest]:
    until = time.monotonic() + deadline_s
    answers, theirs = os.pipe()
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(answers)
        os.close(told)
        _be_child(work, theirs, telling)
    os.close(theirs)
    os.close(telling)
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), _interrupted)
    try:
        answer, reason = _heard(answers, told, until)
    except BaseException as error:
        if not goes_on:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        if not isinstance(error, Deadline):
            raise
        answer, reason = b"", f"memoriter: {error}".encode()
    return answer, reason.decode("utf-8", "replace").strip(), lambda: os.waitpid(child, 0)


def _interrupted(number: int, _: object) -> None:
    raise Ended(f"the host ended the hook (signal {number})")


def _heard(answers: int, told: int, until: float) -> tuple[bytes, bytes]:
    """The child's answer, once it is whole, and what else it told by then; raises `Deadline`."""
    heard = {answers: b"", told: b""}
    is_open = set(heard)
    while answers in is_open:
        ready, _, _ = select.select(list(is_open), [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise Deadline("the memory had no answer in time, so there is none")
        for descriptor in ready:
            part = os.read(descriptor, 65536)
            heard[descriptor] += part
            if not part:
                is_open.discard(descriptor)
    while told in is_open and select.select([told], [], [], 0)[0]:
        part = os.read(told, 65536)
        heard[told] += part
        if not part:
            break
    return heard[answers], heard[told]


def _be_child(work: Work, answering: int, telling: int) -> NoReturn:
    """Do the work with nothing of the host's in our hands but its words."""
    with contextlib.suppress(BaseException):
        signal.alarm(LIMIT_S)  # the system ends us, wherever we hang
        os.setsid()  # the host's terminal and its group are none of ours
        # Whoever waits for the ends of our streams must not wait for the background.
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(telling, 2)
        os.close(telling)
        said = _input()
        os.dup2(nothing, 0)

        def say(answer: dict[str, object]) -> None:
            data = memoryview(json.dumps(answer).encode())
            with contextlib.suppress(BrokenPipeError):  # too late: the host has its answer
                while data:
                    data = data[os.write(answering, data) :]
            os.dup2(nothing, 2)
            os.close(answering)

        try:
            work(said, say)
        except BaseException as error:  # noqa: BLE001  the parent tells it
            os.write(2, f"{type(error).__name__}: {error}".encode())
    os._exit(0)


def _input() -> bytes:
    parts, size = list[bytes](), 0
    while size <= MOST_READ and (part := os.read(0, 1024 * 1024)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


# ---- where there are no children ------------------------------------------------------------------------------


def _in_thread(work: Work, deadline_s: float, wait: bool) -> tuple[bytes, str, Rest]:
    """Elsewhere a thread has to do; it ends with this process, and the spool keeps what it did not get to."""
    answers: list[dict[str, object]] = []
    answered = threading.Event()

    def say(answer: dict[str, object]) -> None:
        answers.append(answer)
        answered.set()

    def do() -> None:
        try:
            work(_input(), say)
        except BaseException as error:  # noqa: BLE001  the host gets its answer
            sys.stderr.write(f"memoriter: {type(error).__name__}: {error}\n")
        finally:
            answered.set()

    until = time.monotonic() + deadline_s
    worker = threading.Thread(target=do, daemon=True)
    worker.start()
    late = not answered.wait(deadline_s)
    if not wait:
        worker.join(max(0.0, until - time.monotonic()))
    reason = "memoriter: the memory had no answer in time, so there is none" if late else ""
    answer = json.dumps(answers[0]).encode() if answers and not late else b""
    return answer, reason, lambda: worker.join(LIMIT_S)
