"""Saved notes survive a power failure (P2): ext4 is shut down, and only synced data remains.

Only saves that were acknowledged before the shutdown count. A writer that does not sync is the control.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CUTS = 200 if os.environ.get("MEMORITER_SOAK") else 12
SHUTDOWN, WITHOUT_FLUSH = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH

WRITER = """
import os, sys
from pathlib import Path
from memoriter.notes.notebook import Notebook
root, kind, first = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
notebook = Notebook(root)
for number in range(first, first + 1000):
    text = f"fact {number} end"
    if kind == "durable":
        notebook.save(text, category="topic" if number % 3 == 0 else None, title=f"item {number % 4}")
    else:
        path = root / "memory/log.md"
        path.parent.mkdir(exist_ok=True)
        beside = path.with_suffix(".tmp")
        beside.write_text((path.read_text() if path.exists() else "") + text + "\\n")
        beside.replace(path)
    print(number, flush=True)
"""

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("mkfs.ext4"), reason="needs root, a loop device and mkfs.ext4"
)


def run(*command: str | Path) -> bool:
    return subprocess.run([str(part) for part in command], capture_output=True, check=False).returncode == 0


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[None]:
    if not run("mount", "-o", "loop", image, place):
        pytest.skip("this system mounts no loop devices")
    try:
        yield
    finally:
        assert run("umount", place) or run("umount", "-l", place)


@pytest.fixture
def disk(tmp_path: Path) -> tuple[Path, Path]:
    image, place = tmp_path / "disk.img", tmp_path / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(24 * 1024 * 1024)
    assert run("mkfs.ext4", "-q", "-F", image)
    return image, place


def cut_power(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
    finally:
        os.close(descriptor)


def write_until_cut(place: Path, kind: str, first: int, acks: int) -> list[int]:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(place), kind, str(first)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert writer.stdout is not None
    seen = [int(writer.stdout.readline()) for _ in range(acks)]
    cut_power(place)
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    return seen


def lost(disk: tuple[Path, Path], kind: str, cuts: int) -> tuple[int, int]:
    image, place = disk
    acked: list[int] = []
    for number in range(cuts):
        with mounted(image, place):
            acked += write_until_cut(place, kind, number * 1000, acks=1 + number % 5)
    with mounted(image, place):
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in place.rglob("*.md")]
        lines = [line for text in texts for line in text.splitlines()]
    return sum(f"fact {number} end" not in lines for number in acked), len(acked)


@pytest.mark.integration
@pytest.mark.timeout(1200)
@needs_root
def test_every_acknowledged_save_survives_a_power_cut(disk: tuple[Path, Path]) -> None:
    gone, acked = lost(disk, "durable", CUTS)
    assert (gone, acked >= 2 * CUTS) == (0, True)


@pytest.mark.integration
@pytest.mark.timeout(600)
@needs_root
def test_control_a_rename_without_sync_loses_saves(disk: tuple[Path, Path]) -> None:
    gone, _ = lost(disk, "naive", 3)
    assert gone > 0
