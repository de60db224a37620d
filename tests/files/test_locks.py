"""One lock for files and folders, held by one thread or process at a time."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memoriter.errors import LockTimeout
from memoriter.files.locks import file_lock


@pytest.fixture(params=["file", "folder"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A lock file that does not exist yet, or a folder."""
    return tmp_path if request.param == "folder" else tmp_path / "state" / "sessions.lock"


def test_a_held_lock_times_out_and_names_its_path(path: Path) -> None:
    with file_lock(path), pytest.raises(LockTimeout, match=re.escape(str(path))), file_lock(path, 0.0):
        pass


def test_a_released_lock_can_be_taken_again(path: Path) -> None:
    for _ in range(2):
        with file_lock(path, 0.0):
            pass


def test_a_lock_is_released_when_the_block_raises(path: Path) -> None:
    with pytest.raises(ValueError, match="inside"), file_lock(path):
        raise ValueError("inside")
    with file_lock(path, 0.0):
        pass


def test_a_waiting_thread_gets_the_lock_when_it_is_released(path: Path) -> None:
    order = list[str]()
    waiting = threading.Event()

    def wait() -> None:
        with file_lock(path, 30.0, give_up=waiting.set):
            order.append("second")

    with file_lock(path):
        thread = threading.Thread(target=wait)
        thread.start()
        assert waiting.wait(120)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_caller_may_give_up_before_the_timeout(path: Path) -> None:
    with file_lock(path), pytest.raises(LockTimeout), file_lock(path, 600.0, give_up=lambda: True):
        pass


def test_an_exception_while_waiting_is_passed_on(path: Path) -> None:
    def cancel() -> None:
        raise KeyboardInterrupt

    with file_lock(path), pytest.raises(KeyboardInterrupt), file_lock(path, 600.0, give_up=cancel):
        pass


def test_a_folder_lock_leaves_no_file_behind(tmp_path: Path) -> None:
    with file_lock(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_killed_process_is_free(path: Path) -> None:
    holder = (
        "import sys, pathlib\n"
        "from memoriter.files.locks import file_lock\n"
        "with file_lock(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().rstrip() == b"held"
        with pytest.raises(LockTimeout), file_lock(path, 0.0):
            pass
        process.kill()
        process.wait()
    with file_lock(path, 10.0):
        pass
