"""External programs: limits on time and output, and no processes left running."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest
from standin import is_alive

from memoriter.background import cancellable
from memoriter.errors import Cancelled, EngineError
from memoriter.extensions.qmd import process
from memoriter.extensions.qmd.process import Finished


def run(
    code: str, *, timeout_s: float = 20, max_bytes: int = 10_000, env: dict[str, str] | None = None
) -> Finished:
    return process.run(
        [sys.executable, "-SE", "-c", code],
        env=env or {},
        cwd=Path("/"),
        timeout_s=timeout_s,
        max_bytes=max_bytes,
    )


def test_output_and_exit_status_are_returned() -> None:
    finished = run("import os, sys; os.write(1, b'out\\n'); os.write(2, b'err\\n'); sys.exit(3)")
    assert finished == Finished(3, b"out\n", b"err\n")


def test_the_program_gets_only_the_given_environment() -> None:
    finished = run("import os; print(*os.environ)", env={"ONLY": "this"})
    names = set(finished.stdout.decode().split())
    added = {"LC_CTYPE"} | {name for name in names if name.startswith(("SYSTEM", "WINE"))}  # by the system
    assert names - added == {"ONLY"}


def test_the_program_has_no_input() -> None:
    assert run("import sys; print(len(sys.stdin.read()))").stdout.strip() == b"0"


GRANDCHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({file!r}, "w").write(str(child.pid))
{after}
"""


@pytest.mark.posix("sh")
@pytest.mark.requirement("C12")
def test_after_the_timeout_the_whole_group_is_killed(tmp_path: Path) -> None:
    file, path = tmp_path / "pid", {"PATH": os.environ["PATH"]}
    code = f"trap '' TERM; sleep 600 & echo $! > '{file}'; wait"  # a shell starts at once, also on a busy machine
    with pytest.raises(EngineError, match=r"did not finish within 2 s\."):
        process.run(["sh", "-c", code], env=path, cwd=tmp_path, timeout_s=2, max_bytes=10_000)
    assert not is_alive(int(file.read_text()))


def test_a_child_that_outlives_its_parent_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    assert run(GRANDCHILD.format(file=str(file), after="")).code == 0
    assert not is_alive(int(file.read_text()))


def test_a_program_that_prints_too_much_is_stopped() -> None:
    flood = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    with pytest.raises(EngineError, match=r"printed more than 10,000 bytes\."):
        run(flood)


def test_too_much_output_of_a_finished_program_is_an_error() -> None:
    with pytest.raises(EngineError, match=r"printed more than 10,000 bytes\."):
        run("print('x' * 10_000)")


def test_excess_standard_error_is_dropped() -> None:
    finished = run("import sys; sys.stderr.write('x' * 1_000_000); print('ok')")
    assert (finished.stdout.strip(), len(finished.stderr)) == (b"ok", process.STDERR_BYTES)


@pytest.mark.parametrize("argv", [["/nowhere/qmd"], ["/"], ["qmd\0"]])
def test_a_program_that_cannot_start_is_an_engine_error(argv: list[str]) -> None:
    with pytest.raises(EngineError, match=r"Cannot start .+: .+\."):
        process.run(argv, env={}, cwd=Path("/"), timeout_s=1, max_bytes=10)


def test_cancelling_ends_the_program() -> None:
    cancelled = threading.Event()
    threading.Timer(0.2, cancelled.set).start()
    with cancellable(cancelled), pytest.raises(Cancelled):
        run("import time; time.sleep(600)")


def test_a_cancelled_caller_starts_no_program(tmp_path: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with cancellable(cancelled), pytest.raises(Cancelled):
        run(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert not (tmp_path / "ran").exists()
