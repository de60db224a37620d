"""The real Claude Code on a machine of its own: a home, notes and projects, and no way out but to a scripted model.

Its environment is made from nothing, so that neither the settings nor the keys of whoever runs the tests reach it.
What it would ask of others goes to the same server, which keeps and refuses it.
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

PROGRAM = (
    Path(__file__).parents[2] / ".tools/claude-code/node_modules/@anthropic-ai/claude-code-linux-x64/claude"
)
MEMORITER = Path(sys.executable).with_name("memoriter")
PATIENCE_S = 100.0  #: on a busy machine; nobody waits so long otherwise
EVENTS = ("--output-format", "stream-json", "--verbose", "--include-hook-events")

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Session:
    """A conversation that is over."""

    events: tuple[Event, ...]  #: what Claude Code told of it
    asked: tuple[Body, ...]  #: what reached the model
    debug: str

    @property
    def id(self) -> str:
        return str(self.events[-1]["session_id"])

    @property
    def hooks(self) -> dict[str, str]:
        """What came of each hook, under its moment."""
        told = (event for event in self.events if event.get("subtype") == "hook_response")
        return {event["hook_name"]: event["outcome"] for event in told}


class Machine:
    """Somebody's machine."""

    def __init__(self, folder: Path, api: MessagesApi) -> None:
        self.folder, self.api = folder, api
        self.home, self.notes = folder / "home", folder / "notes"
        self.settings = self.home / ".claude" / "settings.json"
        self.servers = self.home / ".claude.json"
        for made in (self.settings.parent, self.notes / "memory", folder / "tmp"):
            made.mkdir(parents=True)
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": api.url,
            "ANTHROPIC_API_KEY": "sk-ant-nobody",
            "HTTPS_PROXY": api.url,
            "HTTP_PROXY": api.url,
            "NO_PROXY": "127.0.0.1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def project(self, name: str) -> Path:
        """A folder that somebody works in."""
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
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr or done.stdout
        return done.stdout

    def be_patient(self) -> None:
        """Let hooks have all the time that a busy machine takes, as people may."""
        settings = json.loads(self.settings.read_text())
        for group in settings["hooks"].values():
            for hook in group[-1]["hooks"]:
                hook.update(command=f"{hook['command']} --deadline 60", timeout=90)
        self.settings.write_text(json.dumps(settings))

    # ---- sessions ---------------------------------------------------------------------------------------------

    def ask(self, words: str, *options: str, project: str) -> Session:
        """One prompt and its answer: `claude -p`."""
        with self._watched() as finished:
            told = self._ran(
                [str(PROGRAM), "-p", words, *EVENTS, *self._debugging, *options], self.project(project)
            )
            return finished(json.loads(line) for line in told.splitlines())

    def talk(self, turns: Iterator[str], project: str) -> Session:
        """A session that stays open: each turn is asked for when the one before is answered."""
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
            lines, told = _lines_of(running), list[Event]()
            try:
                for words in turns:
                    said = {"type": "user", "message": {"role": "user", "content": words}}
                    running.stdin.write(json.dumps(said) + "\n")
                    running.stdin.flush()
                    while not told or told[-1]["type"] != "result":
                        told.append(_next(lines))
                    told.append({"type": "asked again", "session_id": told[-1]["session_id"]})
                running.stdin.close()
                assert running.wait(PATIENCE_S) == 0
            finally:
                running.kill()
            return finished(told)

    @property
    def _debugging(self) -> tuple[str, str]:
        return "--debug-file", str(self.folder / "debug.txt")

    @contextmanager
    def _watched(self) -> Iterator[Callable[[Iterator[Event] | list[Event]], Session]]:
        before = len(self.api.asked)
        debug = self.folder / "debug.txt"
        debug.unlink(missing_ok=True)
        yield lambda events: Session(tuple(events), tuple(self.api.asked[before:]), debug.read_text())

    # ---- what came of it --------------------------------------------------------------------------------------

    def hear(self, session: str) -> None:
        """Wait until all that hooks were told of a session is heard; it may go on."""
        agent = self.home / ".memoriter" / "agents" / "main"
        until(lambda: any(f'"id": "{session}"' in file.read_text() for file in agent.glob("hooks/*.json")))
        until(lambda: not list(agent.glob("spool/[0-9]*.json")))

    def transcripts(self) -> list[Path]:
        return sorted((self.home / ".claude" / "projects").glob("*/*.jsonl"))


def until(true: Callable[[], object]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
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
        return lines.get(timeout=PATIENCE_S)
    except Empty:
        raise AssertionError("Claude Code says nothing any more") from None
