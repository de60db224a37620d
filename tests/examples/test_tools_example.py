"""The example of the tools runs, and shows what its page says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "tools.py"


def test_the_tools_find_and_read_the_backup_note(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "## Memory recall ['memory_search', 'memory_get']" in done.stdout
    assert "Source: memory/projects/backup.md#L" in done.stdout
    assert '"disabled": false' in done.stdout
