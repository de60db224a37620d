"""Run the work of a hook so that the host always gets one JSON object in time and exit status 0.

The work runs in a child process, so neither a crash nor a call that never returns affects the answer. A child that
misses the deadline is killed, unless its work is useful without an answer. After its answer the child is detached from
the host and may continue in the background for a limited time.
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

from memoriter.files.platform import DeadlineMissed
from memoriter.resident.calls import read_input

#: Maximum lifetime of a child. Unfinished sessions stay in the queue.
MAX_CHILD_S = 180
#: How long a thread may still queue its session after the deadline.
MAX_LATE_S = 10.0

Respond = Callable[[dict[str, object]], None]
"""Send the answer. Work after this call runs in the background."""
Work = Callable[[bytes, Respond], None]
"""The work for the bytes of standard input."""
Wait = Callable[[], object]
"""Wait until the work has finished."""
LogFailure = Callable[[str], None]
"""Log why the work gave no answer."""


class Interrupted(Exception):
    """The host ended the hook."""


def run(
    work: Work,
    deadline_s: float,
    *,
    data: bytes | None = None,
    wait: bool = False,
    continue_late: bool = False,
    silent: bool = False,
    log_failure: LogFailure = lambda _: None,
) -> NoReturn:
    """Run the work, print its answer and end the process with status 0.

    ``data``: standard input, if it was read before. ``wait``: exit when all work has finished, not when the answer is
    printed. ``continue_late``: work that misses the deadline continues in the background. ``silent``: do not print an
    empty answer.
    """
    answer, failure = b"", ""
    wait_for_work: Wait = _no_wait
    try:
        if sys.platform == "win32" or not hasattr(os, "fork"):
            answer, failure, wait_for_work = _run_in_thread(work, deadline_s, data, continue_late, wait)
            wait = True  # the thread may still queue its session
        else:
            answer, failure, wait_for_work = _run_in_child(work, deadline_s, data, continue_late)
    except BaseException as error:  # noqa: BLE001  after an interrupt the host still gets its answer
        failure = f"memoriter: {error or type(error).__name__}"
    _print(answer, failure, silent, log_failure)
    if wait:
        with contextlib.suppress(BaseException):  # the host has its answer and may end this process
            wait_for_work()
    os._exit(0)


def give_up(deadline_s: float, *, log_failure: LogFailure) -> NoReturn:
    """Answer that nothing was injected, because the time is up, and end the process with status 0."""
    _print(b"", _late(deadline_s), False, log_failure)
    os._exit(0)


def _print(answer: bytes, failure: str, silent: bool, log_failure: LogFailure) -> None:
    if not answer and not failure:
        failure = "memoriter: the hook ended without an answer; no memory was injected"
    if failure:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{failure}\n")
            sys.stderr.flush()
    output = answer if _is_json_object(answer) else b"{}"
    if output != b"{}" or not silent:
        with contextlib.suppress(OSError):
            os.write(1, output + b"\n")
    if not answer:
        with contextlib.suppress(BaseException):
            log_failure(failure.removeprefix("memoriter: "))


def _no_wait() -> None:
    """There is no work to wait for."""


def _is_json_object(answer: bytes) -> bool:
    try:
        return isinstance(json.loads(answer), dict)
    except (ValueError, RecursionError):
        return False


def _late(deadline_s: float, *, continues: bool = False) -> str:
    outcome = "the session is processed in the background" if continues else "no memory was injected"
    return f"memoriter: timed out after {deadline_s:g} s; {outcome}"


# ---- child process --------------------------------------------------------------------------------------------


def _run_in_child(
    work: Work, deadline_s: float, data: bytes | None, continue_late: bool
) -> tuple[bytes, str, Wait]:
    if sys.platform == "win32":
        raise RuntimeError("Windows cannot fork a process")
    until = time.monotonic() + deadline_s
    answer_in, answer_out = os.pipe()
    error_in, error_out = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(answer_in)
        os.close(error_in)
        _be_child(work, data, answer_out, error_out)
    os.close(answer_out)
    os.close(error_out)
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), _raise_interrupted)
    try:
        answer, failure = _read_answer(answer_in, error_in, until)
    except BaseException as error:
        if not continue_late:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        if not isinstance(error, DeadlineMissed):
            raise
        answer, failure = b"", _late(deadline_s, continues=continue_late).encode()
    return answer, failure.decode("utf-8", "replace").strip(), lambda: os.waitpid(child, 0)


def _raise_interrupted(number: int, _: object) -> None:
    raise Interrupted(f"the host ended the hook (signal {number})")


def _read_answer(answer_in: int, error_in: int, until: float) -> tuple[bytes, bytes]:
    """Return the complete answer of the child and its standard error so far; raise `DeadlineMissed`."""
    received = {answer_in: b"", error_in: b""}
    is_open = set(received)
    while answer_in in is_open:
        ready, _, _ = select.select(list(is_open), [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise DeadlineMissed
        for descriptor in ready:
            part = os.read(descriptor, 65536)
            received[descriptor] += part
            if not part:
                is_open.discard(descriptor)
    while error_in in is_open and select.select([error_in], [], [], 0)[0]:
        part = os.read(error_in, 65536)
        received[error_in] += part
        if not part:
            break
    return received[answer_in], received[error_in]


def _be_child(work: Work, data: bytes | None, answer_out: int, error_out: int) -> NoReturn:
    """Run the work, detached from the host except for its input."""
    if sys.platform == "win32":
        raise RuntimeError("Windows cannot fork a process")
    with contextlib.suppress(BaseException):
        signal.alarm(MAX_CHILD_S)  # the system ends the child wherever it hangs
        os.setsid()  # leave the host's terminal and process group
        # A host that waits for the end of our streams must not wait for the background work.
        devnull = os.open(os.devnull, os.O_RDWR)
        os.dup2(devnull, 1)
        os.dup2(error_out, 2)
        os.close(error_out)
        data = read_input() if data is None else data
        os.dup2(devnull, 0)

        def respond(answer: dict[str, object]) -> None:
            remaining = memoryview(json.dumps(answer).encode())
            with contextlib.suppress(BrokenPipeError):  # too late: the parent has answered
                while remaining:
                    remaining = remaining[os.write(answer_out, remaining) :]
            os.dup2(devnull, 2)
            os.close(answer_out)

        try:
            work(data, respond)
        except BaseException as error:  # noqa: BLE001  the parent prints it
            os.write(2, f"{type(error).__name__}: {error}".encode())
    os._exit(0)


# ---- systems without fork -------------------------------------------------------------------------------------


def _run_in_thread(
    work: Work, deadline_s: float, data: bytes | None, continue_late: bool, wait: bool
) -> tuple[bytes, str, Wait]:
    """Run the work in a thread. It ends with this process; unfinished sessions stay in the queue."""
    answers, sent = list[dict[str, object]](), [] if data is None else [data]
    has_answered = threading.Event()

    def respond(answer: dict[str, object]) -> None:
        answers.append(answer)
        has_answered.set()

    def run_work() -> None:
        try:
            sent[:] = sent or [read_input()]
            work(sent[0], respond)
        except BaseException as error:  # noqa: BLE001  the host still gets its answer
            sys.stderr.write(f"memoriter: {type(error).__name__}: {error}\n")
        finally:
            has_answered.set()

    until = time.monotonic() + deadline_s
    thread = threading.Thread(target=run_work, daemon=True)
    thread.start()
    is_late = not has_answered.wait(deadline_s)
    if not wait:
        thread.join(max(0.0, until - time.monotonic()))
    failure = _late(deadline_s) if is_late else ""
    answer = json.dumps(answers[0]).encode() if answers and not is_late else b""
    late_s = MAX_LATE_S if continue_late and sent else 0
    return answer, failure, lambda: thread.join(MAX_CHILD_S) if wait else has_answered.wait(late_s)
