"""A driver as a child process: requests, answers, and what its whole session of processes costs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1024 / 1024


class PeerFailed(Exception):
    """A peer gave no answer."""


class Stat(NamedTuple):
    """What the system knows about one process."""

    session: int
    #: Of the process and its finished children.
    cpu_s: float
    rss_mb: float


def parse_stat(line: str) -> Stat:
    """Read a line of /proc/PID/stat. The name in parentheses may contain spaces.

    >>> parse_stat("7 (a b) S 1 7 7 0 -1 0 0 0 0 0 100 50 20 30 20 0 1 0 9 4096 256 0").session
    7
    """
    fields = line.rpartition(")")[2].split()
    user, system, child_user, child_system = map(int, fields[11:15])
    cpu_s = (user + system + child_user + child_system) / TICKS
    return Stat(int(fields[3]), cpu_s, int(fields[21]) * PAGE_MB)


def session_stats(session: int) -> Iterator[Stat]:
    """Yield what every process of a session uses."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                stat = parse_stat((folder / "stat").read_text("utf-8", "replace"))
                if stat.session == session:
                    yield stat


class Driver:
    """A running driver. It and its children form one session, so that their cost can be added up."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )

    def ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        """Send one request and return its answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(request, ensure_ascii=False) + "\n")
            stdin.flush()
            line = stdout.readline()
        except OSError as error:
            raise PeerFailed(self._last_words()) from error
        if not line:
            raise PeerFailed(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerFailed(str(answer["error"]).strip().splitlines()[0])
        return answer

    def cost(self) -> tuple[float, float]:
        """Return the CPU seconds so far and the resident megabytes now, of the whole session."""
        stats = list(session_stats(self._process.pid))
        return sum(stat.cpu_s for stat in stats), sum(stat.rss_mb for stat in stats)

    def close(self) -> None:
        """End the driver and whatever it started."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _last_words(self) -> str:
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "the driver ended without an answer"
