"""Whatever a program or a host hands over, no secret of it is in a file of the home afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoriter import Memory
from memoriter.extensions.hooks.progress import SessionProgress, SessionState
from memoriter.extensions.hooks.queue import SessionQueue, SessionRequest
from memoriter.extensions.importing import import_export
from memoriter.extensions.importing.copying import copy_file, plan_copy
from memoriter.records import Turn
from memoriter.text.encoding import slug

KEY = "ghp" + "_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
PASSWORD = "tr0ub4dor" + "&3x"
PRIVATE = "pineapple471142"
TEXT = f"I use the key {KEY}, my password is {PASSWORD}. <private>{PRIVATE}</private>"
OpenMemory = Callable[..., Memory]


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory()


def leaks(folder: Path) -> list[tuple[str, str]]:
    """Return the files that contain a secret, in their bytes or in their names."""
    return [
        (str(file.relative_to(folder)), secret)
        for file in sorted(folder.rglob("*"))
        for secret in (KEY, PASSWORD, PRIVATE)
        if secret in str(file) or (file.is_file() and secret.encode() in file.read_bytes())
    ]


def write_transcript(memory: Memory, tmp_path: Path) -> None:
    writer = memory.transcript_writer("s-1")
    writer.add(
        [
            {"role": "user", "content": TEXT},
            {"role": "tool", "output": {"password": PASSWORD, "rows": [TEXT]}},
        ]
    )
    text = "I use the key [redacted github token], my password is [redacted secret]. "
    assert writer.items() == [
        {"role": "user", "content": text},
        {"role": "tool", "output": {"password": "[redacted secret]", "rows": [text]}},
    ]


def name_a_session(memory: Memory, tmp_path: Path) -> None:
    name = f"deploy {KEY}"
    memory.transcript_writer(name).add([{"role": "user", "content": "The heron lands at noon."}])
    assert memory.transcript_writer(name).items() == [{"role": "user", "content": "The heron lands at noon."}]
    memory.capture([Turn("user", "I prefer tea to coffee in the morning.")], session=name, record=True)
    assert [entry.text for entry in memory.entries.list(session=name)] == [
        "I prefer tea to coffee in the morning."
    ]
    memory.recall("What do I drink in the morning?", session=name)
    messages = [
        {"role": "user", "content": "Please remember that we deploy on Mondays."},
        {"role": "assistant", "content": "We deploy on Mondays."},
    ]
    memory.summarise(messages, name)
    memory.flush(messages, name, window=1000, tokens=1000)


def name_a_source(memory: Memory, tmp_path: Path) -> None:
    memory.entries.add("The heron lands at noon.", source=f"mail {KEY}", tags=(KEY,), category=f"keys {KEY}")
    memory.save("The heron lands at noon.", title=f"Key {KEY}", tags=[KEY], category=f"Keys {KEY}")


def store_items(memory: Memory, tmp_path: Path) -> None:
    store_module = pytest.importorskip("memoriter.extensions.langgraph.store")
    store = store_module.MemoriterStore(memory)
    namespace = ("users", f"anna {KEY}")
    store.put(
        namespace,
        f"password {PASSWORD} {KEY}",
        {"text": TEXT, "login": {"password": PASSWORD}, "id": "call_1"},
    )
    store.put(namespace, "other", {"text": "tea"})
    found = store.get(namespace, f"password {PASSWORD} {KEY}")
    assert found.value["login"] == {"password": "[redacted secret]"}
    assert {item.value["text"][:5] for item in store.search(namespace)} == {"I use", "tea"}


def import_conversation(memory: Memory, tmp_path: Path) -> None:
    message = {
        "author": {"role": "user"},
        "create_time": 1.7e9,
        "content": {"content_type": "text", "parts": [TEXT]},
    }
    nodes = {"a": {"id": "a", "message": {"id": "a", **message}, "parent": None, "children": []}}
    conversation = {
        "id": "c-1",
        "title": f"Key {KEY}",
        "mapping": nodes,
        "current_node": "a",
        "create_time": 1.7e9,
    }
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([conversation]))
    assert [step.action for step in import_export(memory, file).steps] == ["new"]
    assert [step.action for step in import_export(memory, file).steps] == ["same"]


def copy_transcript(memory: Memory, tmp_path: Path) -> None:
    file, sessions = tmp_path / "host.jsonl", memory.settings.agent_folder / "sessions"
    lines = [
        {"type": "user", "sessionId": "h-1", "message": {"role": "user", "content": text}}
        for text in (TEXT, "Tea.")
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines[:1]))
    for action in ("new", "same", "grown", "same"):
        step = plan_copy("session", file, sessions, "host", file.name)
        assert step.action == action
        copy_file(step, sessions)
        if action == "same":
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def queue_a_session(memory: Memory, tmp_path: Path) -> None:
    name, folder = f"deploy {KEY}", memory.settings.agent_folder / "claude_code"
    assert SessionQueue(folder / "queue").add(SessionRequest("Stop", name, "t.jsonl", 1))
    progress = SessionProgress(folder / "sessions")
    progress.put(SessionState(name, project="p"))
    assert progress.get(name).project == "p"


@pytest.mark.parametrize(
    "act",
    [
        write_transcript, name_a_session, name_a_source, store_items, import_conversation, copy_transcript,
        queue_a_session,
    ],
    ids=lambda act: act.__name__,
)  # fmt: skip
def test_no_secret_reaches_a_file(
    act: Callable[[Memory, Path], None], memory: Memory, workspace: Path, tmp_path: Path
) -> None:
    act(memory, tmp_path)
    memory.sync()
    memory.close()
    assert leaks(tmp_path / "state") == []
    assert leaks(workspace) == []


def test_different_names_with_a_secret_stay_different(memory: Memory) -> None:
    names = [f"deploy ghp_{letter * 18}{letter.upper() * 17}1" for letter in "ab"]
    for name in names:
        memory.transcript_writer(name).add([{"role": "user", "content": name[7:8]}])
    assert [memory.transcript_writer(name).items()[0]["content"] for name in names] == [
        name[7:8] for name in names
    ]


def test_ids_that_programs_look_up_again_are_kept(memory: Memory) -> None:
    item: dict[str, Any] = {
        "type": "function_call",
        "id": "fc_68a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f607",
        "call_id": "call_aB3dE5gH7jK9mN1pQ3sT5vW7",
        "name": "add",
        "arguments": "{}",
        "encrypted_content": "gAAAAABaB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5",
    }
    writer = memory.transcript_writer("s-1")
    writer.add([item])
    assert writer.items() == [item]


def test_a_transcript_whose_name_an_older_version_stored_is_still_found(memory: Memory) -> None:
    name = f"deploy {KEY}"
    writer = memory.transcript_writer(name)
    old = writer.path.with_name(f"{slug(name)}-{writer.path.stem[-12:]}.jsonl")
    old.parent.mkdir(parents=True, exist_ok=True)
    old.write_text(json.dumps({"type": "message", "message": {"role": "user", "content": "Tea."}}) + "\n")
    assert memory.transcript_writer(name).items() == [{"role": "user", "content": "Tea."}]
