"""A person with a home and folders of notes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from command_line import RunForked

NOTES = {
    "Inbox.md": "# Inbox\n\nThe heron stands in the water.\n",
    "Projekte/Garten.md": "# 花园\n\n石榴树三月剪枝。\n",
    "Projekte/Haus/Dach.md": "# Roof\n\nThe slates come from Wales.\n",
    ".trash/Old.md": "The heron flew away.\n",
    ".obsidian/plugins/readme.md": "The heron is a plugin.\n",
    "node_modules/heron/README.md": "The heron is a package.\n",
}


class Person:
    """A person with a home and folders of notes, who runs `memoriter` in one of them."""

    def __init__(self, root: Path, run_forked: RunForked) -> None:
        self.root = root
        self._run_forked = run_forked
        self.user = root / "user"
        self.user.mkdir()

    @property
    def environ(self) -> dict[str, str]:
        outer = {name: value for name, value in os.environ.items() if not name.startswith("MEMORITER_")}
        return {
            **outer,
            "HOME": str(self.user),
            "USERPROFILE": str(self.user),
            "MEMORITER_EMBEDDING__PROVIDER": "none",
            "MEMORITER_RESIDENT__ENABLED": "false",
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }

    def folder(self, name: str, notes: Mapping[str, str] = NOTES) -> Path:
        for path, text in notes.items():
            file = self.root / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        (self.root / name).mkdir(exist_ok=True)
        return self.root / name

    def run(self, folder: Path, *words: object, fails: bool = False) -> str:
        output, errors = self.streams(folder, *words, fails=fails)
        return errors if fails else output

    def streams(self, folder: Path, *words: object, fails: bool = False) -> tuple[str, str]:
        """Run a command; return standard output and standard error."""
        done = self._run_forked([str(word) for word in words], self.environ, b"", folder)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        assert b"Traceback" not in done.stderr
        return done.stdout.decode(), done.stderr.decode()

    def answer(self, folder: Path, answer: str, *words: str, **variables: str) -> tuple[int, str]:
        """Run a command in a terminal and answer its question; return its status and what it prints."""
        pty = pytest.importorskip("pty", reason="not on Windows: terminals")
        environ = self.environ | variables
        ours, theirs = pty.openpty()
        os.write(ours, f"{answer}\n".encode())
        with ThreadPoolExecutor(1) as pool:
            printed = pool.submit(_read_terminal, ours)
            done = self._run_forked(list(words), environ, b"", folder, terminal=os.ttyname(theirs))
            os.close(theirs)
        os.close(ours)
        return done.returncode, printed.result().decode()

    def found(self, folder: Path, *words: object) -> list[str]:
        return [hit["path"] for hit in json.loads(self.run(folder, "search", "--json", *words))["results"]]

    def config(self) -> dict[str, object]:
        return yaml.safe_load((self.user / ".memoriter/config.yaml").read_text("utf-8"))


def _read_terminal(terminal: int) -> bytes:
    """Return what is printed until the terminal is closed."""
    printed = b""
    with suppress(OSError):
        while True:
            printed += os.read(terminal, 4096)
    return printed
