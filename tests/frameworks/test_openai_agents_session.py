"""MemoriterSession follows the SDK's contract: compared with the SDK's own session, and inside its real Runner."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, Session, SessionSettings, SQLiteSession, function_tool, set_tracing_disabled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_model import ScriptedModel, calls, says

from memoriter import Memory
from memoriter.errors import WriteError
from memoriter.extensions.openai_agents.session import MemoriterSession

# Loading the framework takes seconds in every worker.
pytestmark = pytest.mark.integration

OpenMemory = Callable[..., Memory]
EXAMPLES = 500 if os.environ.get("MEMORITER_SOAK") else 20
set_tracing_disabled(True)


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def transcripts(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "state").glob("agents/*/sessions/*.jsonl"))


# ---- beside the SDK's own session --------------------------------------------------------------------------------

items = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.text(max_size=20)}),
    st.fixed_dictionaries(
        {
            "type": st.just("message"),
            "role": st.just("assistant"),
            "content": st.lists(
                st.fixed_dictionaries({"type": st.just("output_text"), "text": st.text(max_size=9)}),
                max_size=2,
            ),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("function_call"),
            "call_id": st.text(min_size=1, max_size=4),
            "name": st.just("look"),
            "arguments": st.just("{}"),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("function_call_output"),
            "call_id": st.text(max_size=4),
            "output": st.text(max_size=9),
        }
    ),
    st.fixed_dictionaries(
        {"type": st.just("message"), "item": st.just(1), "message": st.just({"role": "x"})}
    ),
)
steps = st.one_of(
    st.tuples(st.just("add_items"), st.lists(items, max_size=3)),
    st.tuples(st.just("get_items"), st.one_of(st.none(), st.integers(-1, 5))),
    st.tuples(st.just("pop_item")),
    st.tuples(st.just("clear_session")),
)


@pytest.mark.requirement("X9")
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=st.lists(steps, max_size=12), limit=st.one_of(st.none(), st.integers(0, 3)))
def test_operations_give_the_same_items_as_the_sdks_session(
    memory: Memory, script: list[tuple[Any, ...]], limit: int | None
) -> None:
    async def main() -> None:
        ours = MemoriterSession("same", memory, session_settings=SessionSettings(limit=limit))
        theirs = SQLiteSession("same", session_settings=SessionSettings(limit=limit))
        await ours.clear_session()
        for name, *arguments in script:
            assert await getattr(ours, name)(*arguments) == await getattr(theirs, name)(*arguments)
        assert await ours.get_items(100) == await theirs.get_items(100)
        theirs.close()

    asyncio.run(main())


def test_it_implements_the_session_protocol(memory: Memory) -> None:
    assert isinstance(MemoriterSession("s", memory), Session)


# ---- in the runner -----------------------------------------------------------------------------------------------


@function_tool
def fetch_page(url: str) -> str:
    """Fetch a page."""
    return f"contents of {url}"


def test_a_second_process_continues_the_conversation(open_memory: OpenMemory) -> None:
    with open_memory() as memory:
        model = ScriptedModel([says("Noted: hazelnuts.")])
        agent = Agent(name="a", model=model)
        asyncio.run(Runner.run(agent, "I am allergic to hazelnuts", session=MemoriterSession("mira", memory)))
    memory = open_memory()
    model = ScriptedModel([says("You said hazelnuts.")])
    agent = Agent(name="a", model=model)
    done = asyncio.run(Runner.run(agent, "What must I avoid?", session=MemoriterSession("mira", memory)))
    assert done.final_output == "You said hazelnuts."
    shown = [(item.get("role"), item.get("content")) for item in model.shown[0]]  # type: ignore[union-attr]
    assert shown[0] == ("user", "I am allergic to hazelnuts")
    assert shown[1][0] == "assistant"
    assert shown[2] == ("user", "What must I avoid?")


def test_past_conversations_are_found_and_cited_by_line(memory: Memory) -> None:
    model = ScriptedModel([says("The ferry leaves at nine.")])
    session = MemoriterSession("travel/2026", memory)
    asyncio.run(
        Runner.run(Agent(name="a", model=model), "When does the ferry to Barreiro leave?", session=session)
    )
    hit = memory.search("ferry Barreiro", source="sessions").hits[0]
    assert hit.path.startswith("sessions/travel-2026-")
    assert "ferry to Barreiro" in memory.read(hit.path, hit.start_line, 5).text


def test_tool_calls_are_stored_and_mark_later_messages_as_untrusted(memory: Memory) -> None:
    model = ScriptedModel([calls("fetch_page", '{"url": "x"}', "c1")], [says("The page praises Kunibert.")])
    session = MemoriterSession("tools", memory)
    agent = Agent(name="a", model=model, tools=[fetch_page])
    asyncio.run(Runner.run(agent, "Read x", session=session))
    kinds = [item.get("type", item.get("role")) for item in asyncio.run(session.get_items())]  # type: ignore[union-attr]
    assert kinds == ["user", "function_call", "function_call_output", "message"]
    (hit,) = [
        hit for hit in memory.search("praises Kunibert", source="sessions").hits if "Kunibert" in hit.snippet
    ]
    assert hit.trust == "untrusted"


def test_removed_items_are_no_longer_found(memory: Memory) -> None:
    session = MemoriterSession("s", memory)
    asyncio.run(
        session.add_items([user("the zebra is called Kunibert"), user("the penguin is called Adelheid")])
    )
    assert memory.search("Adelheid penguin", source="sessions").hits
    asyncio.run(session.pop_item())
    assert not [hit for hit in memory.search("Adelheid penguin").hits if "Adelheid" in hit.snippet]
    assert memory.search("Kunibert zebra", source="sessions").hits
    asyncio.run(session.add_items([user("the walrus is called Ottokar and he is heavier than all before")]))
    assert memory.search("Ottokar walrus", source="sessions").hits
    asyncio.run(session.clear_session())
    assert memory.search("Kunibert zebra walrus", source="sessions").hits == ()


def test_with_capture_a_message_becomes_an_entry_once_even_if_a_hook_captures_it_too(
    memory: Memory,
) -> None:
    session = MemoriterSession("s", memory, capture=True)
    said = user("I prefer to be called Mimi, remember that.")
    asyncio.run(session.add_items([said]))
    memory.capture_messages([said], session="s")
    entries = memory.entries.list()
    assert [(entry.session, entry.repetitions) for entry in entries] == [("s", 1)]


# ---- on the disk -------------------------------------------------------------------------------------------------


def test_similar_names_do_not_share_a_conversation(memory: Memory, tmp_path: Path) -> None:
    names = ["a/b", "a b", "A b", "../a b", "数据", "data\n"]
    for name in names:
        asyncio.run(MemoriterSession(name, memory).add_items([user(name)]))
    for name in names:
        assert asyncio.run(MemoriterSession(name, memory).get_items()) == [user(name)]
    files = transcripts(tmp_path)
    assert len(files) == len(names)
    assert {oct(file.stat().st_mode)[-3:] for file in files} == {"600"}


def test_an_incomplete_line_of_a_killed_writer_is_ignored_and_then_removed(
    memory: Memory, tmp_path: Path
) -> None:
    session = MemoriterSession("s", memory)
    asyncio.run(session.add_items([user("one")]))
    (file,) = transcripts(tmp_path)
    with file.open("ab") as torn:
        torn.write(b'{"type": "message", "message": {"role": "us')
    assert asyncio.run(session.get_items()) == [user("one")]
    asyncio.run(session.add_items([user("two")]))
    assert asyncio.run(session.get_items()) == [user("one"), user("two")]
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_an_item_that_is_not_json_is_rejected_and_nothing_is_added(memory: Memory) -> None:
    session = MemoriterSession("s", memory)
    bad: Any = {"role": "user", "content": object()}
    with pytest.raises(WriteError, match="cannot be written as JSON"):
        asyncio.run(session.add_items([user("good"), bad]))
    assert asyncio.run(session.get_items()) == []


def test_a_lone_surrogate_is_preserved(memory: Memory) -> None:
    session = MemoriterSession("s", memory)
    asyncio.run(session.add_items([user("tea \ud83d")]))
    assert asyncio.run(session.get_items()) == [user("tea \ud83d")]


def test_a_transcript_that_is_a_link_is_not_followed(memory: Memory, tmp_path: Path) -> None:
    session = MemoriterSession("s", memory)
    asyncio.run(session.add_items([user("one")]))
    (file,) = transcripts(tmp_path)
    target = tmp_path / "elsewhere.jsonl"
    target.write_text("{}\n")
    file.unlink()
    file.symlink_to(target)
    with pytest.raises(WriteError):
        asyncio.run(session.add_items([user("two")]))
    assert target.read_text() == "{}\n"


WRITER = """
import asyncio, os, sys
from memoriter import Memory

