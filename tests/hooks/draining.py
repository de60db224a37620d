"""Drains a spool and is killed at it: ``python draining.py KILLS [naive]``; the last drain is left alone.

One process loads everything and forks the drains. The naive one, which is the control, deletes a request before it has
done what it asks.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from recollect.config import load
from recollect.doors.hooks import hearing
from recollect.doors.hooks.hearing import drain, marks_of, spool_of
from recollect.listening.spool import _read
from recollect.plugins import Host


def drained(naive: bool) -> None:
    """What a hook does after its answer."""
    with Host.open(load(), slot="memory-full") as host:
        if not naive:
            drain(host)
            return
        settings = host.memory.settings
        for path in spool_of(settings).waiting():
            request = _read(path)
            path.unlink()
            assert request is not None
            hearing._hear(host, marks_of(settings), request)


def main(kills: int, naive: bool) -> None:
    chooser = random.Random(7)
    for killed in range(kills + 1):
        child = os.fork()
        if child == 0:
            drained(naive)
            os._exit(0)
        if killed < kills:
            time.sleep(chooser.uniform(0.03, 0.12))  # the moment of the kill; nothing is waited for
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), "naive" in sys.argv)
