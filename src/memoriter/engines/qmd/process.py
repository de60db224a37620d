"""Running one outside program to its end: bounded in time, in what it prints and in what it leaves behind.

The program gets a list of arguments and no shell, an environment that the caller wrote, no input, and a process
group of its own, which is killed whatever happens. What its output means is not known here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from memoriter.background import check_cancelled
from memoriter.errors import EngineError

STDERR_BYTES = 64 * 1024  #: kept of standard error; the rest is read and thrown away
_TICK_S = 0.05  #: how often a waiting caller looks whether it should stop waiting
_JOIN_S = (
    1.0  #: the pipes of a killed group close at once; only a process that left its group keeps them open
)


@dataclass(frozen=True, slots=True)
class Finished:
    """How the program ended, and what it said."""

    code: int  #: the exit status; negative: the signal that ended it
    stdout: bytes
    stderr: bytes


def run(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout_s: float, max_bytes: int
) -> Finished:
    """Run the program. Raises `EngineError` when it cannot start, takes too long or prints too much."""
    check_cancelled()
    name = Path(argv[0]).name
    try:
        process = subprocess.Popen(  # noqa: S603  a list, no shell, and the owner alone names the program
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise EngineError(f"{name} cannot be started: {reason}.") from error
    assert process.stdout is not None
    assert process.stderr is not None
    out = _Reader(process.stdout, max_bytes)
    err = _Reader(process.stderr, STDERR_BYTES, drain=True)
    try:
        _wait(process, out, name, timeout_s)
    finally:
        _end(process)
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


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever is left of the group: a killed parent must not leave its children at work."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:  # pragma: no cover - where there are no process groups
        process.kill()
    process.wait()


def _too_much(name: str, max_bytes: int) -> EngineError:
    return EngineError(f"{name} printed more than {max_bytes:,} bytes.")


class _Reader:
    """Takes in one pipe in a thread, up to a limit; over the limit it stops reading, or throws the rest away."""

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
