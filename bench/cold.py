"""CPU time of a command from start to end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.corpus import Writer
from bench.measure import child

MEMORITER = (sys.executable, "-m", "memoriter")


def commands(root: Path, *, repeats: int) -> dict[str, float]:
    """Return the CPU milliseconds of each command, and of an interpreter that does nothing."""
    workspace = root / "workspace"
    (workspace / "memory").mkdir(parents=True)
    writer = Writer(seed=7)
    for number in range(20):
        (workspace / "memory" / f"{number}.md").write_text(writer.note(5))
    env = {**os.environ, "HOME": str(root), "MEMORITER_EMBEDDING__PROVIDER": "none"}
    options = ("--workspace", str(workspace), "--home", str(root / "home"))
    subprocess.run([*MEMORITER, *options, "index"], env=env, check=True, stdout=subprocess.DEVNULL)
    question = writer.question()
    return {
        "python -c pass": child([sys.executable, "-c", "pass"], env=env, repeats=repeats),
        "memoriter --help": child([*MEMORITER, "--help"], env=env, repeats=repeats),
        "memoriter search (20 notes, keywords only)": child(
            [*MEMORITER, *options, "search", question], env=env, repeats=repeats
        ),
    }
