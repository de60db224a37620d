"""Canary secrets of every kind, given to every interface, never reach a file, a prompt or the log (P20)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from test_redaction import SECRETS

from memoriter import Memory
from memoriter.memory import parts_of
from memoriter.notes.summary import Summaries
from memoriter.sessions.messages import turns_of_messages
from memoriter.testing import ScriptedChat

CANARIES = [text for texts in SECRETS.values() for text in texts]


def sentence_with(canary: str) -> str:
    return f"We decided on the heron key, it is {canary} from now on. <private>and PIN 471142</private>"


@pytest.mark.requirement("X11")
def test_no_canary_is_stored_anywhere(
    open_memory: Callable[..., Memory], workspace: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    messages = [
        {"role": role, "content": sentence_with(canary)}
        for canary in CANARIES
        for role in ("user", "assistant")
    ]
    sessions = tmp_path / "state/agents/main/sessions"
    sessions.mkdir(parents=True)
    (sessions / "s.jsonl").write_text("".join(json.dumps(m) + "\n" for m in messages), encoding="utf-8")
    memory = open_memory()
    memory.sync()
    for canary in CANARIES:
        memory.save(sentence_with(canary), title=f"key {canary}", tags=[canary])
        memory.save(sentence_with(canary), category=f"keys {canary}")
    memory.summarise(messages, "s-1")
    memory.flush(messages, "s-2", window=1000, tokens=1000)
    chat = ScriptedChat(
        *[json.dumps({"title": "Keys", "facts": [f"It is {canary}." for canary in CANARIES[:8]]})] * 2
    )
    asked = Summaries(parts_of(memory).notebook, chat, tmp_path / "other")
    asked.write(turns_of_messages(messages), "s-3")
    memory.sync()
    memory.close()
    kept = {
        str(file): file.read_bytes() + str(file).encode()
        for root in (workspace, tmp_path / "state", tmp_path / "other")
        for file in root.rglob("*")
        if file.is_file() and file.suffix != ".jsonl"
    }
    kept["prompts"], kept["log"] = "\n".join(chat.asked).encode(), caplog.text.encode()
    assert any(b"[redacted openai key]" in data for data in kept.values())
    found = [(name, canary) for name, data in kept.items() for canary in CANARIES if canary.encode() in data]
    assert found == []
    assert not [name for name, data in kept.items() if b"471142" in data]
