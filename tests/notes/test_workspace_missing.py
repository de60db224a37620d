"""A missing workspace with indexed notes is not created again, because its volume may not be mounted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memoriter import Memory, MemoryService
from memoriter.agent import Agent
from memoriter.errors import SourceError, WriteError
from memoriter.extensions.anthropic.agent_folder import AgentFolder
from memoriter.extensions.hooks.capture import process_queue
from memoriter.extensions.hooks.queue import SessionQueue, SessionRequest

TALK = (
    {"role": "user", "content": "Which day do we release?"},
    {"role": "assistant", "content": "We decided to release on Monday."},
)
WRITERS: dict[str, Callable[[Memory], object]] = {
    "save": lambda memory: memory.save("Backups run at three."),
    "an item": lambda memory: memory.save("Ship in March.", "Goals", category="project"),
    "a summary": lambda memory: memory.summarise(TALK, "s"),
    "a flush": lambda memory: memory.flush(TALK, "s", window=None),
    "the agent's folder": lambda memory: AgentFolder.of(memory).create("notes", "Tea."),
}


@pytest.fixture
def known(workspace: Path, tmp_path: Path) -> Callable[[], Memory]:
    """Return a function that opens the memory of an indexed workspace. Its folder may be moved in between."""

    def open_() -> Memory:
        home, overrides = tmp_path / "state", {"embedding.provider": "none"}
        return Memory.open(workspace, home=home, overrides=overrides)

    (workspace / "MEMORY.md").write_text("# The safe\n\nIts code is with Anna.\n", encoding="utf-8")
    with open_() as memory:
        memory.sync()
    return open_


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_missing_workspace_with_indexed_notes_is_not_written(
    known: Callable[[], Memory], workspace: Path, tmp_path: Path, write: Callable[[Memory], object]
) -> None:
    shutil.move(workspace, tmp_path / "away")
    with known() as memory, pytest.raises(WriteError) as refused:
        write(memory)
    assert str(refused.value) == (
        f"The workspace {workspace} is missing, although its notes are indexed. Nothing was written. Mount its volume"
        " and try again, or run `memoriter init` to create it again if it is gone for good."
    )
    with known() as memory, pytest.raises(SourceError, match="Mount its volume"):
        memory.sync()
    assert not workspace.exists()
    shutil.move(tmp_path / "away", workspace)
    with known() as memory:
        write(memory)
        assert memory.search("safe code").hits[0].citation.startswith("MEMORY.md")


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_new_workspace_is_created(tmp_path: Path, write: Callable[[Memory], object]) -> None:
    place = tmp_path / "new"
    with Memory.open(place, home=tmp_path / "state", overrides={"embedding.provider": "none"}) as memory:
        write(memory)
    assert [path.is_file() for path in (place / "memory").rglob("*.md")] == [True]


def test_a_session_that_ends_stays_queued_until_the_workspace_is_back(
    known: Callable[[], Memory], workspace: Path, tmp_path: Path
) -> None:
    talk = tmp_path / "talk.jsonl"
    talk.write_text('{"role": "user", "content": "I prefer tabs in Go code."}\n', encoding="utf-8")
    queue = SessionQueue(tmp_path / "state" / "agents" / "main" / "queue")
    queue.add(SessionRequest("SessionEnd", "s", str(talk), talk.stat().st_size, "", 4e9))

    def process() -> tuple[int, int, list[str]]:
        with known() as memory:
            agent = Agent.open(memory.settings, service=MemoryService(memory), slot="memory-full")
            with agent:
                finished = process_queue(agent)
            return finished, len(queue.pending()), [entry.text for entry in memory.entries.list()]

    shutil.move(workspace, tmp_path / "away")
    assert process() == (0, 1, ["I prefer tabs in Go code."])
    assert not workspace.exists()
    shutil.move(tmp_path / "away", workspace)
    assert process() == (1, 0, ["I prefer tabs in Go code."])
    assert len(list((workspace / "memory").glob("*.md"))) == 1
