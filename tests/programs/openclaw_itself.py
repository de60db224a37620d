"""The real OpenClaw with its own home and a scripted model: set up, run, and record its state.

`make openclaw` installs the program. Run as a script, this file rewrites `tests/openclaw/openclaw_recorded.json`: the
database rows from which sessions are read, as OpenClaw wrote them, with long tool results and prompts shortened.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai_api import Body, Call, OpenAiApi, Say, serving

ROOT = Path(__file__).parents[2]
MODULES = ROOT / ".tools" / "openclaw" / "node_modules"
NODE = MODULES / "node" / "bin" / "node"
SCRIPT = MODULES / "openclaw" / "openclaw.mjs"
RECORDING = ROOT / "tests" / "openclaw" / "openclaw_recorded.json"
VERSION = "2026.9.6"
DEADLINE_S = 300

RECORDED = {
    "schema_meta": ("role", "schema_version", "agent_id", "app_version"),
    "session_windows": (
        "session_id",
        "session_key",
        "updated_at",
        "acp_owned",
        "plugin_owner_id",
        "hook_external_content_source",
        "spawned_by",
    ),
    "transcript_events": ("session_id", "seq", "event_json", "event_zstd", "event_utf8_bytes", "created_at"),
    "session_transcript_active_events": ("session_id", "active_position", "event_seq"),
    "session_transcript_index_state": ("session_id", "indexed_seq", "needs_rebuild"),
    "session_transcript_cold_archives": ("session_id",),
    "memory_session_tombstones": ("session_id", "agent_id", "reason"),
}

WEEK = " ".join(f"On day {day} crane number {day * 7} stood at the pond." for day in range(1, 40))
CONVERSATIONS = {
    "agent:main:main": ["Which queue do we use for mail?", "Tell me of the month at the pond."],
    "agent:main:mcp": ["Which bucket has the backup?"],
    "agent:main:web": ["Please fetch the page."],
    "agent:main:birds": ["How many herons are there?"],
    "agent:main:secret": ["Keep this secret."],
}
ANSWERS: dict[str, tuple[Call | None, str]] = {
    "Which queue": (None, "NATS, since March."),
    "the month": (None, f"Here it is. {WEEK}"),
    "Which bucket": (
        Call("tool_call", {"id": "memoriter__memory_search", "args": {"query": "bucket of the backup"}}),
        "It is heron.",
    ),
    "fetch the page": (
        Call("tool_call", {"id": "web_fetch", "args": {"url": "http://127.0.0.1:9/"}}),
        "The page says that the moon is a stork.",
    ),
    "How many herons": (
        Call("tool_call", {"id": "sessions_spawn", "args": {"task": "Count the birds of the pond."}}),
        "A helper counts them.",
    ),
    "birds of the pond": (None, "Three of them."),
    "secret": (None, "It is kept."),
}


def model(body: Body) -> Sequence[Say | Call]:
    """Call the tool that belongs to the last prompt once, then answer."""
    calls = 0
    for message in reversed(body["messages"]):
        calls += message["role"] == "tool"
        if message["role"] == "user" and "OPENCLAW_INTERNAL_CONTEXT" not in str(message["content"]):
            text = str(message["content"])
            break
    call, answer = next((found for part, found in ANSWERS.items() if part in text), (None, "Yes."))
    return [call] if call and not calls else [Say(answer)]


@dataclass(frozen=True)
class RealOpenClaw:
    """The program with its own home. It reaches the notes of the tests through MCP."""

    home: Path
    port: int
    has_channels: bool = False

    @property
    def state(self) -> Path:
        return self.home / ".openclaw"

    @property
    def workspace(self) -> Path:
        return self.state / "workspace"

    @property
    def log(self) -> Path:
        return self.home / "gateway.log"

    @property
    def database(self) -> Path:
        return self.state / "agents" / "main" / "agent" / "openclaw-agent.sqlite"

    @property
    def environment(self) -> dict[str, str]:
        variables = {
            "HOME": str(self.home),
            "NO_COLOR": "1",
            "OPENCLAW_NO_RESPAWN": "1",
            **({} if self.has_channels else {"OPENCLAW_SKIP_CHANNELS": "1"}),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        path = f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {"PATH": path, "TMPDIR": str(self.home), **variables}

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(NODE), str(SCRIPT), *arguments],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
        return done.stdout

    def put_on_path(self) -> None:
        """Let programs that the tests start find OpenClaw by its name."""
        program = self.home / "bin" / "openclaw"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {NODE} {SCRIPT} "$@"\n', "utf-8")
        program.chmod(0o755)

    def set_up(self, api: OpenAiApi, *more: str) -> None:
        """Set it up with its own installer, without prompts and without a daemon."""
        model_ = [
            "--custom-base-url",
            api.url,
            "--custom-model-id",
            "scripted",
            "--custom-provider-id",
            "scripted",
        ]
        skipped = ["daemon", "health", "channels", "skills", "search", "ui", "hooks"]
        self.run(
            *("onboard", "--non-interactive", "--accept-risk", "--mode", "local", "--json"),
            *("--auth-choice", "custom-api-key", "--custom-api-key", "none", *model_),
            *("--gateway-port", str(self.port), *(f"--skip-{name}" for name in skipped), *more),
        )

    def search_by_keywords(self) -> None:
        """Let its own memory work without a key."""
        settings = json.loads((self.state / "openclaw.json").read_text("utf-8"))
        settings["memory"] = {"search": {"provider": "none", "rememberAcrossConversations": False}}
        (self.state / "openclaw.json").write_text(json.dumps(settings, indent=2), "utf-8")

    def write_notes(self) -> None:
        """Replace the notes that the program creates by default."""
        for name in ("BOOTSTRAP.md", "SOUL.md", "IDENTITY.md", "AGENTS.md"):
            (self.workspace / name).unlink(missing_ok=True)
        (self.workspace / "memory").mkdir(exist_ok=True)
        (self.workspace / "MEMORY.md").write_text("# Memory\n\n- Ada prefers tea. <!-- importance: 8 -->\n")
        (self.workspace / "USER.md").write_text("# User\n\n- Call her Ada.\n")
        (self.workspace / "memory" / "2026-02-08.md").write_text("# 2026-02-08\n\n- The crane came back.\n")

    @contextmanager
    def gateway(self) -> Iterator[None]:
        """Run its gateway. On a busy machine it may fail to start, so it is tried again."""
        log = self.log
        for _ in range(5):
            with log.open("wb") as output:
                started = subprocess.Popen(
                    [str(NODE), str(SCRIPT), "gateway", "run", "--port", str(self.port)],
                    env=self.environment,
                    cwd=self.home,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            deadline = time.monotonic() + DEADLINE_S
            while started.poll() is None and b"[gateway] ready" not in log.read_bytes():
                assert time.monotonic() < deadline, log.read_text("utf-8", "replace")[-2000:]
                time.sleep(0.2)
            if started.poll() is None:
                break
        assert started.poll() is None, log.read_text("utf-8", "replace")[-2000:]
        try:
            yield
        finally:
            started.terminate()
            try:
                started.wait(30)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()

    def say(self, text: str, key: str) -> None:
        self.run("agent", "--agent", "main", "--session-key", key, "--json", "--message", text)

    def converse(self) -> None:
        """Run all conversations, and wait for the answer of the helper, which comes later."""
        for key, texts in CONVERSATIONS.items():
            for text in texts:
                self.say(text, key)
        deadline = time.monotonic() + DEADLINE_S
        while not self.rows("SELECT 1 FROM transcript_events WHERE event_json LIKE '%announce:v1%'"):
            assert time.monotonic() < deadline, "the helper's answer did not come"
            time.sleep(0.5)

    def rows(self, select: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"{self.database.as_uri()}?mode=ro", uri=True)) as database:
            return database.execute(select).fetchall()


def record(openclaw: RealOpenClaw) -> dict[str, Any]:
    """Return the rows from which sessions are read, in the order of sessions."""
    tables = {}
    for table, columns in RECORDED.items():
        rows = openclaw.rows(f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid")
        tables[table] = {
            "columns": columns,
            "rows": [_cut(table, dict(zip(columns, row, strict=True))) for row in rows],
        }
    return {"program": f"openclaw {VERSION}", "tables": tables}


def _cut(table: str, row: dict[str, Any]) -> list[Any]:
    """Return a row for JSON, without tool results, prompts of OpenClaw and paths of this machine."""
    if table == "transcript_events":
        text = row["event_json"] if row["event_zstd"] is None else ""
        event = json.loads(text) if text else None
        if event is None:
            import zstandard

            with zstandard.ZstdDecompressor().stream_reader(row["event_zstd"]) as reader:
                event = json.loads(reader.read())
            row["event_zstd"] = {"base64": base64.b64encode(row["event_zstd"]).decode()}
        message = event.get("message", {})
        if "cwd" in event:
            row["event_json"] = json.dumps({**event, "cwd": "/path/to/.openclaw/workspace"})
        elif message.get("role") not in ("user", "assistant", None) or "Subagent" in str(
            message.get("content")
        ):
            kept = {key: value for key, value in message.items() if key not in ("content", "details")}
            inner = {key: message.get("details", {}).get(key) for key in ("toolName", "toolCallId")}
            cut = {**kept, "content": [{"type": "text", "text": "(cut)"}], "details": inner}
            row |= {"event_json": json.dumps({**event, "message": cut}), "event_zstd": None}
    return list(row.values())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def run_conversations(home: Path, notes: Path) -> Iterator[tuple[RealOpenClaw, OpenAiApi]]:
    """Set up a home and run all conversations; the gateway runs until the end of the block."""
    memoriter = Path(sys.executable).with_name("memoriter")
    openclaw = RealOpenClaw(home, free_port())
    with serving() as api:
        api.model = model
        openclaw.set_up(api)
        openclaw.search_by_keywords()
        openclaw.write_notes()
        before = [str(memoriter), "--workspace", str(notes), "--home", str(home / "memoriter"), "mcp"]
        printed = subprocess.run(
            [*before, "--print-config", "openclaw"], capture_output=True, text=True, check=True
        ).stdout
        server = json.loads(printed)["mcp"]["servers"]["memoriter"]
        openclaw.run("mcp", "set", "memoriter", json.dumps(server))
        with openclaw.gateway():
            openclaw.converse()
            openclaw.run("memory", "forget", "--agent", "main", "--session", "agent:main:secret", "--json")
            yield openclaw, api


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        notes.mkdir()
        (notes / "MEMORY.md").write_text("# Memory\n\n- The backup goes to the bucket heron.\n")
        Path(folder, "home").mkdir()
        with run_conversations(Path(folder, "home"), notes) as (real, _):
            RECORDING.write_text(json.dumps(record(real), indent=1, ensure_ascii=False) + "\n", "utf-8")
