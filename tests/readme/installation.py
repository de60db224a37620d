"""A `memoriter` that a person has installed, and the commands that the person runs."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from year_of_notes import Question

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Installation:
    """A `memoriter` to run, and a person's home."""

    bin: Path
    home: Path
    #: The folder of the notes in the home.
    folder: str = "notes"

    @property
    def environment(self) -> dict[str, str]:
        kept = ("PYTHONPATH", "LANG", "TMPDIR", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_CERT")
        inherited = {name: value for name, value in os.environ.items() if name in kept}
        return inherited | {
            "PATH": f"{self.bin}:{self.programs}:/usr/bin:/bin",
            "HOME": str(self.home),
            "COLUMNS": "120",
        }

    def run(self, command: str, folder: Path | None = None) -> str:
        """Run a command line in a shell, which must succeed. Return what it prints."""
        status, printed, errors = self.streams(command, folder)
        assert status == 0, f"{command}\n{printed}\n{errors}"
        return printed

    def says(self, command: str, folder: Path | None = None, status: int = 0) -> str:
        """Run a command line in a shell, which must end with this status. Return output and errors as one line."""
        found, printed, errors = self.streams(command, folder)
        assert found == status, f"{command}\n{printed}\n{errors}"
        return " ".join(f"{printed} {errors}".split())

    def streams(self, command: str, folder: Path | None = None) -> tuple[int, str, str]:
        """Run a command line in a shell. Return its status, its output and its errors."""
        finished = subprocess.run(
            ["bash", "-c", command],
            cwd=folder or self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert "Traceback" not in finished.stderr, finished.stderr
        return finished.returncode, finished.stdout, finished.stderr

    def search(self, question: str) -> dict[str, object]:
        answer: dict[str, object] = json.loads(
            self.run(f"memoriter search --json {quoted(question)}", self.notes)
        )
        return answer

    @property
    def notes(self) -> Path:
        return self.home / self.folder

    @property
    def programs(self) -> Path:
        """The folder of the person's other programs."""
        return self.home / "programs"

    def finds(self, question: Question) -> bool:
        """Return whether one of the hits for the question contains the line that answers it."""
        return self.rank(question) is not None

    def rank(self, question: Question) -> int | None:
        """Return the place of the first hit that contains the line that answers the question, counted from 1."""
        found = self.search(question.text)
        assert found["degraded"] is None, found["degraded"]
        lines = (self.notes / question.path).read_text("utf-8").splitlines()
        for place, hit in enumerate(found["results"], 1):  # type: ignore[arg-type, var-annotated]
            shown = lines[hit["startLine"] - 1 : hit["endLine"]]
            if hit["path"] == question.path and any(question.line in line for line in shown):
                return place
        return None


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def write_program(path: Path, *words: object) -> None:
    path.write_text(f'#!/bin/sh\nexec {" ".join(str(word) for word in words)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
