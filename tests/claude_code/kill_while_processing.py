"""Process a queue and get killed repeatedly: ``python kill_while_processing.py KILLS [naive]``.

The last run is not killed. One process loads everything and forks the workers. The naive worker, which is the control,
deletes a request before it handles it.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from memoriter.agent import Agent
from memoriter.config import load
from memoriter.extensions.hooks import capture
from memoriter.extensions.hooks.capture import process_queue, session_progress, session_queue
from memoriter.extensions.hooks.progress import SessionProgress
from memoriter.extensions.hooks.queue import SessionRequest, _read


def work(naive: bool, pipe: int) -> None:
    """Do what a hook does after its answer, and send a byte whenever a session is started."""
    process = capture._process

    def announce(
        agent: Agent, progress: SessionProgress, request: SessionRequest, until: float | None = None
    ) -> bool | None:
        os.write(pipe, b".")
        return process(agent, progress, request, until)

    capture._process = announce
    with Agent.open(load(), slot="memory-full") as agent:
        if not naive:
            process_queue(agent)
            return
        settings = agent.memory.settings
        for path in session_queue(settings).pending():
            request = _read(path)
            path.unlink()
            assert request is not None
            announce(agent, session_progress(settings), request)


def main(kills: int, naive: bool) -> None:
    chooser = random.Random(7)
    for run in range(kills + 1):
        started, pipe = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(started)
            work(naive, pipe)
            os._exit(0)
        os.close(pipe)
        if run < kills and os.read(started, 1):
            time.sleep(chooser.uniform(0.0, 0.03))  # a random moment for the kill
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(started)


if __name__ == "__main__":
    main(int(sys.argv[1]), "naive" in sys.argv)
