"""The memory in other frameworks. `make frameworks` installs and tests each in an environment of its own."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memoriter import Memory
from memoriter.errors import FrameworkMissing

MODULES = {
    "adk": "google.adk",
    "agent_framework": "agent_framework",
    "hermes": "agent.memory_provider",
    "llama_index": "llama_index.core",
    "strands": "strands",
}
PLAIN = {"embedding.provider": "none"}
SAID = "I prefer tabs over spaces in all my Go code."
ASKED = "Do I prefer tabs or spaces in Go code?"


def load(name: str) -> Any:
    """Return our module for a framework, or skip the test if the framework is not installed."""
    try:
        return importlib.import_module(f"memoriter.extensions.frameworks.{name}")
    except FrameworkMissing:
        pytest.skip(f"{MODULES[name]} is not installed; run `make frameworks`")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "notes").mkdir()
    with Memory.open(tmp_path / "notes", home=tmp_path / "home", overrides=PLAIN) as opened:
        yield opened


def texts(memory: Memory) -> list[tuple[str, str]]:
    return [(entry.text, entry.trust) for entry in memory.entries.list()]


@pytest.mark.parametrize("name", MODULES)
def test_a_missing_framework_is_named_with_its_command(name: str) -> None:
    try:
        importlib.import_module(f"memoriter.extensions.frameworks.{name}")
    except FrameworkMissing as error:
        assert "is not installed. Run `" in str(error)  # noqa: PT017 - it may be installed


@pytest.mark.integration
def test_adk_keeps_users_apart_and_forgets(tmp_path: Path) -> None:
    adk = load("adk")
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session
    from google.genai.types import Content, Part

    def event(author: str, text: str) -> Event:
        return Event(author=author, content=Content(role="user", parts=[Part(text=text)]))

    async def story() -> None:
        service = adk.MemoriterMemoryService(tmp_path / "adk", overrides=PLAIN)
        events = [event("user", SAID), event("agent", "Noted."), Event(author="agent")]
        session = Session(id="s1", app_name="app", user_id="ann", events=events)
        await service.add_session_to_memory(session)
        await service.add_session_to_memory(session)
        found = await service.search_memory(app_name="app", user_id="ann", query=ASKED)
        assert found.memories[0].content.parts[0].text == SAID
        assert found.memories[0].author == "user"
        for app, user in (("app", "bob"), ("other", "ann"), ("app-ann", "")):
            assert not (await service.search_memory(app_name=app, user_id=user, query=ASKED)).memories
        await service.delete_memory(app_name="app", user_id="ann", memory_id=found.memories[0].id)
        left = await service.search_memory(app_name="app", user_id="ann", query=ASKED)
        assert not [one for one in left.memories if one.id == found.memories[0].id]
        service.close()

    asyncio.run(story())


@pytest.mark.integration
def test_adk_returns_each_event_once_with_its_author_and_its_words(tmp_path: Path) -> None:
    adk = load("adk")
    from google.adk.events.event import Event
    from google.genai.types import Content, Part

    said = [
        ("user", "The red ferry sails to Porto."),
        ("agent", "The red ferry sails at noon."),
        ("user", SAID),
    ]
    events = [
        Event(author=author, content=Content(role="user", parts=[Part(text=text)])) for author, text in said
    ]

    async def story(query: str) -> list[tuple[str, str]]:
        service = adk.MemoriterMemoryService(tmp_path / "adk", overrides=PLAIN)
        await service.add_events_to_memory(app_name="app", user_id="ann", events=events, session_id="s1")
        found = (await service.search_memory(app_name="app", user_id="ann", query=query)).memories
        service.close()
        return sorted((one.author, one.content.parts[0].text) for one in found)

    assert asyncio.run(story("Where does the red ferry sail?")) == sorted(said[:2])
    assert asyncio.run(story(ASKED)) == [("user", SAID)]


@pytest.mark.integration
def test_adk_finds_a_single_word_that_a_model_looks_for(tmp_path: Path) -> None:
    adk = load("adk")
    from google.adk.events.event import Event
    from google.genai.types import Content, Part

    said = [("user", "The ferry is a great boat."), ("agent", "I agree. The Harbour Guide praises it!")]
    events = [
        Event(author=author, content=Content(role="user", parts=[Part(text=text)])) for author, text in said
    ]

    async def story(query: str) -> list[tuple[str, str]]:
        service = adk.MemoriterMemoryService(tmp_path / "adk")
        await service.add_events_to_memory(app_name="app", user_id="ann", events=events, session_id="s1")
        found = (await service.search_memory(app_name="app", user_id="ann", query=query)).memories
        service.close()
        return [(one.author, one.content.parts[0].text) for one in found]

    assert asyncio.run(story("harbour")) == [said[1]]
    assert asyncio.run(story("lighthouse")) == []
    assert asyncio.run(story("What should I cook tonight?")) == []


@pytest.mark.integration
def test_llama_index_recalls_and_learns(memory: Memory) -> None:
    block = load("llama_index").MemoriterBlock(memory=memory)
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import Memory as Conversation

    async def story() -> str:
        await block.aput([ChatMessage(role="user", content=SAID)], session_id="s1")
        assert await block.aget([]) == ""
        conversation = Conversation.from_defaults(session_id="s2", memory_blocks=[block])
        await conversation.aput(ChatMessage(role="user", content=ASKED))
        return "\n".join(str(one.content) for one in await conversation.aget())

    assert SAID in asyncio.run(story())
    assert texts(memory) == [(SAID, "owner")]


@pytest.mark.integration
def test_agent_framework_recalls_and_learns(memory: Memory) -> None:
    provider = load("agent_framework").MemoriterContextProvider(memory)
    from agent_framework import AgentResponse, AgentSession, Message, SessionContext

    async def run(text: str) -> SessionContext:
        session, context = AgentSession(), SessionContext(input_messages=[Message("user", [text])])
        rest: dict[str, Any] = {
            "agent": SimpleNamespace(),
            "session": session,
            "context": context,
            "state": {},
        }
        await provider.before_run(**rest)
        context._response = AgentResponse(
            messages=[Message("assistant", ["Noted."])]
        )  # as the framework sets it
        await provider.after_run(**rest)
        return context

    assert not asyncio.run(run(SAID)).context_messages
    (added,) = asyncio.run(run(ASKED)).context_messages["memoriter"]
    assert SAID in added.text
    assert texts(memory) == [(SAID, "owner")]


@pytest.mark.integration
def test_strands_searches_adds_and_learns(memory: Memory) -> None:
    store = load("strands").MemoriterStore(memory)
    from strands.memory import MemoryManager

    manager = MemoryManager(stores=[store])

    async def story() -> list[str]:
        await store.add_messages([{"role": "user", "content": [{"text": SAID}]}])
        await store.add("The deploy runs on Fridays.")
        return [entry.content for entry in await manager.search(ASKED)]

    assert SAID in asyncio.run(story())
    assert sorted(texts(memory)) == [(SAID, "owner"), ("The deploy runs on Fridays.", "agent")]


@pytest.mark.integration
def test_hermes_recalls_learns_and_calls_tools(memory: Memory) -> None:
    provider = load("hermes").MemoriterProvider(memory)
    provider.initialize("s1", hermes_home="/nowhere", platform="cli")
    provider.sync_turn(SAID, "Noted.")
    provider._workers.submit(lambda: None).wait(300)
    assert SAID in provider.prefetch(ASKED)
    names = [schema["name"] for schema in provider.get_tool_schemas()]
    assert "memory_search" in names
    assert SAID in json.dumps(json.loads(provider.handle_tool_call("memory_search", {"query": ASKED})))
    assert texts(memory) == [(SAID, "owner")]
    provider.initialize("s2", agent_context="cron")
    provider.sync_turn("I prefer spaces over tabs in all my C code.", "Noted.")
    provider.shutdown()
