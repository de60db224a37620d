"""Run an external program with limits on its time and output.

The program gets a list of arguments without a shell, the environment of the caller, no input, and a process group (on
Windows a job), which is always killed at the end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from memoriter.background import check_cancelled
from memoriter.errors import EngineError, reason_of

#: How much of standard error is kept. The remainder is read and dropped.
STDERR_BYTES = 64 * 1024
#: How often a waiting caller checks whether it was cancelled.
_TICK_S = 0.05
#: The pipes of a killed group close immediately. Only a process that left the group keeps them open.
_JOIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Finished:
    """The exit status and the output of the program."""

    #: The exit status, or the negative number of the signal that ended it.
    code: int
    stdout: bytes
    stderr: bytes


def run(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout_s: float, max_bytes: int
) -> Finished:
    """Run the program. Raises `EngineError` if it cannot start, takes too long or prints too much."""
    check_cancelled()
    name = Path(argv[0]).name or argv[0]
    try:
        process = subprocess.Popen(  # noqa: S603 - no shell, and only the owner names the program
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise EngineError(f"Cannot start {name}: {reason_of(error)}.") from error
    kill = _group(process.pid)
    assert process.stdout is not None
    assert process.stderr is not None
    out = _Reader(process.stdout, max_bytes)
    err = _Reader(process.stderr, STDERR_BYTES, drain=True)
    try:
        _wait(process, out, name, timeout_s)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            kill()
            process.kill()
        process.wait()
        for reader in (out, err):
            reader.close()
    if out.overflow.is_set():
        raise _too_much(name, max_bytes)
    return Finished(process.returncode, bytes(out.data), bytes(err.data[:STDERR_BYTES]))


def _wait(process: subprocess.Popen[bytes], out: _Reader, name: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(_TICK_S, max(0.0, deadline - time.monotonic())))
            return
        check_cancelled()
        if out.overflow.is_set():
            raise _too_much(name, out.limit)
        if time.monotonic() >= deadline:
            raise EngineError(f"{name} did not finish within {timeout_s:.3g} s.")


def _group(pid: int) -> Callable[[], object]:
    """Return a function that kills a process and those that it starts from now on."""
    if sys.platform != "win32":
        return lambda: os.killpg(pid, signal.SIGKILL)
    import win32api
    import win32job

    job = win32job.CreateJobObject(None, "")
    with suppress(win32job.error):  # the process has ended
        handle = win32api.OpenProcess(0x101, False, pid)  # SET_QUOTA, TERMINATE
        win32job.AssignProcessToJobObject(job, handle)
    return lambda: win32job.TerminateJobObject(job, 1)


def _too_much(name: str, max_bytes: int) -> EngineError:
    return EngineError(f"{name} printed more than {max_bytes:,} bytes.")


class _Reader:
    """Reads one pipe in a thread up to a limit. Above the limit it stops reading, or drops the remainder."""

    def __init__(self, pipe: IO[bytes], limit: int, *, drain: bool = False) -> None:
        self.data = bytearray()
        self.limit = limit
        self.overflow = threading.Event()
        self._pipe = pipe
        self._drain = drain
        self._thread = threading.Thread(target=self._read, name="memoriter-pipe", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while part := os.read(self._pipe.fileno(), 65536):
            self.data += part[: self.limit + 1 - len(self.data)]
            if len(self.data) > self.limit:
                self.overflow.set()
                if not self._drain:
                    return

    def close(self) -> None:
        self._thread.join(_JOIN_S)
        if not self._thread.is_alive():
            self._pipe.close()
