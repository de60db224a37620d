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
    "crewai": "crewai",
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


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Any]:
    crewai = load("crewai")
    (tmp_path / "crew").mkdir()
    with Memory.open(tmp_path / "crew", home=tmp_path / "home") as opened:
        yield crewai.MemoriterStorage(opened)


FERRY, ROOF = "The red ferry sails to Porto at noon.", "The roof of the barn was painted green."


@pytest.mark.integration
def test_crewai_keeps_finds_changes_and_forgets(storage: Any) -> None:
    from crewai.memory.storage.backend import StorageBackend
    from crewai.memory.unified_memory import Memory as CrewMemory

    assert isinstance(storage, StorageBackend)
    crew = CrewMemory(storage=storage, embedder=storage.embed)
    known: dict[str, Any] = {"importance": 0.7, "metadata": {"by": "ann"}}
    ferry = crew.remember(FERRY, scope="/crew/travel", categories=["boats"], **known)
    crew.remember(ROOF, scope="/crewmate", categories=["houses"], **known)
    found = crew.recall("When does the boat to Portugal leave?", depth="shallow", limit=1)
    assert [(one.record.content, one.record.categories, one.record.metadata) for one in found] == [
        (FERRY, ["boats"], {"by": "ann"})
    ]
    assert [one.content for one in crew.list_records("/crew")] == [FERRY]
    assert crew.list_scopes() == ["/crew", "/crewmate"]
    assert crew.info("/crew").model_dump(include={"record_count", "categories", "child_scopes"}) == {
        "record_count": 1,
        "categories": ["boats"],
        "child_scopes": ["/crew/travel"],
    }
    assert crew.list_categories() == {"boats": 1, "houses": 1}
    crew.update(ferry.id, content="The red ferry sails to Porto at nine.")
    assert storage.get_record(ferry.id).created_at == ferry.created_at
    assert "nine" in crew.recall("ferry to Porto", depth="shallow", limit=1)[0].record.content
    assert crew.forget(scope="/crew") == 1
    assert [one.record.content for one in crew.recall("ferry to Porto", depth="shallow")] == [ROOF]
    crew.reset()
    assert (crew.list_records(), storage.count(), storage.get_record(ferry.id)) == ([], 0, None)
    crew.close()


@pytest.mark.integration
def test_crewai_deletes_only_what_meets_every_condition(storage: Any) -> None:
    from datetime import datetime, timedelta

    from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
    from crewai.memory.types import MemoryRecord

    day = datetime(2026, 1, 1)  # noqa: DTZ001 - as CrewAI writes them
    records = [
        MemoryRecord(
            id=f"r{number}",
            content=f"Line {number}.",
            scope=scope,
            categories=categories,
            metadata={"n": number},
            created_at=day + timedelta(number),
            embedding=[1.0, float(number)],
        )
        for number, (scope, categories) in enumerate(
            [("a/", ["x"]), ("/a//b", ["x", "y"]), ("/ab", ["y"]), ("/", [])]
        )
    ]
    asyncio.run(storage.asave(records))

    def left() -> list[str]:
        return [one.id for one in storage.list_records()]

    assert left() == ["r3", "r2", "r1", "r0"]  # the newest first
    assert [one.id for one in storage.list_records("/a", limit=1, offset=1)] == ["r0"]
    assert [(one.id, round(score, 3)) for one, score in storage.search([1.0, 0.0], min_score=0.5)] == [
        ("r0", 1.0),
        ("r1", 0.707),
    ]
    assert [one.id for one, _ in asyncio.run(storage.asearch([1.0, 0.0], metadata_filter={"n": 2}))] == ["r2"]
    assert storage.delete(record_ids=[]) == 0
    assert storage.delete(scope_prefix="/a", categories=["y"], older_than=day) == 0
    assert asyncio.run(storage.adelete(scope_prefix="/a", categories=["y"])) == 1
    assert left() == ["r3", "r2", "r0"]
    for wrong in (
        lambda: storage.search([1.0]),
        lambda: storage.save([MemoryRecord(content="x", embedding=[1.0])]),
    ):
        with pytest.raises(EmbeddingDimensionMismatchError):
            wrong()
    storage.save(
        [MemoryRecord(id="secret", content="The key is AKIAIOSFODNN7EXAMPLQ.", embedding=[0.0, 1.0])]
    )
    assert "AKIA" not in storage.get_record("secret").content
    storage.reset("/a")
    assert left() == ["secret", "r3", "r2"]


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
