"""Save notes from four processes and kill the processes repeatedly.

The program forks, because starting an interpreter for each kill would be slow. A save is acknowledged by its number on
a pipe after the call has returned. Usage: crashing.py WORKSPACE durable|naive KILLS SEED. Prints the acknowledged
numbers as JSON.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from memoriter.notes.notebook import Notebook

WRITERS = 4
Save = Callable[[int], object]


def fact(number: int) -> str:
    return f"fact {number}: " + "the heron of the northern marsh 北方沼泽的苍鹭 " * 40 + f"end {number}"


def durable(root: Path) -> Save:
    notebook = Notebook(root)

    def save(number: int) -> object:
        # Most writers share the log of the day. Some create new notes, so that new files and folders are tested too.
        category = f"topic {number % 3}" if number % 5 == 0 else None
        return notebook.save(fact(number), title=f"item {number % 7}", category=category)

    return save


def naive(root: Path) -> Save:
    """The control: a plain read and write."""
    path = root / "memory/log.md"
    path.parent.mkdir(parents=True, exist_ok=True)

    def save(number: int) -> object:
        old = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        return path.write_text(old + fact(number) + "\n", encoding="utf-8")

    return save


def writer(save: Save, numbers: range, acks: int) -> None:
    for number in numbers:
        save(number)
        os.write(acks, f"{number}\n".encode())


def start(save: Save, numbers: range) -> tuple[int, int]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            writer(save, numbers, writing)
        finally:
            os._exit(3)  # a writer that was not killed has failed
    os.close(writing)
    return child, reading


def finish(child: int, reading: int) -> list[int]:
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"a writer ended without a kill ({status})"
    with os.fdopen(reading, encoding="ascii") as pipe:
        return [int(line) for line in pipe if line.endswith("\n")]


def main(root: Path, kind: str, kills: int, seed: int) -> None:
    chooser = random.Random(seed)
    save = {"durable": durable, "naive": naive}[kind](root)
    acked: list[int] = []
    for first in range(0, kills, WRITERS):
        started = [start(save, range((first + n) * 1000, (first + n + 1) * 1000)) for n in range(WRITERS)]
        select.select([reading for _, reading in started], [], [], 5.0)  # a writer has saved: all are running
        for child, reading in chooser.sample(started, WRITERS):
            time.sleep(chooser.random() * 0.02)
            acked += finish(child, reading)
    sys.stdout.write(json.dumps(acked))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
