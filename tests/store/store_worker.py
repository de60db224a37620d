"""The program that tests of several processes run: ``python store_worker.py COMMAND FOLDER [NUMBER]``.

A document's text carries the round that wrote it, in every chunk, so a reader can tell a torn one.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

from store_samples import document

from memoriter.store import Index, open_index

DOCUMENTS = 4
CHUNKS = 6


def say(*words: object) -> None:
    """Print a line for the test that started this process."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def write_round(index: Index, number: int) -> None:
    """Replace every document in one transaction."""
    with index.transaction():
        for which in range(DOCUMENTS):
            texts = [f"round{number} line{line} words enough to fill a little" for line in range(CHUNKS)]
            index.replace(*document(f"{which}.md", *texts))
        index.set_meta(round=str(number))


def write_torn(index: Index, number: int) -> None:
    """Replace every document in many transactions, as a control."""
    for which in range(DOCUMENTS):
        index.remove([f"{which}.md"])
        texts = [f"round{number} line{line} words enough to fill a little" for line in range(CHUNKS)]
        index.replace(*document(f"{which}.md", *texts))
    index.set_meta(round=str(number))


def torn(index: Index) -> str | None:
    """Describe an inconsistent state, or return None if this process sees one complete round."""
    with index.snapshot():
        number = index.meta("round")
        matches = index.keyword([f"round{number}"], limit=1000)
        stored = index.chunks([match.rowid for match in matches])
        counts = index.counts("")
    if number is None:
        return None if counts.chunks == 0 else "rows without a round"
    expected = (DOCUMENTS, DOCUMENTS * CHUNKS, DOCUMENTS * CHUNKS, DOCUMENTS * CHUNKS)
    found = (counts.files, counts.chunks, len(matches), len(stored))
    return None if found == expected else f"round {number}: {found} instead of {expected}"


def write(folder: Path, rounds: int) -> None:
    """Write rounds, and acknowledge each on standard output."""
    with open_index(folder) as index:
        for number in range(rounds):
            write_round(index, number)
            say(number)


def read(folder: Path, rounds: int) -> None:
    """Read the index until it has the last round, and print inconsistent states."""
    looks = 0
    with open_index(folder) as index:
        while index.meta("round") != str(rounds - 1):
            looks += 1
            if wrong := torn(index):
                say("torn:", wrong)
    say("looks:", looks)


def add(folder: Path, number: int) -> None:
    """Open the index at the same time as other processes, and add documents."""
    with open_index(folder) as index:
        for which in range(20):
            index.replace(*document(f"{number}-{which}.md", f"from process{number}"))
    say("done")


def create(folder: Path, number: int) -> None:
    """Create many indexes at the same time as other processes, and print what is reported as damage."""
    for which in range(20):
        with open_index(folder / str(which)) as index:
            for _ in range(3):
                index.replace(*document(f"{number}.md", f"from process{number}"))
                problems = [index.healed, *index.check(deep=True)]
                for words in filter(None, problems):
                    say("wrong:", words)


def killed(folder: Path, rounds: int, *, whole: bool) -> None:
    """Kill a writer repeatedly, and print what it left.

    The writer is a fork, so that a round costs no start of Python; this process has one thread and, while it forks,
    no open database.
    """
    chance = random.Random(rounds)
    acknowledged = 0
    for _ in range(rounds):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _write_until_killed(folder, writing, acknowledged + 1, whole=whole)
        os.close(writing)
        with os.fdopen(reading) as acks:
            line = "0"
            for _ in range(chance.randrange(1, 4)):
                line = acks.readline()
            _spin(chance.randrange(60_000))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            acknowledged = max(int(at) for at in (line, *acks) if at.strip().isdigit())
        _inspect(folder, acknowledged)
    say("acknowledged:", acknowledged)


def _write_until_killed(folder: Path, pipe: int, number: int, *, whole: bool) -> None:
    index = open_index(folder)
    while True:
        (write_round if whole else write_torn)(index, number)
        os.write(pipe, b"%d\n" % number)
        number += 1


def _spin(steps: int) -> None:
    """Let the writer continue for a while that does not depend on a clock."""
    for _ in range(steps):
        pass


def _inspect(folder: Path, acknowledged: int) -> None:
    with open_index(folder) as index:
        wrong = [index.healed, *index.check(deep=True), torn(index)]
        if int(index.meta("round") or 0) < acknowledged:
            wrong.append(f"lost round {acknowledged}")
    for words in filter(None, wrong):
        say("wrong:", words)


if __name__ == "__main__":
    command, folder, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if command in {"kill", "kill-torn"}:
        killed(folder, count, whole=command == "kill")
    else:
        {"write": write, "read": read, "add": add, "create": create}[command](folder, count)
