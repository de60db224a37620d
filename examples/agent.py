"""A small real agent with a long memory: tools, injection, capture, flush and `/new`, around any chat model.

    python examples/agent.py           a story of two days: on the second, a new process knows what the first was told
    python examples/agent.py --chat    talk to it yourself; `/new` begins a new session, `/quit` ends

The model is any server that speaks OpenAI's chat completions (`--base-url`, `--model`, or OPENAI_BASE_URL, OPENAI_MODEL
and OPENAI_API_KEY). Without one, a few lines of rules stand in for it: they know only what memory puts before them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any, Protocol

from memoriter.agent import Agent, Effect, Moment
from memoriter.tools.toolbox import Toolbox

Message = dict[str, Any]

PERSONA = "You are a helpful assistant. Be brief."
MOST_CALLS = 8  #: of tools in one turn
KEPT = 0.7  #: share of the window that a conversation may fill before it is shortened

WINDOW = {1: 2_000, 2: 128_000}  #: tokens; on the first day so few that the conversation must be shortened
STORY = {
    1: (
        "Good morning! I prefer green tea over coffee.",
        "We decided to keep the nightly backups on the server in Porto.",
        "Remember that the rent is due on the fifth of every month.",
        "Here are my notes of today's call. Ines will announce the launch on the third of March. "
        + "Bruno wants two more weeks for the map. The old phones stay supported until the summer. " * 60,
        "/new",
        "Which tea do I prefer?",
    ),
    2: (
        "Good morning! What should you bring me, tea or coffee?",
        "Where do we keep the nightly backups?",
        "When is the rent due?",
        "When will Ines announce the launch?",
        "我什么时候要交房租？",
    ),
}


# ---- the model ----------------------------------------------------------------------------------------------------


class Model(Protocol):
    """Whatever answers a conversation with a message, in the form of OpenAI's chat completions."""

    def complete(self, messages: list[Message], tools: list[Message]) -> Message: ...


class Endpoint:
    """A server that speaks OpenAI's chat completions."""

    def __init__(self, base_url: str, model: str, key: str | None) -> None:
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._model = model
        self._key = key

    def complete(self, messages: list[Message], tools: list[Message]) -> Message:
        body = {"model": self._model, "messages": messages, **({"tools": tools} if tools else {})}
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, json.dumps(body).encode(), headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
                reply: Message = json.load(answer)["choices"][0]["message"]
        except (OSError, ValueError, LookupError) as error:
            raise SystemExit(f"The model at {self._url} does not answer: {error}") from error
        return {name: value for name, value in reply.items() if value is not None}


class Script:
    """What stands in for a model: it repeats what memory tells it, and asks its tools when that is nothing."""

    def complete(self, messages: list[Message], tools: list[Message]) -> Message:
        last = messages[-1]
        if last["role"] == "tool":
            return _answer(self._told_by(json.loads(last["content"])))
        has = {tool["function"]["name"] for tool in tools}
        block, _, said = str(last["content"]).rpartition("</relevant-memories>")
        said = said.strip()
        if said.startswith("Remember") and "memory_save" in has:
            return _call("memory_save", content=said.removeprefix("Remember that ").capitalize())
        if not said.endswith(("?", "？")):
            return _answer("Understood.")
        nearest = _nearest(said, lines_of(block))
        if nearest:
            return _answer(f"As I remember it: {nearest}")
        return _call("memory_search", query=said) if "memory_search" in has else _answer("I do not know.")

    def _told_by(self, result: Message) -> str:
        if result.get("saved"):
            return f"I wrote that down in {result['path']}."
        hits = result.get("results") or []
        return f"I looked it up: {hits[0]['snippet']}" if hits else "I looked, and found nothing about it."


def _answer(text: str) -> Message:
    return {"role": "assistant", "content": " ".join(text.split())}


