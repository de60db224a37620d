"""Cut the power: shut down a mounted ext4 so that only synced data remains, and check what was acknowledged before.

The shutdown discards the page cache and the journal that is not on disk, as a power failure does. It needs root and a
loop device.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from lab.soak import writers
from lab.soak.forking import Acknowledge, Writer, in_fork, kill_orphans, load_everything
from lab.soak.kills import Write
from lab.soak.part import Part, Round, Task
from lab.soak.writers import Home

SHUTDOWN, WITHOUT_FLUSH = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH
IMAGE_BYTES = 96 << 20
#: Cuts on one disk before it is checked, and the largest number of acknowledgements before a cut.
CUTS, MAX_ACKNOWLEDGEMENTS = 10, 12
COMMANDS = ("mkfs.ext4", "mount", "umount", "losetup")


def unavailable() -> str | None:
    """Return why this system cannot cut the power of a disk."""
    if os.geteuid() != 0:
        return "Power cuts need root, because they mount a file system."
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    if missing:
        return f"Power cuts need the command {missing[0]}."
    free = subprocess.run(["losetup", "-f"], capture_output=True, check=False)
    return None if free.returncode == 0 else "Power cuts need a free loop device."


class Disk:
    """An ext4 file system in a file."""

    def __init__(self, folder: Path) -> None:
        self.image, self.place = folder / "disk.img", folder / "disk"
        self.place.mkdir(parents=True)
        with self.image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        _run("mkfs.ext4", "-q", "-F", self.image)

    @contextmanager
    def mounted(self) -> Iterator[Home]:
        """Mount the disk until the end of the block. The kernel recovers its journal first."""
        _run("mount", "-o", "loop", self.image, self.place)
        try:
            yield Home(self.place)
        finally:
            _run("umount", self.place)

    def cut_power(self) -> None:
        """Discard everything that is not on disk, and fail every later call."""
        descriptor = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
        finally:
            os.close(descriptor)


def _run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], capture_output=True, check=True)


def run(task: Task) -> Round:
    """Cut the power of one disk some times while a program writes to it."""
    return _cut(task, writers.python, 2 if task.short else CUTS)


def _cut(task: Task, write: Write, cuts: int) -> Round:
    load_everything()
    disk, done, acknowledged = Disk(task.folder), Round(), list[str]()
    for _ in range(cuts):
        with disk.mounted() as home:
            home.create()
            writer = Writer(partial(_write, write, home, task.random.randrange(1 << 31)))
            writer.wait_for(task.random.randrange(1, MAX_ACKNOWLEDGEMENTS + 1))
            # An acknowledgement that arrives while the cut is under way may follow it.
            certain = writer.received()
            disk.cut_power()
            writer.kill()
            kill_orphans()
        done.count("cuts")
        acknowledged += certain
    done.count("acknowledged", len(acknowledged))
    with disk.mounted() as home:
        home.create()
        for problem in in_fork(writers.problems, home, acknowledged):
            done.fail(problem)
    return done


def _write(write: Write, home: Home, seed: int, acknowledge: Acknowledge) -> None:
    """Write until the disk fails."""
    try:
        write(home, seed, acknowledge)
    except Exception:  # noqa: BLE001  any error is right on a disk without power
        os._exit(0)


def unsynced(home: Home, seed: int, acknowledge: Acknowledge) -> None:
    """Write notes by rename without sync: a control."""
    chooser = random.Random(seed)
    path = home.workspace / "memory/log.md"
    while True:
        note = writers.words(chooser)
        beside = path.with_suffix(".tmp")
        beside.write_text((path.read_text() if path.exists() else "") + note + "\n")
        beside.replace(path)
        acknowledge(f"note\t{note}")


def control(task: Task) -> Round:
    """Cut the power of a program that does not sync."""
    return _cut(task, unsynced, 3)


PART = Part(
    "power",
    "Power cuts on ext4 (loop mount, shutdown ioctl)",
    {"cuts": 300},
    run,
    control,
    "notes replaced by rename without sync",
    unavailable,
)
