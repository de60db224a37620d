"""The real Claude Code with its own home, notes and projects. It can reach only a scripted model.

Its environment is built from scratch, so that it sees neither the settings nor the keys of the developer. Requests to
other servers go to the same server, which records and rejects them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from messages_api import Body, MessagesApi

PROGRAM = Path(__file__).parents[2] / ".tools/claude-code/node_modules/claude-code/claude"
MEMORITER = Path(sys.executable).with_name("memoriter")
#: Only a busy machine needs this long.
TIMEOUT_S = 400.0
EVENTS = ("--output-format", "stream-json", "--verbose", "--include-hook-events")

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Session:
    """A finished conversation."""

    #: The events that Claude Code printed.
    events: tuple[Event, ...]
    #: The requests to the model.
    requests: tuple[Body, ...]
    debug: str

    @property
    def id(self) -> str:
        return str(self.events[-1]["session_id"])

    @property
    def hooks(self) -> dict[str, str]:
        """The outcome of each hook, by its event."""
        responses = (event for event in self.events if event.get("subtype") == "hook_response")
        return {event["hook_name"]: event["outcome"] for event in responses}


class Machine:
    """The machine of a user."""

    def __init__(self, folder: Path, api: MessagesApi) -> None:
        self.folder, self.api = folder, api
        self.home, self.notes = folder / "home", folder / "notes"
        self.settings = self.home / ".claude" / "settings.json"
        self.servers = self.home / ".claude.json"
        for folder_ in (self.settings.parent, self.notes / "memory", folder / "tmp"):
            folder_.mkdir(parents=True)
        self.environment = {
            "PATH": f"{PROGRAM.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": api.url,
            "ANTHROPIC_API_KEY": "sk-ant-invalid",
            "HTTPS_PROXY": api.url,
            "HTTP_PROXY": api.url,
            "NO_PROXY": "127.0.0.1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "MCP_TIMEOUT": str(int(TIMEOUT_S * 1000)),
        }

    def project(self, name: str) -> Path:
        """Return the folder of a project."""
        folder = self.folder / name
        (folder / ".git").mkdir(parents=True, exist_ok=True)
        return folder

    # ---- programs ---------------------------------------------------------------------------------------------

    def memoriter(self, *arguments: str) -> str:
        return self._ran([str(MEMORITER), *arguments], self.home)

    def claude(self, *arguments: str) -> str:
        return self._ran([str(PROGRAM), *arguments], self.home)

    def _ran(self, command: Sequence[str], cwd: Path) -> str:
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr or done.stdout
        return done.stdout

    def extend_deadlines(self) -> None:
        """Give hooks the time that a busy machine needs."""
        for file in (self.home / ".memoriter" / "claude-code").glob("*/plugin/hooks/hooks.json"):
            settings = json.loads(file.read_text())
            for group in settings["hooks"].values():
                for hook in group[-1]["hooks"]:
                    hook.update(
                        command=hook["command"].replace("--server", "--deadline 300 --server"), timeout=400
                    )
            file.write_text(json.dumps(settings))

    # ---- sessions ---------------------------------------------------------------------------------------------

    def ask(self, prompt: str, *options: str, project: str) -> Session:
        """Run one prompt with `claude -p`."""
        with self._watched() as finished:
            output = self._ran(
                [str(PROGRAM), "-p", prompt, *EVENTS, *self._debugging, *options], self.project(project)
            )
            return finished(json.loads(line) for line in output.splitlines())

    def talk(self, turns: Iterator[str], project: str) -> Session:
        """Run a session that stays open: each turn is sent when the previous one is answered."""
        with (
            self._watched() as finished,
            subprocess.Popen(
                [str(PROGRAM), "-p", "--input-format", "stream-json", *EVENTS, *self._debugging],
                env=self.environment,
                cwd=self.project(project),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            ) as running,
        ):
            assert running.stdin is not None
            lines, events = _lines_of(running), list[Event]()
            try:
                for prompt in turns:
                    message = {"type": "user", "message": {"role": "user", "content": prompt}}
                    running.stdin.write(json.dumps(message) + "\n")
                    running.stdin.flush()
                    while not events or events[-1]["type"] != "result":
                        events.append(_next(lines))
                    events.append({"type": "next turn", "session_id": events[-1]["session_id"]})
                running.stdin.close()
                assert running.wait(TIMEOUT_S) == 0
            finally:
                running.kill()
            return finished(events)

    @property
    def _debugging(self) -> tuple[str, str]:
        return "--debug-file", str(self.folder / "debug.txt")

    @contextmanager
    def _watched(self) -> Iterator[Callable[[Iterator[Event] | list[Event]], Session]]:
        before = len(self.api.requests)
        debug = self.folder / "debug.txt"
        debug.unlink(missing_ok=True)
        yield lambda events: Session(tuple(events), tuple(self.api.requests[before:]), debug.read_text())

    # ---- results ----------------------------------------------------------------------------------------------

    def wait_for_processing(self, session: str) -> None:
        """Wait until the queued turns of a session are processed. The session may continue."""
        agent = self.home / ".memoriter" / "agents" / "main"
        wait_until(
            lambda: any(f'"id": "{session}"' in file.read_text() for file in agent.glob("hooks/*.json"))
        )
        wait_until(lambda: not list(agent.glob("queue/[0-9]*.json")))

    def transcripts(self) -> list[Path]:
        return sorted((self.home / ".claude" / "projects").glob("*/*.jsonl"))


def wait_until(is_true: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + TIMEOUT_S
    while not is_true():
        assert time.monotonic() < end, "the condition did not become true in time"
        time.sleep(0.05)


def _lines_of(running: subprocess.Popen[str]) -> Queue[Event]:
    lines = Queue[Event]()

    def read() -> None:
        assert running.stdout is not None
        for line in running.stdout:
            lines.put(json.loads(line))

    Thread(target=read, daemon=True).start()
    return lines


def _next(lines: Queue[Event]) -> Event:
    try:
        return lines.get(timeout=TIMEOUT_S)
    except Empty:
        raise AssertionError("Claude Code stopped printing events") from None
