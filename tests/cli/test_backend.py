"""`status` and `doctor` show the active engine and find wrong settings."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.posix("a script with a line for its interpreter stands for qmd")
STANDIN = Path(__file__).parents[1] / "engines" / "fake_qmd.py"
Run = Callable[..., subprocess.CompletedProcess[str]]
RunForked = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def qmd(tmp_path: Path) -> Path:
    """A stand-in for qmd."""
    file = tmp_path / "bin" / "qmd"
    file.parent.mkdir()
    file.write_text(f"#!{sys.executable} -SE\n{STANDIN.read_text('utf-8')}", "utf-8")
    file.chmod(0o755)
    return file


@pytest.fixture
def memoriter(workspace: Path, tmp_path: Path, note, run_forked: RunForked) -> Run:
    note("MEMORY.md", "The heron nests in the marsh.\n")

    def run(*arguments: str, **variables: object) -> subprocess.CompletedProcess[str]:
        places = {"MEMORITER_WORKSPACE": workspace, "MEMORITER_HOME": tmp_path / "state"}
        fixed = {"PATH": "/usr/bin:/bin", "MEMORITER_EMBEDDING__PROVIDER": "none"}
        environment = {name: str(value) for name, value in {**fixed, **places, **variables}.items()}
        done = run_forked(list(arguments), environment)
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    return {
        finding["name"]: (finding["state"], finding["text"])
        for finding in json.loads(done.stdout)["findings"]
    }


def settings(command: Path | str) -> dict[str, object]:
    return {
        "MEMORITER_MEMORY__BACKEND": "qmd",
        "MEMORITER_MEMORY__QMD__COMMAND": command,
        "MEMORITER_MEMORY__QMD__LIMITS__TIMEOUT_MS": 30_000,
    }


def test_qmd_answers_on_the_command_line(memoriter: Run, qmd: Path) -> None:
    found = json.loads(memoriter("search", "heron", "--json", **settings(qmd)).stdout)
    assert (found["provider"], found["fallback"], found["degraded"]) == ("qmd", False, None)
    assert found["results"][0]["citation"] == "MEMORY.md#L1-L1"
    status = json.loads(memoriter("status", "--json", **settings(qmd)).stdout)
    assert (status["backend"], status["details"]["qmd"]) == ("qmd", "qmd 2.8.3 (stand-in)")
    doctor = memoriter("doctor", "--json", **settings(qmd))
    assert findings(doctor)["backend"] == ("ok", "qmd 2.8.3 (stand-in)")
    assert doctor.returncode == 0


def test_doctor_and_status_report_a_missing_qmd_and_search_still_works(memoriter: Run) -> None:
    missing = settings("/missing/qmd")
    doctor = memoriter("doctor", "--json", **missing)
    state, text = findings(doctor)["backend"]
    assert (doctor.returncode, state) == (1, "wrong")
    assert text == "/missing/qmd does not exist. Set memory.qmd.command to the path of qmd."
    status = json.loads(memoriter("status", "--json", **missing).stdout)
    assert (status["backend"], status["fallback"]) == ("builtin", True)
    assert "/missing/qmd does not exist" in status["degraded"]
    search = json.loads(memoriter("search", "heron", "--json", **missing).stdout)
    assert (search["fallback"], search["results"][0]["path"]) == (True, "MEMORY.md")


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("MEMORY__QMD__UPDATE__INTERVAL", "soon", "memory.qmd.update.interval = 'soon'"),
        ("MEMORY__SCOPE__RULES", "[allow everybody]", "memory.scope.rules"),
        ("MEMORY__QMD__TIMEOUT", "5", "Unknown variable MEMORITER_MEMORY__QMD__TIMEOUT"),
    ],
)
def test_a_wrong_setting_is_one_sentence_that_names_the_key(
    memoriter: Run, variable: str, value: str, sentence: str
) -> None:
    doctor = memoriter("doctor", "--json", **{f"MEMORITER_{variable}": value})
    state, text = findings(doctor)["settings"]
    assert (doctor.returncode, state) == (1, "wrong")
    assert sentence in text


def test_a_disabled_memory_is_reported(memoriter: Run) -> None:
    off = {"MEMORITER_PLUGINS__SLOTS__MEMORY": "none"}
    search = memoriter("search", "heron", **off)
    assert (search.returncode, search.stderr) == (
        1,
        "memoriter: Memory is switched off: `plugins.slots.memory` is `none`.\n",
    )
    assert findings(memoriter("doctor", "--json", **off))["memory"][0] == "note"
