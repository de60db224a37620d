"""A closed memory raises at every call and opens nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memoriter import Memory, MemoryClosed
from memoriter.memory import parts_of
from memoriter.memory_parts import MemoryParts
from memoriter.records import Query, Recall

ARGUMENTS: dict[str, tuple[tuple[object, ...], dict[str, object]]] = {
    "search": (("x",), {}),
    "read": (("memory/a.md",), {}),
    "remember": (("x",), {}),
    "forget": (("x",), {}),
    "erase": (("x",), {}),
    "recall": (("x",), {}),
    "brief": (("x",), {}),
    "capture": (([],), {"session": "s"}),
    "capture_messages": (([],), {"session": "s"}),
    "session_ended": (("s",), {}),
    "save": (("x",), {}),
    "summarise": (([], "s"), {}),
    "summarise_transcript": (("sessions/s.jsonl",), {}),
    "flush": (([], "s"), {"window": None}),
    "transcript_writer": (("s",), {}),
    "allows": ((None,), {}),
    "prompt_section": (({},), {}),
}
PUBLIC = [name for name in vars(Memory) if not name.startswith("_") and name not in ("open", "close")]


PARTS: dict[str, Callable[[MemoryParts], object]] = {
    "a search for a prompt": lambda parts: parts.search.for_prompt(Query("x")),
    "the texts of a recall": lambda parts: parts.search.texts_of(Recall("r", 0.0, "i", None, "x", 0, 0, ())),
    "relayed words": lambda parts: parts.mark_relayed(("x",)),
    "a session that began": lambda parts: parts.session_began("s"),
    "waiting turns": lambda parts: parts.count_waiting_turns("s"),
    "the name of a session": lambda parts: parts.allows_name(None),
    "the trust rules": lambda parts: parts.trust_rules,
    "the embedder": lambda parts: parts.embedder,
    "whether there were notes": lambda parts: parts.knows_notes,
    "the watcher": lambda parts: parts.watching,
    "a warm-up": lambda parts: parts.warm_up(load_model=True),
    "a part of another package": lambda parts: parts.open_once("mine", object),
}


@pytest.mark.parametrize("ask", PARTS.values(), ids=PARTS)
def test_the_parts_of_a_closed_memory_raise_too(ask: Callable[[MemoryParts], object], open_memory) -> None:
    memory = open_memory()
    memory.close()
    with pytest.raises(MemoryClosed, match="This memory is closed"):
        ask(parts_of(memory))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_closed_memory_raises_and_opens_nothing(name: str, open_memory, tmp_path: Path) -> None:
    memory = open_memory()
    memory.entries.list()
    memory.close()
    memory.close()
    before = sorted((tmp_path / "state").rglob("*"))
    positional, named = ARGUMENTS.get(name, ((), {}))
    with pytest.raises(MemoryClosed) as refused:
        getattr(memory, name)(*positional, **named)
    assert str(refused.value) == "This memory is closed. Open it again with `memoriter.open`."
    assert sorted((tmp_path / "state").rglob("*")) == before
