"""Drains a spool and is killed at it: ``python kill_while_processing.py KILLS [naive]``; the last drain is left alone.

One process loads everything and forks the drains. The naive one, which is the control, deletes a request before it has
done what it asks.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from memoriter.agent import Agent
from memoriter.config import load
from memoriter.integrations.claude_code import capture
from memoriter.integrations.claude_code.capture import process_queue, session_progress, session_queue
from memoriter.sessions.progress import SessionProgress
from memoriter.sessions.queue import SessionRequest, _read


def drained(naive: bool, pipe: int) -> None:
    """What a hook does after its answer; a byte is sent whenever it begins to hear a session."""
    hear = capture._process

    def told(
        host: Agent, marks: SessionProgress, request: SessionRequest, until: float | None = None
    ) -> bool | None:
        os.write(pipe, b".")
        return hear(host, marks, request, until)

    capture._process = told
    with Agent.open(load(), slot="memory-full") as host:
        if not naive:
            process_queue(host)
            return
        settings = host.memory.settings
        for path in session_queue(settings).waiting():
            request = _read(path)
            path.unlink()
            assert request is not None
            told(host, session_progress(settings), request)


def main(kills: int, naive: bool) -> None:
    chooser = random.Random(7)
    for killed in range(kills + 1):
        begun, pipe = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(begun)
            drained(naive, pipe)
            os._exit(0)
        os.close(pipe)
        if killed < kills and os.read(begun, 1):
            time.sleep(chooser.uniform(0.0, 0.03))  # the moment of the kill; nothing is waited for
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(begun)


if __name__ == "__main__":
    main(int(sys.argv[1]), "naive" in sys.argv)
