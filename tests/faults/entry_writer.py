"""Kill writers of entries: ``python entry_writer.py FOLDER KILLS SEED [naive]`` prints what was acknowledged.

One process loads everything and forks four writers at a time, so that a kill costs no start of Python. A writer sends
a line for each text once it is told that it is kept; the naive one, which is the control, sends it before.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sys
import time
from pathlib import Path

from memoriter.entries import Draft
from memoriter.entries.collection import open_entries

WRITERS = 4


def text(chooser: random.Random) -> str:
    """Return a statement unlike any other."""
    words = ["".join(chooser.choices("bcdfghjklmnpqrstvwxz", k=9)) for _ in range(4)]
    return f"{words[0]} {words[1]} {words[2]} {words[3]}"


def write(folder: Path, pipe: int, seed: int, naive: bool) -> None:
    """Add one statement after another until killed."""
    chooser = random.Random(seed)
    entries = open_entries(folder)
    while True:
        said = text(chooser)
        if naive:
            os.write(pipe, f"{said}\n".encode())
        entries.add_draft(Draft(said, "fact"))
        if not naive:
            os.write(pipe, f"{said}\n".encode())


def main(folder: Path, kills: int, seed: int, naive: bool) -> None:
    """Fork, wait for some acknowledgements and kill, repeatedly."""
    chooser = random.Random(seed)
    for round_ in range(-(-kills // WRITERS)):
        read, pipe = os.pipe()
        children = []
        for which in range(WRITERS):
            child = os.fork()
            if child == 0:
                os.close(read)
                write(folder, pipe, seed * 1_000_000 + round_ * WRITERS + which, naive)
            children.append(child)
        os.close(pipe)
        received = _until_killed(read, children, chooser)
        sys.stdout.write(received.decode())
    sys.stdout.flush()


def _until_killed(read: int, children: list[int], chooser: random.Random) -> bytes:
    """Kill each child after a few more acknowledgements and a moment; return everything acknowledged."""
    received = b""
    for child in children:
        for _ in range(chooser.randrange(1, 6)):
            if select.select([read], [], [], 20)[0]:
                received += os.read(read, 65_536)
        end = time.perf_counter() + chooser.random() * 0.01
        while time.perf_counter() < end:
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    while more := os.read(read, 65_536):
        received += more
    os.close(read)
    return received


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), "naive" in sys.argv)
