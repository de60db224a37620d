"""A small agent with long-term memory: tools, injection, capture, flush and `/new`, with any chat model.

    python examples/agent.py           a story of two days, in two processes that share only a folder
    python examples/agent.py --chat    talk to it; `/new` starts a new session, `/quit` ends

The model is any server with OpenAI's chat completions (`--base-url`, `--model`, or OPENAI_BASE_URL, OPENAI_MODEL and
OPENAI_API_KEY). Without one, a few rules take its place. They know only what the memory tells them.
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

from memoriter import Agent, Effect, Moment, Toolbox

Message = dict[str, Any]

PERSONA = "You are a helpful assistant. Be brief."
#: Tool calls in one turn.
MAX_CALLS = 8
#: Share of the window that a conversation may fill before it is shortened.
MAX_SHARE = 0.7

#: Tokens, by day. On the first day the window is so small that the conversation must be shortened.
WINDOW = {1: 2_000, 2: 128_000}
STORY = {
    1: (
        "Good morning! I prefer green tea over coffee.",
        "We decided to keep the nightly backups on the server in Porto.",
        "Remember that the rent is due on the fifth of every month.",
        "Ines will announce the launch on the third of March.",
        "Here are my notes of today's call. "
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
    """Answers a conversation with a message, in the format of OpenAI's chat completions."""

    def complete(self, messages: list[Message], tools: list[Message]) -> Message: ...


class Endpoint:
    """A server with OpenAI's chat completions."""

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
    """Rules in place of a model: repeat what the memory says, and call a tool if it says nothing."""

    def complete(self, messages: list[Message], tools: list[Message]) -> Message:
        last = messages[-1]
        if last["role"] == "tool":
            return _answer(self._describe(json.loads(last["content"])))
        has = {tool["function"]["name"] for tool in tools}
        block, _, question = str(last["content"]).rpartition("</relevant-memories>")
        question = question.strip()
        if question.startswith("Remember") and "memory_save" in has:
            return _call("memory_save", content=question.removeprefix("Remember that ").capitalize())
        if not question.endswith(("?", "？")):
            return _answer("Understood.")
        nearest = _nearest(question, lines_of(block))
        if nearest:
            return _answer(f"As I remember it: {nearest}")
        return _call("memory_search", query=question) if "memory_search" in has else _answer("I do not know.")

    def _describe(self, result: Message) -> str:
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
    """Return the text that shares the most words with the question; empty if none shares any."""
    words = set(re.findall(r"\w{3,}", question.lower()))
    shared = {text: len(words & set(re.findall(r"\w{3,}", text.lower()))) for text in texts}
    best = max(texts, key=lambda text: shared[text], default="")
    return best if best and shared[best] else ""


def lines_of(block: str) -> list[str]:
    """Return the texts of a recalled block, without their references and labels."""
    return [json.loads(line)[-1] for line in re.findall(r"^- (\[.*\])$", block, re.MULTILINE)]


# ---- the agent ----------------------------------------------------------------------------------------------------


class Assistant:
    """Holds one conversation after another, with one memory."""

    def __init__(self, agent: Agent, model: Model, *, window: int = 128_000) -> None:
        self.agent = agent
        self.model = model
        self.window = window
        self.toolbox = Toolbox(lambda: agent.memory, names=agent.tools)
        self._start_session()

    def _start_session(self) -> None:
        self.session = uuid.uuid4().hex[:12]
        self.messages: list[Message] = []
        self._emit("session_start")

    def turn(self, text: str) -> str:
        """Return the answer to what the user says."""
        if text.strip() == "/new":
            self._emit("command_new")
            self._start_session()
            return "A new session has started."
        self._make_room(text)
        recalled = self._emit("before_agent_start", prompt=text).prepend_context
        self.messages.append({"role": "user", "content": text})
        answer = self._answer(recalled)
        self._emit("agent_end")
        return answer

    def _answer(self, recalled: str) -> str:
        """Ask the model, and make the tool calls that it asks for, until it has an answer."""
        for _ in range(MAX_CALLS):
            reply = self.model.complete(self._prompt(recalled), self.toolbox.openai())
            self.messages.append(reply)
            if not reply.get("tool_calls"):
                return str(reply.get("content") or "")
            for call in reply["tool_calls"]:
                function = call["function"]
                result = self.toolbox.call(function["name"], function["arguments"])
                log("tool", f"{function['name']}({function['arguments']})")
                content = json.dumps(result, ensure_ascii=False)
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        return "I stopped after too many tool calls."

    def _prompt(self, recalled: str) -> list[Message]:
        """Return the conversation for the model, with recalled text before what the user said last.

        Recalled text is part of the request only. In the conversation it would be part of every later request too.
        """
        system = {"role": "system", "content": f"{PERSONA}\n\n{self.toolbox.prompt()}".strip()}
        seen = [dict(message) for message in self.messages]
        if recalled:
            asked = next(message for message in reversed(seen) if message["role"] == "user")
            asked["content"] = f"{recalled}\n\n{asked['content']}"
        return [system, *seen]

    def _make_room(self, text: str) -> None:
        """Shorten a conversation that would not fit. The memory first writes down what would be lost."""
        if self._tokens() + len(text) // 4 > self.window * MAX_SHARE and len(self.messages) > 2:
            self._emit("before_compaction")
            asked = [place for place, message in enumerate(self.messages) if message["role"] == "user"]
            del self.messages[: asked[-1]]
            log("host", "the conversation was shortened")

    def _tokens(self) -> int:
        return sum(len(str(message.get("content") or "")) for message in self.messages) // 4

    def close(self) -> None:
        """End the conversation."""
        self._emit("session_end")
        self.agent.close()

    def _emit(self, event: Any, prompt: str = "") -> Effect:
        size = {"window": self.window, "tokens": self._tokens()} if event == "before_agent_start" else {}
        return self.agent.emit(
            Moment(event, self.session, messages=tuple(self.messages), prompt=prompt, **size)
        )


