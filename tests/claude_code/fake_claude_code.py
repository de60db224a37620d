"""Claude Code as a memory sees it: it writes transcripts, and calls the real process at its moments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memoriter import Memory

SESSION = "5b0c7a1e-0000-4000-8000-000000000001"


@dataclass(frozen=True)
class Answered:
    """What a host got."""

    answer: dict[str, Any]
    stderr: str
    seconds: float

    @property
    def told(self) -> str:
        """What is put into the prompt."""
        return str(self.answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


@dataclass(frozen=True)
class Ran:
    """What a process left."""

    code: int
    output: bytes
    error: bytes


Run = Callable[[list[str], bytes, dict[str, str], Path], Ran]


def started(arguments: list[str], data: bytes, environment: dict[str, str], cwd: Path) -> Ran:
    """Run the command line as a process of its own."""
    command = [sys.executable, "-m", "memoriter", *arguments]
    done = subprocess.run(command, input=data, capture_output=True, env=environment, cwd=cwd, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def is_form(event: str, output: bytes) -> bool:
    """Whether an output has the form that Claude Code wants: one object; of PreCompact it would take any for words."""
    if event == "PreCompact":
        return output == b""
    return output.count(b"\n") == 1 and isinstance(json.loads(output), dict)


class ClaudeCode:
    """What Claude Code does, as far as a memory sees it."""

    def __init__(self, folder: Path, run: Run = started) -> None:
        self.run = run
        self.home = folder / "state"
        self.workspace = folder / "workspace"
        self.project = folder / "project"
        self.transcripts = folder / "transcripts"
        for made in (self.project / ".git", self.transcripts, self.workspace / "memory"):
            made.mkdir(parents=True, exist_ok=True)
        self.environment = {
            **os.environ,
            "MEMORITER_HOME": str(self.home),
            "MEMORITER_WORKSPACE": str(self.workspace),
            "MEMORITER_EMBEDDING__PROVIDER": "none",
        }

    # ---- sessions ---------------------------------------------------------------------------------------------

    def say(self, user: str, agent: str = "Done.", session: str = SESSION, **more: object) -> Path:
        """A turn in a session's transcript, as Claude Code writes it."""
        transcript = self.transcripts / f"{session}.jsonl"
        common = {"sessionId": session, "cwd": str(self.project), "isSidechain": False, **more}
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        lines = [
            {**common, "type": "user", "timestamp": stamp, "message": {"role": "user", "content": user}},
            {
                **common,
                "type": "assistant",
                "timestamp": stamp,
                "message": {"role": "assistant", "content": [{"type": "text", "text": agent}]},
            },
        ]
        with transcript.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        return transcript

    def event(self, name: str, session: str = SESSION, **more: object) -> dict[str, object]:
        """What Claude Code says at a moment."""
        return {
            "session_id": session,
            "transcript_path": str(self.transcripts / f"{session}.jsonl"),
            "cwd": str(self.project / "src"),
            "permission_mode": "default",
            "hook_event_name": name,
            **more,
        }

    # ---- hooks ------------------------------------------------------------------------------------------------

    def hook(
        self, name: str, *options: str, data: bytes | None = None, session: str = SESSION, **more: object
    ) -> Answered:
        """Run a hook to its end, and hold it to its contract."""
        given = json.dumps(self.event(name, session, **more)).encode() if data is None else data
        begun = time.monotonic()
        arguments = ["hook", "claude-code", name, *options]
        done = self.run(arguments, given, self.environment, self.project)
        seconds = time.monotonic() - begun
        assert done.code == 0
        assert is_form(name, done.output)
        answer = json.loads(done.output or b"{}")
        stderr = done.error.decode()
        assert "Traceback" not in stderr
        return Answered(answer, stderr, seconds)

    def heard(self, name: str = "Stop", **more: object) -> Answered:
        """Run a hook that listens, until all is done."""
        return self.hook(name, "--wait", "--deadline", "20", **more)

    def told(self, name: str, **more: object) -> str:
        """What a hook puts into the prompt, however busy the machine is."""
        return self.hook(name, "--deadline", "20", **more).told

    # ---- what came of it --------------------------------------------------------------------------------------

    def memory(self) -> Memory:
        return Memory.open(
            self.workspace,
            home=self.home,
            overrides={"embedding.provider": "none", "embedding.background": False},
        )

    def learned(self) -> list[str]:
        """The entries in force, oldest first."""
        with self.memory() as memory:
            return [entry.text for entry in reversed(memory.entries.list())]

    def waiting(self) -> list[Path]:
        """The requests in the spool."""
        return sorted((self.home / "agents" / "main" / "queue").glob("[0-9]*.json"))

    def log(self) -> str:
        file = self.home / "hooks.log"
        return file.read_text() if file.exists() else ""


def until(true: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)
