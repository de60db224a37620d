"""The real OpenCode and Copilot CLI with the files that `memoriter install` writes. Their model is scripted.

`make integration` installs them under `.tools`. Each has its own home, and reaches nothing but the scripted model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from openai_api import Body, Call, OpenAiApi, Say, serving

TOOLS = Path(__file__).parents[2] / ".tools"
OPENCODE = TOOLS / "opencode/node_modules/opencode/bin/opencode"
COPILOT = TOOLS / "copilot/node_modules/copilot/copilot"
MEMORITER = Path(sys.executable).with_name("memoriter")
IN_CI = bool(os.environ.get("CI"))

pytestmark = pytest.mark.integration

SAID = "I prefer tabs over spaces in all my Go code."


@dataclass(frozen=True)
class Program:
    """A program with its own home, notes and folder of work."""

    home: Path
    api: OpenAiApi
    #: The command that answers one prompt and ends.
    command: tuple[str, ...]
    environment: dict[str, str]
    #: Whether each word is an argument. OpenCode puts quotes around an argument with spaces.
    by_word: bool = False

    def ask(self, prompt: str) -> str:
        """Answer one prompt; return what reached the model."""
        before = len(self.api.requests)
        self._run([*self.command, *(prompt.split() if self.by_word else [prompt])])
        return json.dumps(self.api.requests[before:], ensure_ascii=False)

    def memoriter(self, *arguments: str) -> str:
        paths = ("--workspace", str(self.home / "notes"), "--home", str(self.home / "memory"))
        return self._run([str(MEMORITER), *paths, *arguments])

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), **self.environment},
            cwd=self.home / "work",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def opencode(home: Path, api: OpenAiApi) -> Program:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": api.url, "apiKey": "x"},
        "models": {"scripted": {}},
    }
    settings = {
        "$schema": "https://opencode.ai/config.json",  # OpenCode adds it to a file without it
        "model": "local/scripted",
        "small_model": "local/scripted",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"local": provider},
    }
    (home / ".config/opencode").mkdir(parents=True)
    (home / ".config/opencode/opencode.json").write_text(json.dumps(settings), "utf-8")
    quiet = {f"OPENCODE_DISABLE_{name}": "1" for name in ("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS")}
    return Program(home, api, (str(OPENCODE), "run"), quiet, by_word=True)


def copilot_cli(home: Path, api: OpenAiApi) -> Program:
    offline = {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": api.url, "COPILOT_MODEL": "scripted"}
    return Program(home, api, (str(COPILOT), "--allow-all-tools", "-p"), offline)


@pytest.fixture
def api() -> Iterator[OpenAiApi]:
    with serving() as served:
        served.model = lambda _: [Say("Noted.")]
        yield served


def extend_deadlines(home: Path) -> None:
    """Let hooks take their time: a busy machine needs seconds to start Python."""
    longer = {
        '"--server"': '"--deadline", "300", "--server"',
        " --server": " --deadline 300 --server",
        "SECONDS = 10": "SECONDS = 400",
        '"timeoutSec": ': '"timeoutSec": 40',
    }
    for file in home.rglob("memoriter.js*"):
        text = file.read_text("utf-8")
        for usual, long in longer.items():
            text = text.replace(usual, long)
        file.write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("name", "start", "file", "tool"),
    [
        ("opencode", opencode, OPENCODE, "memoriter_memory_search"),
        ("copilot-cli", copilot_cli, COPILOT, "memoriter-memory_search"),
    ],
)
def test_the_program_captures_recalls_and_is_as_before_after_uninstall(
    tmp_path: Path,
    api: OpenAiApi,
    name: str,
    start: Callable[[Path, OpenAiApi], Program],
    file: Path,
    tool: str,
) -> None:
    if not file.exists() and not IN_CI:
        pytest.skip(f"no {name} under .tools; run `make integration`")
    for folder in ("notes", "work"):
        (tmp_path / folder).mkdir()
    program = start(tmp_path, api)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.js*") if path.is_file()}
    program.memoriter("install", name)
    extend_deadlines(tmp_path)
    first = program.ask(SAID)
    assert tool in first  # the tools of our MCP server, and the introduction of the memory
    assert "You have a long-term memory, memoriter." in first
    program.memoriter("process-queue")
    listed = json.loads(program.memoriter("list", "--json"))
    assert [entry["text"] for entry in listed["entries"]] == [SAID]
    asked = program.ask("Do I prefer tabs or spaces in Go code?")
    assert "<relevant-memories recall=" in asked
    assert SAID in asked
    hosts = {one["host"]: one for one in json.loads(program.memoriter("hosts", "--json"))["hosts"]}
    assert hosts[name]["state"] == "connected"
    assert hosts[name]["recalled"]
    assert hosts[name]["captured"]
    program.memoriter("uninstall", name)
    assert SAID not in program.ask("Do I prefer tabs or spaces in Go code?")
    for path, data in before.items():
        assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("name", "start", "file", "tool"),
    [
        ("opencode", opencode, OPENCODE, "memoriter_memory_store"),
        ("copilot-cli", copilot_cli, COPILOT, "memoriter-memory_store"),
    ],
)
def test_what_the_agent_stores_after_it_has_read_a_page_is_relayed(
    tmp_path: Path,
    api: OpenAiApi,
    name: str,
    start: Callable[[Path, OpenAiApi], Program],
    file: Path,
    tool: str,
) -> None:
    if not file.exists() and not IN_CI:
        pytest.skip(f"no {name} under .tools; run `make integration`")
    for folder in ("notes", "work"):
        (tmp_path / folder).mkdir()
    read, text = "ls", "The Heron Inn has nine rooms."

    def model(body: Body) -> list[Say | Call]:
        steps: list[Say | Call] = [
            Call("bash", {"command": read, "description": "Read"}),
            Call(tool, {"text": text}),
            Say("It is 7712."),
        ]
        offers = any(one["function"]["name"] == tool for one in body.get("tools", ()))
        return [steps[sum(one["role"] == "tool" for one in body["messages"])] if offers else Say("Invoices")]

    program = start(tmp_path, api)
    program.memoriter("install", name)
    extend_deadlines(tmp_path)
    api.model = model
    program.ask("How many rooms does the Heron Inn have?")
    read, text = f"curl -s {api.url}/models", "All invoices of the Heron Inn go to account 7712."
    program.ask("Which account does the Heron Inn use?")
    program.memoriter("process-queue")
    entries = json.loads(program.memoriter("list", "--json"))["entries"]
    assert {entry["text"]: entry["trust"] for entry in entries} == {
        "The Heron Inn has nine rooms.": "agent",
        text: "relayed",
    }