# ---- output -------------------------------------------------------------------------------------------------------


def log(who: str, text: str, *, whole: bool = False) -> None:
    line = " ".join(text.split())
    line = text if whole else line if len(line) <= 160 else f"{line[:159]}…"
    print(f"{who:>8}  {line}", flush=True)


def watch(_: Moment, effect: Effect) -> None:
    """Print what the memory does automatically."""
    for remembered in effect.remembered:
        if remembered.entry:
            log("memory", f"{remembered.action}: {remembered.entry.text}")
    for saved in effect.written:
        log("memory", f"written: {saved.citation}")
    for line in lines_of(effect.prepend_context):
        log("memory", f"recalled: {line}")
    for warning in effect.warnings:
        log("warning", warning)


def story(arguments: argparse.Namespace) -> None:
    """Run each day in its own process. The processes share only a folder."""
    with tempfile.TemporaryDirectory() as folder:
        for day in STORY:
            print(f"\n{'─' * 40} day {day}, a new process", flush=True)
            command = [sys.executable, __file__, "--day", str(day), "--folder", folder]
            for name in ("base_url", "model"):
                given = getattr(arguments, name)
                command += [f"--{name.replace('_', '-')}", given] if given else []
            if subprocess.run(command, check=False).returncode:  # noqa: S603
                raise SystemExit(1)
        print(f"\n{'─' * 40} the result: Markdown that people can read")
        for note in sorted(Path(folder, "notes").rglob("*.md")):
            print(f"          {note.relative_to(folder)}")


def run(arguments: argparse.Namespace) -> None:
    """Run one day of the story, or a chat."""
    places = {}
    if arguments.folder:
        places = {"workspace": Path(arguments.folder, "notes"), "home": Path(arguments.folder, "home")}
        places["workspace"].mkdir(parents=True, exist_ok=True)
    agent = Agent.open(slot="memory-full", observer=watch, **places)
    if agent.error:
        log("warning", f"without memory: {agent.error}")
    model = Endpoint(arguments.base_url, arguments.model, arguments.key) if arguments.base_url else Script()
    assistant = Assistant(agent, model, window=arguments.window)
    try:
        for text in STORY[arguments.day] if arguments.day else _typed():
            if arguments.day:
                log("user", text)
            log("agent", assistant.turn(text), whole=True)
    finally:
        assistant.close()


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
    parser.add_argument("--chat", action="store_true", help="talk to the agent")
    parser.add_argument("--base-url", default=server, help="URL of the model server")
    parser.add_argument("--model", default=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"))
    parser.add_argument("--window", type=int, default=None, help="the model's context window in tokens")
    parser.add_argument("--folder", help="folder for notes and state (default: the configured places)")
    parser.add_argument("--day", type=int, choices=sorted(STORY), help="run one day of the story")
    arguments = parser.parse_args()
    arguments.key = key
    arguments.window = arguments.window or WINDOW.get(arguments.day, 128_000)
    if arguments.chat or arguments.day:
        run(arguments)
    else:
        story(arguments)


if __name__ == "__main__":
    main()
