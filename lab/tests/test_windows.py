"""Where Wine cannot run, CI says that nothing was tested on Windows, and goes on. A run can be interrupted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab import windows

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("form", "status"), [("--optional", 0), ("--short", 1)])
def test_without_wine_nothing_counts_as_tested(tmp_path: Path, form: str, status: int) -> None:
    command = [sys.executable, "-m", "lab.windows", form]
    environ = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, encoding="utf-8", check=False)
    said, reason = done.stderr.split(": ", 1)
    assert (done.returncode, done.stdout, said) == (status, "", "The tests did not run on Windows")
    assert reason.count("\n") == 1


def test_a_resumed_run_leaves_out_what_has_passed_on_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run is interrupted in its third folder, and the second has failed."""
    for number, name in enumerate(("one", "two", "three")):
        (tmp_path / "tests" / name).mkdir(parents=True)
        (tmp_path / "tests" / name / f"test_{number}.py").touch()
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(tmp_path))
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(windows, "ROOT", tmp_path)
    asked, interrupted = list[str](), {"tests/two"}

    def run(arguments: list[str], limit_s: float) -> tuple[int, str]:
        asked.extend(arguments)
        if interrupted.intersection(arguments):
            raise KeyboardInterrupt
        return 0, "7 passed, 2 skipped in 3.00s"

    def run_all(*, resume: bool) -> int:
        asked.clear()
        return windows.run_all(resume=resume, passed=tmp_path / "passed.json", run=run)  # type: ignore[arg-type]

    with pytest.raises(KeyboardInterrupt):
        run_all(resume=False)
    interrupted.clear()
    assert (run_all(resume=True), asked) == (0, ["tests/two"])
    assert capsys.readouterr().out.split("\n")[-4:-1] == [
        f"{name:14}{7:>8}{0:>8}{0:>8}{2:>8}{0:>8}" for name in ("one", "three", "two")
    ]
    (tmp_path / "tests/two/test_1.py").write_text("changed")
    assert (run_all(resume=True), asked) == (0, ["tests/one", "tests/three", "tests/two"])


def test_an_environment_with_other_entry_points_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "ROOT", tmp_path)
    for name in ("READY", "TILES"):
        monkeypatch.setattr(windows, name, tmp_path / name)
        (tmp_path / name).write_text("[project]\n", encoding="utf-8")
    found = []
    for declared in ("[project]\n", "[project]\nname = 'other'\n"):
        (tmp_path / "pyproject.toml").write_text(declared, encoding="utf-8")
        found.append(windows.is_built())
    assert found == [True, False]
