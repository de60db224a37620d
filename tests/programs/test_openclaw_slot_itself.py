"""The real OpenClaw with memoriter in its memory slot, installed by our command.

One conversation after the other runs against a scripted model. Each test looks at what reached the model, what the
agent's tools answered, or what is in the files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from openai_api import Body, Call, OpenAiApi, Say, serving
from openclaw_itself import DEADLINE_S, SCRIPT, RealOpenClaw, free_port

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not SCRIPT.exists(), reason="no OpenClaw under .tools; run `make openclaw`"),
]

MEMORITER = Path(sys.executable).with_name("memoriter")
#: What OpenClaw itself writes while it runs.
OWN_FILES = (
    "agents",
    "state",
    "logs",
    "tasks",
    "cron",
    "devices",
    "identity",
    "update-check.json",
    "workspace",
)
OPENCLAWS_NEW_FILES = {"cache", "media", "migration", "plugin-skills", "tmp"}


@dataclass
class Story:
    """The conversations, and what they left behind."""

    openclaw: RealOpenClaw
    api: OpenAiApi
    before: dict[str, bytes] = field(default_factory=dict)
    installed: str = ""
    uninstalled: str = ""
    #: The requests to the model, by the text that was said.
    prompts: dict[str, list[Body]] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    #: Process ids of our process, one after the other.
    processes: list[int] = field(default_factory=list)

    @property
    def memory_home(self) -> Path:
        return self.openclaw.home / "memoriter"

    def say(self, text: str, key: str = "agent:main:main") -> None:
        before = len(self.api.requests)
        self.openclaw.say(text, key)
        self.prompts[text] = list(self.api.requests[before:])

    def sent(self, text: str) -> str:
        """Return everything that reached the model in this turn."""
        return json.dumps([body["messages"] for body in self.prompts[text]], ensure_ascii=False)

    def tool_result(self, text: str) -> str:
        messages = (message for body in self.prompts[text] for message in body["messages"])
        return " ".join(str(message["content"]) for message in messages if message["role"] == "tool")

    def run(self, name: str, *arguments: str) -> None:
        self.outputs[name] = self.openclaw.run(*arguments)

    def memoriter(self, *arguments: str) -> str:
        command = [str(MEMORITER), "--home", str(self.memory_home), *arguments]
        return subprocess.run(
            command, env=self.openclaw.environment, capture_output=True, text=True, check=True
        ).stdout

    def pid(self) -> int:
        """Return the id of our process, which OpenClaw's gateway has started."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if b"--stdio" in words and str(self.memory_home).encode() in words:
                    return int(folder.name)
            time.sleep(0.2)
        raise AssertionError("memoriter is not running")

    def model(self, body: Body) -> Sequence[Say | Call]:
        """Search the memory where the prompt asks for it, then answer."""
        calls, text = 0, ""
        for message in reversed(body["messages"]):
            calls += message["role"] == "tool"
            if message["role"] == "user" and "OPENCLAW_INTERNAL_CONTEXT" not in str(message["content"]):
                text = str(message["content"])
                break
        if calls:
            return [Say("I looked it up.")]
        if "die" in text and not self.processes:
            self.processes.append(self.pid())
            os.kill(self.processes[0], signal.SIGKILL)
        if "search" in text:
            return [
                Call(
                    "tool_call",
                    {"id": "memory_search", "args": {"query": "which crane came back from the south"}},
                )
            ]
        if "read outside" in text:
            return [Call("tool_call", {"id": "memory_get", "args": {"path": "../../etc/passwd"}})]
        return [Say("Good.")]


def files_of(state: Path) -> dict[str, bytes]:
    """Return the files of OpenClaw's home that it does not write while it runs."""
    return {
        str(path.relative_to(state)): path.read_bytes()
        for path in state.rglob("*")
        if path.is_file()
        and path.relative_to(state).parts[0] not in OWN_FILES
        and not path.name.startswith("openclaw.json.")  # its own backups of its settings
    }


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    openclaw = RealOpenClaw(tmp_path_factory.mktemp("home"), free_port())
    with serving() as api:
        story = Story(openclaw, api)
        api.model = story.model
        openclaw.set_up(api)
        openclaw.put_on_path()
        openclaw.write_notes()
        yesterday = openclaw.workspace / "memory" / "2026-11-14.md"
        yesterday.write_text(
            "# 2026-11-14\n\n- The crane Kurt came back from the south.\n- 苍鹭的备份放在杭州机房。\n"
        )
        story.before = files_of(openclaw.state)
        story.installed = story.memoriter("install", "openclaw", "--home", str(openclaw.state))
        with openclaw.gateway():
            _talk(story)
            _kill(story)
        set_command = ("config", "set", "plugins.entries.memoriter.config.command")
        openclaw.run(*set_command, '["/nowhere/memoriter"]', "--strict-json")
        with openclaw.gateway():
            _without_program(story)
        story.uninstalled = story.memoriter("uninstall", "openclaw", "--home", str(openclaw.state))
        yield story


