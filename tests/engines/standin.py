"""Control of the fake qmd program: set a fault, list the calls, and check for processes that still run."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from memoriter.files import platform

SOURCE = Path(__file__).with_name("fake_qmd.py")


@dataclass(frozen=True)
class StandIn:
    """An executable `qmd` in its own folder."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> StandIn:
        if sys.platform == "win32":
            pytest.skip("not on Windows: a script with a line for its interpreter stands for qmd")
        folder.mkdir(parents=True)
        standin = cls(folder)
        standin.repair()
        return standin

    @property
    def command(self) -> Path:
        return self.folder / "qmd"

    def repair(self) -> None:
        """Install the program without a fault."""
        self.fault("")
        self.command.write_text(f"#!{sys.executable} -SE\n{SOURCE.read_text('utf-8')}", "utf-8")
        self.command.chmod(0o755)

    def fault(self, name: str) -> None:
        """Set the fault of later calls: one of `fake_qmd`, optionally with " on search", or "vanish"."""
        (self.folder / "fault").write_text("" if name == "vanish" else name)
        if name == "vanish":
            self.command.unlink()

    def calls(self, command: str | None = None) -> list[list[str]]:
        """Return the arguments of all calls."""
        return [arguments for arguments, _ in self._log() if command in (None, arguments[0])]

    def environments(self) -> list[dict[str, str]]:
        return [environment for _, environment in self._log()]

    def _log(self) -> list[tuple[list[str], dict[str, str]]]:
        file = self.folder / "calls"
        return [tuple(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []

    def rewritten(self) -> int:
        """Return how often the program has rewritten its configuration in place."""
        file = self.folder / "rewritten"
        return len(file.read_text()) if file.exists() else 0

    def leftover_processes(self) -> list[int]:
        """Return the processes of a hanging call that are still alive."""
        file = self.folder / "pids"
        return [pid for pid in map(int, file.read_text().split()) if is_alive(pid)] if file.exists() else []

    def remove(self) -> None:
        shutil.rmtree(self.folder)


def is_alive(pid: int, wait_s: float = 60.0) -> bool:
    """Return whether a process still runs. A killed one may take a moment to end on a busy machine."""
    deadline = time.monotonic() + wait_s
    while _runs(pid):
        if time.monotonic() > deadline:
            return True
        time.sleep(0.01)
    return False


def _runs(pid: int) -> bool:
    """Return whether the process runs. A zombie does not."""
    if sys.platform == "win32":
        return platform.is_alive(pid)
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