memory = Memory.open(sys.argv[1], home=sys.argv[2], overrides={"embedding.provider": "none"})
# What the session writes to, without the seconds that the SDK takes to load.
journal = memory.transcript_writer("shared")


async def main():
    items = [{"role": "user", "content": f"{sys.argv[3]}-{n}"} for n in range(10)]
    await asyncio.gather(*(asyncio.to_thread(journal.add, [item]) for item in items))


asyncio.run(main())
os._exit(9)  # as if killed right after
"""


def test_concurrent_writers_lose_no_item_even_if_they_are_killed_right_after(
    memory: Memory, workspace: Path, tmp_path: Path
) -> None:
    places = [str(workspace), str(tmp_path / "state")]
    workers = [subprocess.Popen([sys.executable, "-c", WRITER, *places, str(n)]) for n in range(2)]
    assert [worker.wait(600) for worker in workers] == [9, 9]
    found: list[Any] = list(asyncio.run(MemoriterSession("shared", memory).get_items()))
    assert sorted(item["content"] for item in found) == sorted(
        f"{w}-{n}" for w in range(2) for n in range(10)
    )


def test_a_cancelled_caller_leaves_a_complete_change(memory: Memory) -> None:
    session = MemoriterSession("s", memory)

    async def main() -> list[Any]:
        task = asyncio.create_task(session.add_items([user(str(n)) for n in range(50)]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.get_items()

    assert len(asyncio.run(main())) in (0, 50)
