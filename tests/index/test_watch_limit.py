"""The limit of the system: a namespace with three watches for ten folders (P10)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WATCH = """
import json, sys, threading
from pathlib import Path
from memoriter.notes.watch import Watcher
looked = threading.Semaphore(0)
watcher = Watcher([Path(sys.argv[1])], lambda paths: looked.release(), poll_s=0.01)
watcher.start()
assert all(looked.acquire() for _ in range(3))
watcher.stop()
print(json.dumps([watcher.mode, watcher.note]))
"""


def few_watches(limit: int, folder: Path) -> subprocess.CompletedProcess[str]:
    limited = f'echo {limit} > /proc/sys/user/max_inotify_watches && exec "$@"'
    command = ["unshare", "-Ur", "sh", "-c", limited, "sh", sys.executable, "-c", WATCH, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.integration
@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare")
def test_at_the_limit_of_the_system_the_watcher_polls_and_says_so(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"folder {number}").mkdir()
    process = few_watches(3, tmp_path)
    if "Operation not permitted" in process.stderr or "Permission denied" in process.stderr:
        pytest.skip("this system does not allow new namespaces")
    mode, note = json.loads(process.stdout)
    assert mode == "polling", process.stderr
    assert "watch limit reached" in note
    assert "They are checked every 0.01 s instead" in note
