"""A long session is processed in pieces: progress is saved, other sessions come in between, nothing counts twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_claude_code import SESSION, ClaudeCode, wait_until

from memoriter import MemoryService
from memoriter.agent import Agent, Effect, Moment
from memoriter.agent.agent import Observer
from memoriter.extensions.hooks.capture import process_queue
from memoriter.extensions.hooks.queue import SessionQueue, SessionRequest

#: A time at which no request is too old.
FAR_FUTURE = 4e9


def test_a_slow_piece_is_not_lost(claude: ClaudeCode, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine every piece takes longer than a host would wait."""
    monkeypatch.setitem(_deadlines(), "agent_end", 0.0)
    monkeypatch.setitem(_deadlines(), "session_end", 0.0)
    monkeypatch.setattr("memoriter.sessions.tail.SLICE_BYTES", 300)
    path = claude.say("I prefer tabs in Go code.")
    claude.say("I never work on Fridays.")
    _queue(claude).add(_request(path, "SessionEnd"))
    with claude.memory() as memory, MemoryService(memory) as service:
        assert (
            process_queue(Agent.open(memory.settings, service=service, slot="memory-full")),
            len(memory.entries.list()),
        ) == (1, 2)
    assert claude.waiting() == []


def test_progress_is_saved_after_every_piece(claude: ClaudeCode, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill only the rest is processed, and the end of the session does not process it again."""
    monkeypatch.setattr(
        "memoriter.sessions.seen_turns.MAX_OLD_TURNS", 2
    )  # forget the older turns of the session
    texts = [
        f"I like {name} tea very much." for name in ("black", "green", "white", "yellow", "smoked", "iced")
    ]
    for text in texts:
        path = claude.say(text)
    first = len(path.read_bytes().splitlines()[0])
    monkeypatch.setattr(
        "memoriter.sessions.tail.SLICE_BYTES", first + 2
    )  # one question and its answer per piece
    _queue(claude).add(_request(path, "SessionEnd"))
    seen = list[tuple[str, ...]]()

    def kill(_: Moment, effect: Effect) -> None:
        seen.append(tuple(done.entry.text for done in effect.remembered if done.entry))
        if len(seen) == 3:
            raise SystemExit

    with _agent(claude, kill) as agent, pytest.raises(SystemExit):
        process_queue(agent)
    assert len(claude.waiting()) == 1
    after = list[tuple[str, str]]()

    def record(moment: Moment, effect: Effect) -> None:
        after.extend((done.action, done.entry.text) for done in effect.remembered if done.entry)
        seen.append((moment.event, str(moment.captured)))

    with _agent(claude, record) as agent:
        assert process_queue(agent) == 1
    assert seen[:2] == [(texts[0],), (texts[1],)]
    # The progress of the killed piece was not saved. It is read again, and its turns are recognised.
    assert after == [("added", text) for text in texts[3:]]
    assert seen[-1] == ("session_end", "True")
    assert claude.entries() == texts


def test_other_sessions_are_processed_between_two_pieces(tmp_path: Path) -> None:
    queue, processed = SessionQueue(tmp_path / "queue"), list[str]()
    for session in ("long", "short", "long", "other"):
        queue.add(_request(tmp_path / "x.jsonl", session=session))

    def handle(request: SessionRequest) -> bool | None:
        processed.append(request.session)
        return None if request.session == "long" and processed.count("long") < 3 else True

    assert queue.drain(handle) == 4
    assert processed == ["long", "short", "other", "long", "long", "long"]
    assert queue.pending() == []


def test_a_caller_waits_only_for_its_own_session(tmp_path: Path) -> None:
    queue = SessionQueue(tmp_path / "queue")
    queue.add(_request(tmp_path / "x.jsonl", session="long"))
    started, requested, over = threading.Event(), threading.Event(), threading.Event()
    pieces = list[str]()

    def handle(request: SessionRequest) -> bool | None:
        if request.session == "short":
            return True
        pieces.append(request.session)
        started.set()
        assert (over if len(pieces) == 3 else requested).wait(120)
        return True if len(pieces) == 3 else None

    busy = threading.Thread(target=queue.drain, args=(handle,))
    busy.start()
    assert started.wait(120)
    own = queue.add(_request(tmp_path / "y.jsonl", session="short"))
    assert queue.is_draining()
    requested.set()
    assert queue.drain(lambda _: False, wait_s=300.0, own=own) == 0
    assert (busy.is_alive(), len(queue.pending())) == (True, 1)
    over.set()
    busy.join(120)
    assert (queue.pending(), queue.is_draining()) == ([], False)


def test_before_a_prompt_only_turns_are_processed_and_summaries_wait(claude: ClaudeCode) -> None:
    """The summary of the old session is written after the next one."""
    _queue(claude).add(_request(claude.say("I prefer tabs in Go code.", session="old"), "SessionEnd", "old"))
    assert "I prefer tabs in Go code." in claude.context("UserPromptSubmit", prompt="Tabs in Go code?")
    assert (len(claude.waiting()), list((claude.workspace / "memory").iterdir())) == (1, [])
    claude.say("Thank you.")
    claude.process()
    wait_until(lambda: not claude.waiting())
    assert len(list((claude.workspace / "memory").iterdir())) == 1


def test_records_without_turns_cause_no_moment(claude: ClaudeCode) -> None:
    path = claude.say("I prefer tabs in Go code.")
    claude.process()
    with path.open("a") as file:
        file.write(json.dumps({"type": "file-history-snapshot", "messageId": "m"}) + "\n")
    _queue(claude).add(_request(path, session=SESSION))
    moments = list[Moment]()
    with _agent(claude, lambda moment, _: moments.append(moment)) as agent:
        assert (process_queue(agent), moments) == (1, [])


@contextmanager
def _agent(claude: ClaudeCode, observer: Observer) -> Iterator[Agent]:
    with claude.memory() as memory:
        service = MemoryService(memory)
        with Agent.open(memory.settings, service=service, slot="memory-full", observer=observer) as agent:
            yield agent


def _deadlines() -> dict[str, float]:
    from memoriter.agent import hooks as bus

    return bus.DEADLINES  # type: ignore[return-value]


def _queue(claude: ClaudeCode) -> SessionQueue:
    return SessionQueue(claude.home / "agents" / "main" / "queue")


def _request(path: Path, event: str = "Stop", session: str = "s") -> SessionRequest:
    return SessionRequest(
        event, session, str(path), path.stat().st_size if path.exists() else 0, "", FAR_FUTURE
    )
