"""One outside program: it ends in time, says little, and leaves nothing behind."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest
from standin import is_alive

from memoriter.background import cancellable
from memoriter.engines.qmd import process
from memoriter.engines.qmd.process import Finished
from memoriter.errors import Cancelled, EngineError


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


def test_what_it_says_and_how_it_ends() -> None:
    done = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert done == Finished(3, b"out\n", b"err\n")


def test_it_sees_only_the_environment_that_was_written_for_it() -> None:
    done = run("import os; print(sorted(os.environ))", env={"ONLY": "this"})
    assert done.stdout in (b"['ONLY']\n", b"['LC_CTYPE', 'ONLY']\n")


def test_it_has_no_input() -> None:
    assert run("import sys; print(len(sys.stdin.read()))").stdout == b"0\n"


GRANDCHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({file!r}, "w").write(str(child.pid))
{after}
"""


def test_too_long_and_the_whole_group_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    started = time.monotonic()
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    with pytest.raises(EngineError, match=r"did not finish within 3 s\."):
        run(code + GRANDCHILD.format(file=str(file), after="time.sleep(600)"), timeout_s=3)
    assert time.monotonic() - started < 10
    assert not is_alive(int(file.read_text()))


def test_a_child_that_outlives_its_parent_is_killed_too(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    assert run(GRANDCHILD.format(file=str(file), after="")).code == 0
    assert not is_alive(int(file.read_text()))


def test_too_much_is_stopped_at_once() -> None:
    flood = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    with pytest.raises(EngineError, match=r"printed more than 10,000 bytes\."):
        run(flood)


def test_too_much_by_a_program_that_ends_is_still_too_much() -> None:
    with pytest.raises(EngineError, match=r"printed more than 10,000 bytes\."):
        run("print('x' * 10_000)")


def test_a_flood_on_standard_error_is_read_and_thrown_away() -> None:
    done = run("import sys; sys.stderr.write('x' * 1_000_000); print('ok')")
    assert (done.stdout, len(done.stderr)) == (b"ok\n", process.STDERR_BYTES)


@pytest.mark.parametrize("argv", [["/nowhere/qmd"], ["/"], ["qmd\0"]])
def test_what_cannot_be_started_is_an_error_in_words(argv: list[str]) -> None:
    with pytest.raises(EngineError, match=r"cannot be started: .+\."):
        process.run(argv, env={}, cwd=Path("/"), timeout_s=1, max_bytes=10)


def test_a_caller_who_gives_up_ends_the_program() -> None:
    given_up = threading.Event()
    threading.Timer(0.2, given_up.set).start()
    started = time.monotonic()
    with cancellable(given_up), pytest.raises(Cancelled):
        run("import time; time.sleep(600)")
    assert time.monotonic() - started < 10


def test_a_caller_who_gave_up_before_starts_nothing(tmp_path: Path) -> None:
    given_up = threading.Event()
    given_up.set()
    with cancellable(given_up), pytest.raises(Cancelled):
        run(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert not (tmp_path / "ran").exists()
