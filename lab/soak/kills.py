"""Kill processes that write through every interface, and check every acknowledged write afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from lab.soak import writers
from lab.soak.forking import Acknowledge, Writer, in_fork, kill_orphans, load_core, load_everything
from lab.soak.part import Part, Round, Task
from lab.soak.writers import INTERFACES, Home

#: Writers of the Python API that share a home.
WRITERS = 3
#: Kills of each interface in a round, on a home of its own that is checked afterwards.
KILLS = 4 * WRITERS
#: Largest number of acknowledgements before a kill.
MAX_ACKNOWLEDGEMENTS = {"python": 12, "cli": 6, "http": 24, "mcp": 20, "hooks": 4, "resident": 6}
#: Longest time from an acknowledgement to the kill: about the time of one write.
MAX_PAUSE_S = {"python": 0.006, "cli": 0.2, "http": 0.02, "mcp": 0.02, "hooks": 0.3, "resident": 0.3}

Write = Callable[[Home, int, Acknowledge], None]


def run(task: Task) -> Round:
    """Kill writers of each interface equally often, and check their homes."""
    done = Round()
    for interface, write in INTERFACES.items():
        home = Home(task.folder / interface).create()
        kill(done, task, home, write, interface, WRITERS if task.short else KILLS)
    return done


def kill(done: Round, task: Task, home: Home, write: Write, interface: str, kills: int) -> None:
    """Kill writers repeatedly, then check that every acknowledged write is there once."""
    load_core() if interface == "python" else load_everything()
    acknowledged: list[str] = []
    together = WRITERS if interface == "python" else 1
    for _ in range(-(-kills // together)):
        seeds = [task.random.randrange(1 << 31) for _ in range(together)]
        acknowledged += _kill_once(task, [Writer(partial(write, home, seed)) for seed in seeds], interface)
        done.count("kills", together)
        done.count(f"kills {interface}", together)
    if interface in ("hooks", "resident"):
        in_fork(writers.finish_sessions, home, timeout_s=1800)
        kill_orphans()
    done.count("acknowledged", len(acknowledged))
    done.count(f"acknowledged {interface}", len(acknowledged))
    for problem in in_fork(writers.problems, home, acknowledged, timeout_s=1800):
        done.fail(f"{interface}: {problem}")


def _kill_once(task: Task, running: Sequence[Writer], interface: str) -> list[str]:
    """Let the writers write for a random number of acknowledgements and a moment, and kill them."""
    acknowledged: list[str] = []
    for writer in running:
        writer.wait_for(task.random.randrange(1, MAX_ACKNOWLEDGEMENTS.get(interface, 20) + 1))
        time.sleep(task.random.random() * MAX_PAUSE_S.get(interface, 0.006))
        acknowledged += writer.kill()
    kill_orphans()
    return acknowledged


def control(task: Task) -> Round:
    """Kill a writer that acknowledges early and one that rewrites its file in place."""
    done = Round()
    for name, write in (("early", writers.early), ("plain", writers.plain)):
        kill(done, task, Home(task.folder / name).create(), write, name, 40)
        if not any(failure.startswith(name) for failure in done.failures):
            return Round(done.counts)  # this control did not fail, so the whole control does not count
    return done


PART = Part(
    "kills",
    "SIGKILL of writers through Python, CLI, HTTP, MCP and hooks",
    {"kills": 10_000, "acknowledged": 100_000},
    run,
    control,
    "a writer that acknowledges early, and one that rewrites its file in place",
)
