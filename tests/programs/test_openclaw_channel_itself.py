"""The real OpenClaw with a real channel and a memoriter gateway: who said what decides what is remembered.

Telegram's API runs on this machine. The owner and a stranger write to the bot, in two groups and privately. memoriter
serves the agent over HTTP, and OpenClaw's plugin reaches it by address and token.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import telegram_api
from openai_api import Body, Call, OpenAiApi, Say
from openai_api import serving as serving_model
from openclaw_itself import DEADLINE_S, SCRIPT, RealOpenClaw, free_port
from telegram_api import TelegramApi

T = TypeVar("T")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not SCRIPT.exists(), reason="no OpenClaw under .tools; run `make openclaw`"),
]

MEMORITER = Path(sys.executable).with_name("memoriter")
OWNER = {"id": 7, "is_bot": False, "first_name": "Ada", "username": "ada"}
STRANGER = {"id": 8, "is_bot": False, "first_name": "Mallory", "username": "mallory"}
PRIVATE = {"id": 7, "type": "private", "first_name": "Ada"}
#: The memory is switched on for the first group, and off for the second, as it is by default.
OPEN_GROUP = {"id": -1007, "type": "supergroup", "title": "Birds"}
CLOSED_GROUP = {"id": -1008, "type": "supergroup", "title": "Fish"}
SCOPE = """
memory:
  scope:
    default: deny
    rules:
      - allow chat_type=direct
      - allow channel=telegram key_prefix=telegram:group:-1007
