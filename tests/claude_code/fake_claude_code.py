"""A stand-in for Claude Code: it writes transcripts and calls the real hooks."""

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
class Answer:
    """The answer of a hook."""

    answer: dict[str, Any]
    stderr: str
    seconds: float

    @property
    def context(self) -> str:
        """The text for the prompt."""
        return str(self.answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


@dataclass(frozen=True)
class Ran:
    """The result of a process."""

    code: int
    output: bytes
    error: bytes


Run = Callable[[list[str], bytes, dict[str, str], Path], Ran]


def run_process(arguments: list[str], data: bytes, environment: dict[str, str], cwd: Path) -> Ran:
    """Run the command line in a new process."""
    command = [sys.executable, "-m", "memoriter", *arguments]
    done = subprocess.run(command, input=data, capture_output=True, env=environment, cwd=cwd, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def is_valid_output(event: str, output: bytes) -> bool:
    """Return whether Claude Code accepts this output: one JSON object, and nothing for PreCompact."""
    if event == "PreCompact":
        return output == b""
    return output.count(b"\n") == 1 and isinstance(json.loads(output), dict)


class ClaudeCode:
    """Claude Code, as far as a memory sees it."""

    def __init__(self, folder: Path, run: Run = run_process) -> None:
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
        """Append a turn to the transcript of a session, as Claude Code writes it."""
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
        with transcript.open("a", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        return transcript

    def event(self, name: str, session: str = SESSION, **more: object) -> dict[str, object]:
        """Return the JSON that Claude Code sends for an event."""
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
    ) -> Answer:
        """Run a hook until it exits, and check its contract."""
        sent = json.dumps(self.event(name, session, **more)).encode() if data is None else data
        start = time.monotonic()
        arguments = ["hook", "claude-code", name, *options]
        done = self.run(arguments, sent, self.environment, self.project)
        seconds = time.monotonic() - start
        assert done.code == 0
        assert is_valid_output(name, done.output)
        answer = json.loads(done.output or b"{}")
        stderr = done.error.decode()
        assert "Traceback" not in stderr
        return Answer(answer, stderr, seconds)

    def process(self, name: str = "Stop", **more: object) -> Answer:
        """Run a hook that processes the session, until all work is finished."""
        return self.hook(name, "--wait", "--deadline", "120", **more)

    def context(self, name: str, **more: object) -> str:
        """Return the text that a hook adds to the prompt, with a deadline that a busy machine meets."""
        return self.hook(name, "--deadline", "120", **more).context

    # ---- results ----------------------------------------------------------------------------------------------

    def memory(self) -> Memory:
        return Memory.open(
            self.workspace,
            home=self.home,
            overrides={"embedding.provider": "none", "embedding.background": False},
        )

    def entries(self) -> list[str]:
        """Return the texts of the entries in force, oldest first."""
        with self.memory() as memory:
            return [entry.text for entry in reversed(memory.entries.list())]

    def waiting(self) -> list[Path]:
        """Return the requests in the queue."""
        return sorted((self.home / "agents" / "main" / "queue").glob("[0-9]*.json"))

    def log(self) -> str:
        file = self.home / "hooks.log"
        return file.read_text() if file.exists() else ""


def wait_until(is_true: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, "the condition did not become true in time"
        time.sleep(0.02)