def _call(name: str, **arguments: str) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    call = {"id": f"call_{uuid.uuid4().hex[:8]}", "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _nearest(question: str, texts: list[str]) -> str:
    """The text with most words of the question; none when none has any."""
    words = set(re.findall(r"\w{3,}", question.lower()))
    shared = {text: len(words & set(re.findall(r"\w{3,}", text.lower()))) for text in texts}
    best = max(texts, key=lambda text: shared[text], default="")
    return best if best and shared[best] else ""


def lines_of(block: str) -> list[str]:
    """What a block of recalled text says, without where it stands."""
    return [json.loads(line)[1] for line in re.findall(r"^- (\[.*\])$", block, re.MULTILINE)]


# ---- the agent ----------------------------------------------------------------------------------------------------


class Assistant:
    """One conversation after another, over one memory."""

    def __init__(self, host: Agent, model: Model, *, window: int = 128_000) -> None:
        self.host = host
        self.model = model
        self.window = window
        self.toolbox = Toolbox(lambda: host.memory, names=host.tools)
        self._begin()

    def _begin(self) -> None:
        self.session = uuid.uuid4().hex[:12]
        self.messages: list[Message] = []
        self._emit("session_start")

    def turn(self, text: str) -> str:
        """What the agent answers."""
        if text.strip() == "/new":
            self._emit("command_new")
            self._begin()
            return "A new session has begun."
        self._make_room(text)
        told = self._emit("before_agent_start", prompt=text).prepend_context
        self.messages.append({"role": "user", "content": text})
        answer = self._answered(told)
        self._emit("agent_end")
        return answer

    def _answered(self, told: str) -> str:
        """Ask the model, and do what it asks for, until it has an answer."""
        for _ in range(MOST_CALLS):
            reply = self.model.complete(self._prompt(told), self.toolbox.openai())
            self.messages.append(reply)
            if not reply.get("tool_calls"):
                return str(reply.get("content") or "")
            for call in reply["tool_calls"]:
                wanted = call["function"]
                result = self.toolbox.call(wanted["name"], wanted["arguments"])
                log("tool", f"{wanted['name']}({wanted['arguments']})")
                content = json.dumps(result, ensure_ascii=False)
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        return "I used my tools too often, and stopped."

    def _prompt(self, told: str) -> list[Message]:
        """The conversation as the model sees it: what is remembered stands before what the user said last.

        It goes into the request alone: a host that keeps it in the conversation has it in every later request too.
        """
        system = {"role": "system", "content": f"{PERSONA}\n\n{self.toolbox.prompt()}".strip()}
        seen = [dict(message) for message in self.messages]
        if told:
            asked = next(message for message in reversed(seen) if message["role"] == "user")
            asked["content"] = f"{told}\n\n{asked['content']}"
        return [system, *seen]

    def _make_room(self, text: str) -> None:
        """Shorten a conversation that would not fit; memory writes down first what is lost by it."""
        if self._tokens() + len(text) // 4 > self.window * KEPT and len(self.messages) > 2:
            self._emit("before_compaction")
            asked = [place for place, message in enumerate(self.messages) if message["role"] == "user"]
            del self.messages[: asked[-1]]
            log("host", "the conversation was shortened")

    def _tokens(self) -> int:
        return sum(len(str(message.get("content") or "")) for message in self.messages) // 4

    def close(self) -> None:
        """The conversation is over."""
        self._emit("session_end")
        self.host.close()

    def _emit(self, event: Any, prompt: str = "") -> Effect:
        size = {"window": self.window, "tokens": self._tokens()} if event == "before_agent_start" else {}
        return self.host.emit(
            Moment(event, self.session, messages=tuple(self.messages), prompt=prompt, **size)
        )


# ---- what one sees ------------------------------------------------------------------------------------------------


def log(who: str, text: str, *, whole: bool = False) -> None:
    line = " ".join(text.split())
    line = text if whole else line if len(line) <= 160 else f"{line[:159]}…"
    print(f"{who:>8}  {line}", flush=True)


def watch(_: Moment, effect: Effect) -> None:
    """Tell what memory does by itself."""
    for done in effect.remembered:
        if done.entry:
            log("memory", f"{done.action}: {done.entry.text}")
    for saved in effect.written:
        log("memory", f"written: {saved.citation}")
    for line in lines_of(effect.prepend_context):
        log("memory", f"recalled: {line}")
    for warning in effect.warnings:
        log("warning", warning)


def story(arguments: argparse.Namespace) -> None:
    """Each day in a process of its own; they share nothing but a folder."""
    with tempfile.TemporaryDirectory() as folder:
        for day in STORY:
            print(f"\n{'─' * 40} day {day}, a new process", flush=True)
            command = [sys.executable, __file__, "--day", str(day), "--folder", folder]
            for name in ("base_url", "model"):
                given = getattr(arguments, name)
                command += [f"--{name.replace('_', '-')}", given] if given else []
            if subprocess.run(command, check=False).returncode:  # noqa: S603
                raise SystemExit(1)
        print(f"\n{'─' * 40} what is left: Markdown, for people too")
        for note in sorted(Path(folder, "notes").rglob("*.md")):
            print(f"          {note.relative_to(folder)}")


def run(arguments: argparse.Namespace) -> None:
    """One process: a day of the story, or a chat."""
    places = {}
    if arguments.folder:
        places = {"workspace": Path(arguments.folder, "notes"), "home": Path(arguments.folder, "home")}
        places["workspace"].mkdir(parents=True, exist_ok=True)
    host = Agent.open(slot="memory-full", observer=watch, **places)
    if host.error:
        log("warning", f"without memory: {host.error}")
    model = Endpoint(arguments.base_url, arguments.model, arguments.key) if arguments.base_url else Script()
    agent = Assistant(host, model, window=arguments.window)
    try:
        for text in STORY[arguments.day] if arguments.day else _typed():
            if arguments.day:
                log("user", text)
            log("agent", agent.turn(text), whole=True)
    finally:
        agent.close()


def _typed() -> Any:
    while True:
        try:
            text = input("    you > ").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if text in ("/quit", "/exit"):
            return
        if text:
            yield text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    key = os.environ.get("OPENAI_API_KEY")
    server = os.environ.get("OPENAI_BASE_URL") or ("https://api.openai.com/v1" if key else None)
    parser.add_argument("--chat", action="store_true", help="talk to it yourself")
    parser.add_argument("--base-url", default=server, help="the model's server")
    parser.add_argument("--model", default=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"))
    parser.add_argument("--window", type=int, default=None, help="the model's context window in tokens")
    parser.add_argument("--folder", help="keep notes and home in this folder, not in the usual places")
    parser.add_argument("--day", type=int, choices=sorted(STORY), help="one day of the story")
    arguments = parser.parse_args()
    arguments.key = key
    arguments.window = arguments.window or WINDOW.get(arguments.day, 128_000)
    if arguments.chat or arguments.day:
        run(arguments)
    else:
        story(arguments)


if __name__ == "__main__":
    main()