def _talk(story: Story) -> None:
    story.say("Please search: which crane came back?")
    story.say("I prefer tabs over spaces in all my Go code.")
    story.say("我喜欢喝乌龙茶，不喝咖啡。")
    story.say("I prefer the password swordfish for everything.", "agent:main:telegram:group:-100")
    story.run("compaction", "sessions", "compact", "agent:main:main", "--json")
    story.outputs["after compaction"] = notes_of(story.openclaw.workspace)
    story.outputs["entries"] = story.memoriter("list", "--json")
    story.say("/new")
    story.outputs["after reset"] = notes_of(story.openclaw.workspace)
    story.say("Should my Go code have tabs or spaces?", "agent:main:web")
    story.say("我喜欢喝什么茶？", "agent:main:web")
    story.say("Which password do I prefer for everything?", "agent:main:web")
    story.say("Please read outside the workspace.", "agent:main:web")
    story.run(
        "status rpc", "gateway", "call", "doctor.memory.status", "--params", '{"probe": true}', "--json"
    )
    story.run(
        "search rpc", "gateway", "call", "memory.search", "--params", '{"query": "杭州机房的备份"}', "--json"
    )
    story.run("search", "memory", "search", "the crane Kurt", "--json")
    story.run("inspect", "plugins", "inspect", "memoriter", "--runtime", "--json")
    story.run("doctor", "doctor", "--non-interactive")


def _kill(story: Story) -> None:
    story.say("Now die, then search again.", "agent:main:kill")
    story.processes.append(story.pid())


def _without_program(story: Story) -> None:
    story.say("Please search without a program.", "agent:main:gone")
    story.run("status without program", "gateway", "call", "doctor.memory.status", "--json")
    story.outputs["log"] = story.openclaw.log.read_text("utf-8", "replace")


def notes_of(workspace: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in (workspace / "memory").rglob("*.md")}


def test_the_agent_finds_yesterdays_note_with_its_own_tool_name(story: Story) -> None:
    text = "Please search: which crane came back?"
    assert "crane Kurt came back" in story.tool_result(text)
    assert "memory/2026-11-14.md" in story.tool_result(text)
    assert "You have a long-term memory." in story.sent(text)


def test_a_fact_from_one_conversation_enters_the_prompt_of_the_next(story: Story) -> None:
    text = "Should my Go code have tabs or spaces?"
    first = json.dumps(story.prompts[text][0]["messages"], ensure_ascii=False)
    assert "<relevant-memories" in first
    assert "I prefer tabs over spaces in all my Go code." in first
    entries = json.loads(story.outputs["entries"])["entries"]
    assert {(entry["text"], entry["trust"]) for entry in entries} == {
        ("I prefer tabs over spaces in all my Go code.", "owner"),
        ("我喜欢喝乌龙茶，不喝咖啡。", "owner"),
    }


def test_chinese_works_from_capture_to_prompt(story: Story) -> None:
    assert "乌龙茶" in json.dumps(story.prompts["我喜欢喝什么茶？"][0]["messages"], ensure_ascii=False)
    (first, *_) = json.loads(story.outputs["search rpc"])["results"]
    assert (first["path"], "苍鹭的备份放在杭州机房" in first["snippet"]) == ("memory/2026-11-14.md", True)


def test_compaction_flushes_and_a_reset_writes_a_summary(story: Story) -> None:
    before, after = story.outputs["after compaction"], story.outputs["after reset"]
    assert any("tabs over spaces" in text for text in before.values())
    new = {name: text for name, text in after.items() if name not in before}
    assert any("乌龙茶" in text for text in (new or after).values())


def test_words_from_a_group_are_never_recalled_to_the_owner(story: Story) -> None:
    assert "swordfish" not in story.sent("Which password do I prefer for everything?")
    data = b"".join(path.read_bytes() for path in story.memory_home.rglob("*") if path.is_file())
    assert b"swordfish" not in data


def test_openclaws_own_surfaces_show_our_results(story: Story) -> None:
    status = json.loads(story.outputs["status rpc"])
    assert (status["provider"], status["embedding"]["ok"]) == ("local", True)
    (hit, *_) = json.loads(story.outputs["search"])["results"]
    assert hit["path"] == "memory/2026-11-14.md"
    inspected = json.loads(story.outputs["inspect"])
    assert {name for tool in inspected["tools"] for name in tool["names"]} == {"memory_search", "memory_get"}
    assert inspected["cliCommands"] == ["memory"]
    assert "can't verify" not in story.outputs["inspect"] + story.outputs["doctor"]
    assert "transcript recall" not in story.outputs["doctor"]
    assert "record" not in story.installed + story.uninstalled


def test_a_path_outside_gets_one_sentence(story: Story) -> None:
    result = story.tool_result("Please read outside the workspace.")
    assert "not_found" in result
    assert "root:" not in result


def test_a_killed_process_does_not_break_the_turn(story: Story) -> None:
    text = "Now die, then search again."
    assert "crane Kurt came back" in story.tool_result(text)
    assert len(set(story.processes)) == 2


def test_a_missing_package_is_reported_and_the_turn_continues(story: Story) -> None:
    text = "Please search without a program."
    assert "Memory is unavailable: the command /nowhere/memoriter was not found" in story.tool_result(text)
    assert any(message["role"] == "tool" for message in story.prompts[text][-1]["messages"])
    assert (
        "memoriter: Memory is unavailable: the command /nowhere/memoriter was not found."
        in story.outputs["log"]
    )
    error = json.loads(story.outputs["status without program"])["embedding"]["error"]
    assert error.startswith("Memory is unavailable: the command /nowhere/memoriter was not found")


def test_uninstall_leaves_openclaws_home_as_it_was(story: Story) -> None:
    state = story.openclaw.state
    assert str(state / "extensions" / "memoriter") in story.installed
    after = files_of(state)
    assert {name: after.get(name) for name in story.before} == story.before
    assert not (state / "extensions").exists()
    # What is new is OpenClaw's own: caches and backups of its settings.
    assert {name.partition("/")[0] for name in after.keys() - story.before.keys()} <= OPENCLAWS_NEW_FILES
