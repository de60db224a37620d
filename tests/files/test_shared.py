"""Every writer of notes, transcripts and state announces its changes, so that a shared folder can store them."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from note_edits import append

from memoriter import Memory
from memoriter.errors import LockTimeout
from memoriter.extensions.anthropic.agent_folder import AgentFolder
from memoriter.extensions.hooks.capture import session_progress, session_queue
from memoriter.extensions.hooks.progress import SessionState
from memoriter.extensions.hooks.queue import SessionRequest
from memoriter.extensions.importing import import_export
from memoriter.files import durable, shared
from memoriter.files.locks import file_lock
from memoriter.llm.chat import Budgeted
from memoriter.records import Selection, Turn
from memoriter.server.http.auth import Tickets, Tokens
from memoriter.testing import ScriptedChat

#: Folders and files whose content other machines need.
SHARED = ("workspace", "sessions", "queue", "hooks", "seen_turns", "flushes", "tokens.json", "gateway")


class RecordingFolder:
    """Knows the files that were announced, and the locks that were taken."""

    def __init__(self, root: Path) -> None:
        self.root = os.path.realpath(root)
        self.stored: dict[str, bytes] = {}
        self.refreshed = 0
        self.locked = set[str]()
        self.locked_elsewhere = set[str]()
        self.erased: list[str] = []
        self.depth = 0
        self.announcements = 0

    def refresh(self) -> None:
        self.refreshed += 1

    @contextlib.contextmanager
    def changing(self, paths: Sequence[str]) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1
        found = files_of(Path(self.root))
        for path in {*found, *self.stored}:
            if any(Path(path).is_relative_to(named) for named in paths):
                self.stored.pop(path, None)
                if path in found:
                    self.stored[path] = found[path]

    def try_lock(self, path: str) -> bool:
        if path in self.locked_elsewhere:
            return False
        self.locked.add(path)
        return True

    def unlock(self, path: str) -> None:
        self.locked.discard(path)

    def erase_history(self, path: str) -> None:
        self.erased.append(path)

    def follow(self, on_change: Callable[[], None]) -> Callable[[], None]:
        return on_change


def files_of(root: Path) -> dict[str, bytes]:
    """Return the files that other machines need, without locks and temporary files."""
    return {
        str(path): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.suffix != ".lock" and not path.name.startswith(".")
        if any(part in SHARED for part in path.relative_to(root).parts)
    }


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RecordingFolder]:
    root = Path(os.path.realpath(tmp_path))
    recording = RecordingFolder(root)
    shared.share(root, recording)
    yield recording
    shared.unshare(root)


Work = Callable[[Memory], object]
MESSAGES = [
    {"role": "user", "content": "The garage door code changes every March."},
    {"role": "assistant", "content": "Noted, it changes in March."},
]


def save(memory: Memory) -> None:
    memory.save("Bees need water in July.", "Bees")
    memory.save("Bees need water in July.", "Bees", category="garden")
    memory.save("The agent checked the hive.", trust="agent")


def edit(memory: Memory) -> None:
    note = memory.notes.put("memory/a.md", "# One\n", version=None)
    note = memory.notes.put("memory/a.md", "# Two\n", version=note.version)
    assert note.version is not None
    moved = memory.notes.move("memory/a.md", "memory/deep/b.md", version=note.version)
    memory.notes.put("memory/c.md", "# Stays\n", version=None)
    assert moved.version is not None
    memory.notes.remove("memory/deep/b.md", version=moved.version)


def work_in_folder(memory: Memory) -> None:
    agents = AgentFolder.of(memory)
    agents.create("plans/one", "First.")
    agents.create("plans/two.md", "Second.")
    agents.edit("plans/one", lambda text: f"{text} Changed.")
    agents.rename("plans/one", "plans/three")
    agents.rename("plans", "archive")
    agents.create("gone", "Deleted soon.")
    agents.delete("gone")
    agents.delete("archive")
    agents.create("last", "Cleared.")
    agents.clear()
    agents.create("kept", "Kept.")


def forget(memory: Memory) -> None:
    memory.save("The spare key is under the pot.")
    memory.remember("The spare key is under the pot.")
    memory.erase(Selection(query="The spare key is under the pot."))


def keep_transcript(memory: Memory) -> None:
    transcript = memory.transcript_writer("demo")
    transcript.add([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])
    transcript.pop()
    other = memory.transcript_writer("other")
    other.add([{"role": "user", "content": "one"}])
    other.clear()


def capture(memory: Memory) -> None:
    memory.capture([Turn("user", "I prefer tea over coffee.", 1, None)], session="s1", record=True)
    memory.session_ended("s1")


def summarise(memory: Memory) -> None:
    memory.summarise(MESSAGES, "s2")
    memory.summarise([*MESSAGES, {"role": "user", "content": "The attic light is broken."}], "s2")


def flush(memory: Memory) -> None:
    memory.flush(MESSAGES, "s3", window=None)
    memory.flush(MESSAGES, "s3", window=1_000_000)
    memory.maintain()


def queue(memory: Memory) -> None:
    sessions = session_queue(memory.settings)
    sessions.add(SessionRequest("Stop", "s4", "/tmp/t.jsonl", 1, at=4e9))
    sessions.add(SessionRequest("Stop", "s5", "/tmp/t.jsonl", 1, at=4e9))
    assert sessions.drain(lambda request: request.session == "s4") == 1
    session_progress(memory.settings).put(SessionState("s4"))


def spend(memory: Memory) -> None:
    Budgeted(ScriptedChat("yes"), memory.settings.agent_folder / "tokens.json", daily_tokens=10_000).complete(
        "a", "b", max_tokens=10
    )


def grant(memory: Memory) -> None:
    tokens, tickets = Tokens(memory.settings.home), Tickets(memory.settings.home)
    tokens.create("read")
    tokens.revoke(tokens.create("admin")[0].id)
    assert tickets.use(tickets.issue())
    tickets.issue()


def import_conversation(memory: Memory) -> None:
    source = memory.settings.home / "export.json"
    message = {"uuid": "m", "sender": "human", "text": "Hello bees", "created_at": "2026-02-01T10:00:00Z"}
    chat = {"uuid": "c1", "name": "Bees", "created_at": "2026-02-01T10:00:00Z", "chat_messages": [message]}
    source.write_text(json.dumps([chat]))
    assert import_export(memory, source).steps


WORK: list[Work] = [
    save,
    edit,
    work_in_folder,
    forget,
    keep_transcript,
    capture,
    summarise,
    flush,
    queue,
    spend,
    grant,
    import_conversation,
]


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_every_change_of_a_file_is_announced(
    work: Work, folder: RecordingFolder, open_memory: Callable[..., Memory]
) -> None:
    memory = open_memory()
    work(memory)

    assert folder.stored == files_of(Path(folder.root)) != {}
    assert folder.depth == 0
    assert not folder.locked


def test_an_erased_line_leaves_no_earlier_version(
    folder: RecordingFolder, open_memory: Callable[..., Memory]
) -> None:
    memory = open_memory()
    forget(memory)

    assert folder.erased == [str(path) for path in (Path(folder.root) / "workspace" / "memory").glob("*.md")]


def test_a_lock_that_another_machine_holds_is_waited_for(tmp_path: Path, folder: RecordingFolder) -> None:
    lock = tmp_path / "state" / "drain.lock"
    folder.locked_elsewhere = {str(Path(folder.root) / "state" / "drain.lock")}
    with pytest.raises(LockTimeout), file_lock(lock, 0.0):
        pass
    folder.locked_elsewhere = set()
    with file_lock(lock, 0.0):
        assert folder.locked == {str(Path(folder.root) / "state" / "drain.lock")}
    assert folder.locked == set()


def test_files_outside_a_shared_folder_are_not_announced(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, folder: RecordingFolder
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "tokens.json"
    durable.write(outside, b"{}")
    append(outside, "\n")
    shared.refresh(outside)
    with shared.changing(outside), shared.changing(tmp_path / "tokens.json"):
        pass

    assert (folder.stored, folder.refreshed) == ({}, 0)
