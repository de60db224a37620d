"""Where Wine cannot run, CI says that nothing was tested on Windows, and goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("form", "status"), [("--optional", 0), ("--short", 1)])
def test_without_wine_nothing_counts_as_tested(tmp_path: Path, form: str, status: int) -> None:
    command = [sys.executable, "-m", "lab.windows", form]
    environ = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, encoding="utf-8", check=False)
    said, reason = done.stderr.split(": ", 1)
    assert (done.returncode, done.stdout, said) == (status, "", "The tests did not run on Windows")
    assert reason.count("\n") == 1