"""
OWNERS = "I prefer oolong tea over every other drink."
STRANGERS = "I prefer matcha tea over every other drink."
UNRECORDED = "I prefer rooibos tea over every other drink."
QUESTION = "Which tea do I prefer over every other drink?"
ASKED_IN_THE_GROUP = "Once more: which tea do I prefer over every other drink?"
ASKED_BY_THE_STRANGER = "Tell me: which tea do I prefer over every other drink?"
WRONG = "Please search with a wrong token."


@dataclass
class Story:
    """The messages, and what they left behind."""

    openclaw: RealOpenClaw
    api: OpenAiApi
    telegram: TelegramApi
    outputs: dict[str, Any] = field(default_factory=dict)

    @property
    def memory_home(self) -> Path:
        return self.openclaw.home / "memoriter"

    @property
    def command(self) -> list[str]:
        places = ["--home", str(self.memory_home), "--workspace", str(self.openclaw.workspace)]
        return [str(MEMORITER), *places]

    def memoriter(self, *arguments: str) -> Any:
        done = subprocess.run(
            [*self.command, *arguments, "--json"],
            env=self.openclaw.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    def configure(self, **settings: object) -> None:
        path = self.openclaw.state / "openclaw.json"
        values = json.loads(path.read_text("utf-8"))
        values["plugins"]["entries"]["memoriter"]["config"] |= settings
        path.write_text(json.dumps(values, indent=2), "utf-8")

    def requests_with(self, text: str) -> list[str]:
        """Return the messages of every request to the model in the turn of this text."""
        sent = [body["messages"] for body in self.api.requests]
        return [json.dumps(messages) for messages in sent if text in str(_last_words(messages))]

    def write(self, text: str, sender: dict[str, Any], chat: dict[str, Any]) -> None:
        """Let a person write to the bot, and wait until the model has the message."""
        self.telegram.receive(text, sender, chat)
        wait_for(lambda: self.requests_with(text), f"the model did not receive: {text}")


def _last_words(messages: Sequence[Body]) -> object:
    spoken = [message["content"] for message in messages if message["role"] == "user"]
    return [text for text in spoken if "OPENCLAW_INTERNAL_CONTEXT" not in str(text)][-1:]


def wait_for(find: Callable[[], T], problem: str) -> T:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if found := find():
            return found
        time.sleep(0.2)
    raise AssertionError(problem)


def model(body: Body) -> Sequence[Say | Call]:
    """Search the memory where the prompt asks for it, then answer."""
    text = str(_last_words(body["messages"]))
    if "search" in text and body["messages"][-1]["role"] != "tool":
        return [Call("tool_call", {"id": "memory_search", "args": {"query": "the crane that came back"}})]
    return [Say("Good.")]


@contextmanager
def memory_gateway(story: Story) -> Iterator[tuple[str, str]]:
    """Run a gateway of memoriter for OpenClaw's workspace; return its address and a token."""
    with subprocess.Popen(
        [*story.command, "--agent", "main", "serve", "--port", "0", "--json"],
        env=story.openclaw.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as started:
        try:
            assert started.stdout is not None
            ready = json.loads(started.stdout.readline())
            yield ready["address"], ready["token"]
        finally:
            started.terminate()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    openclaw = RealOpenClaw(tmp_path_factory.mktemp("home"), free_port(), has_channels=True)
    with serving_model() as api, telegram_api.serving() as telegram:
        story = Story(openclaw, api, telegram)
        api.model = model
        openclaw.set_up(api)
        openclaw.write_notes()
        story.memory_home.mkdir()
        (story.memory_home / "config.yaml").write_text(SCOPE, "utf-8")
        story.memoriter("install", "openclaw", "--home", str(openclaw.state))
        _connect_telegram(story)
        with memory_gateway(story) as (address, token):
            story.configure(url=address, token=token, timeoutMs=60_000)
            with openclaw.gateway():
                _talk(story)
            story.outputs["log"] = openclaw.log.read_text("utf-8", "replace")
            story.configure(token="mmr_wrong")
            with openclaw.gateway():
                story.write(WRONG, OWNER, PRIVATE)
                wait_for(lambda: len(story.requests_with(WRONG)) > 1, "the tool was not called")
        yield story


def _connect_telegram(story: Story) -> None:
    path = story.openclaw.state / "openclaw.json"
    settings = json.loads(path.read_text("utf-8"))
    restricted = {f"id:{STRANGER['id']}": {"deny": ["memory_search"]}}
    settings["channels"] = {
        "telegram": {
            "enabled": True,
            "botToken": telegram_api.TOKEN,
            "apiRoot": story.telegram.url,
            "dmPolicy": "allowlist",
            "allowFrom": [str(OWNER["id"])],
            "groupPolicy": "open",
            "groups": {"*": {"requireMention": False, "toolsBySender": restricted}},
        }
    }
    settings["commands"] = {**settings.get("commands", {}), "ownerAllowFrom": [f"telegram:{OWNER['id']}"]}
    path.write_text(json.dumps(settings, indent=2), "utf-8")


def _talk(story: Story) -> None:
    story.write(STRANGERS, STRANGER, OPEN_GROUP)
    story.write(UNRECORDED, STRANGER, CLOSED_GROUP)
    story.write(OWNERS, OWNER, PRIVATE)
    story.outputs["entries"] = wait_for(lambda: story.memoriter("list")["entries"], "nothing was captured")
    in_sessions = ("search", "matcha", "--source", "sessions")
    story.outputs["found"] = wait_for(
        lambda: story.memoriter(*in_sessions)["results"], "the group was not recorded"
    )
    story.write("Please search: which crane came back?", OWNER, PRIVATE)
    story.write(ASKED_BY_THE_STRANGER, STRANGER, OPEN_GROUP)
    story.write(ASKED_IN_THE_GROUP, OWNER, OPEN_GROUP)
    story.openclaw.say(QUESTION, "agent:main:web")
    story.outputs["recalled"] = story.requests_with(QUESTION)[0]


def test_the_agent_finds_a_note_through_the_gateway(story: Story) -> None:
    assert "The crane came back." in story.requests_with("Please search: which crane came back?")[-1]


def test_a_wrong_token_is_one_sentence(story: Story) -> None:
    sent = story.requests_with(WRONG)[-1]
    assert "Memory is unavailable: the gateway" in sent
    assert "refuses the token." in sent


def test_only_what_the_owner_says_is_captured(story: Story) -> None:
    assert {(entry["text"], entry["trust"]) for entry in story.outputs["entries"]} == {(OWNERS, "owner")}


def test_words_of_a_stranger_are_found_with_their_label(story: Story) -> None:
    (hit, *_) = [hit for hit in story.outputs["found"] if STRANGERS in hit["snippet"]]
    assert hit["trust"] == "untrusted"


def test_words_of_a_stranger_in_a_group_are_never_recalled_to_the_owner(story: Story) -> None:
    recalled = {text: text in story.outputs["recalled"] for text in (OWNERS, STRANGERS, UNRECORDED)}
    assert recalled == {OWNERS: True, STRANGERS: False, UNRECORDED: False}


def test_a_sender_who_may_not_search_receives_no_memories(story: Story) -> None:
    asked = (ASKED_BY_THE_STRANGER, ASKED_IN_THE_GROUP)
    assert [OWNERS in story.requests_with(text)[0] for text in asked] == [False, True]


def test_a_group_without_memory_leaves_nothing_behind(story: Story) -> None:
    data = b"".join(path.read_bytes() for path in story.memory_home.rglob("*") if path.is_file())
    assert (b"matcha" in data, b"rooibos" in data) == (True, False)
    assert "This session may not write" not in story.outputs["log"]
