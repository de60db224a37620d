"""A long session is heard in pieces: what was done is kept, others have their turn between, nothing counts twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_claude_code import SESSION, ClaudeCode, until

from memoriter import MemoryService
from memoriter.agent import Agent, Effect, Moment
from memoriter.agent.agent import Observer
from memoriter.integrations.claude_code.capture import process_queue, process_queue_of
from memoriter.sessions.queue import SessionQueue, SessionRequest

FAR = 4e9  #: a time at which nothing is too old


def test_a_piece_that_takes_long_is_kept(claude: ClaudeCode, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine every piece is later than a host would wait."""
    monkeypatch.setitem(_deadlines(), "agent_end", 0.0)
    monkeypatch.setitem(_deadlines(), "session_end", 0.0)
    monkeypatch.setattr("memoriter.sessions.tail.SLICE_BYTES", 300)
    path = claude.say("I prefer tabs in Go code.")
    claude.say("I never work on Fridays.")
    _spool(claude).add(_request(path, "SessionEnd"))
    with claude.memory() as memory, MemoryService(memory) as service:
        assert (process_queue_of(service), len(memory.entries.list())) == (1, 2)
    assert claude.waiting() == []


def test_every_piece_is_noted_when_it_is_done(claude: ClaudeCode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever goes on after a kill hears the rest alone; what came before the end is not heard at the end again."""
    monkeypatch.setattr(
        "memoriter.sessions.seen_turns.MAX_OLD_TURNS", 2
    )  # of a longer session not every turn is known
    texts = [
        f"I like {name} tea very much." for name in ("black", "green", "white", "yellow", "smoked", "iced")
    ]
    for text in texts:
        path = claude.say(text)
    first = len(path.read_bytes().splitlines()[0])
    monkeypatch.setattr(
        "memoriter.sessions.tail.SLICE_BYTES", first + 2
    )  # a question and its answer at a time
    _spool(claude).add(_request(path, "SessionEnd"))
    seen = list[tuple[str, ...]]()

    def killed(_: Moment, effect: Effect) -> None:
        seen.append(tuple(done.entry.text for done in effect.remembered if done.entry))
        if len(seen) == 3:
            raise SystemExit

    with _host(claude, killed) as host, pytest.raises(SystemExit):
        process_queue(host)
    assert len(claude.waiting()) == 1
    after = list[tuple[str, str]]()

    def noted(moment: Moment, effect: Effect) -> None:
        after.extend((done.action, done.entry.text) for done in effect.remembered if done.entry)
        seen.append((moment.event, str(moment.heard)))

    with _host(claude, noted) as host:
        assert process_queue(host) == 1
    assert seen[:2] == [(texts[0],), (texts[1],)]
    # The piece at which the process was killed was not noted: it is looked at once more, and its turns are known.
    assert after == [("added", text) for text in texts[3:]]
    assert seen[-1] == ("session_end", "True")
    assert claude.learned() == texts


def test_other_sessions_have_their_turn_between_two_pieces(tmp_path: Path) -> None:
    spool, heard = SessionQueue(tmp_path / "queue"), list[str]()
    for session in ("long", "short", "long", "other"):
        spool.add(_request(tmp_path / "x.jsonl", session=session))

    def handle(request: SessionRequest) -> bool | None:
        heard.append(request.session)
        return None if request.session == "long" and heard.count("long") < 3 else True

    assert spool.drain(handle) == 4
    assert heard == ["long", "short", "other", "long", "long", "long"]
    assert spool.waiting() == []


def test_whoever_asked_waits_for_its_own_session_alone(tmp_path: Path) -> None:
    spool = SessionQueue(tmp_path / "queue")
    spool.add(_request(tmp_path / "x.jsonl", session="long"))
    begun, asked, over = threading.Event(), threading.Event(), threading.Event()
    pieces = list[str]()

    def handle(request: SessionRequest) -> bool | None:
        if request.session == "short":
            return True
        pieces.append(request.session)
        begun.set()
        assert (over if len(pieces) == 3 else asked).wait(30)
        return True if len(pieces) == 3 else None

    busy = threading.Thread(target=spool.drain, args=(handle,))
    busy.start()
    assert begun.wait(30)
    own = spool.add(_request(tmp_path / "y.jsonl", session="short"))
    assert spool.is_drained()
    asked.set()
    assert spool.drain(lambda _: False, wait_s=300.0, own=own) == 0
    assert (busy.is_alive(), len(spool.waiting())) == (True, 1)
    over.set()
    busy.join(30)
    assert (spool.waiting(), spool.is_drained()) == ([], False)


def test_who_has_no_time_leaves_the_end_of_a_session_for_later(claude: ClaudeCode) -> None:
    """Before a prompt is answered what was said is heard; its summary can wait."""
    _spool(claude).add(_request(claude.say("I prefer tabs in Go code.", session="old"), "SessionEnd", "old"))
    assert "I prefer tabs in Go code." in claude.told("UserPromptSubmit", prompt="Tabs in Go code?")
    assert (len(claude.waiting()), list((claude.workspace / "memory").iterdir())) == (1, [])
    claude.say("Thank you.")
    claude.heard()
    until(lambda: not claude.waiting())
    assert len(list((claude.workspace / "memory").iterdir())) == 1


def test_a_session_in_which_nobody_spoke_is_not_heard_again(claude: ClaudeCode) -> None:
    path = claude.say("I prefer tabs in Go code.")
    claude.heard()
    with path.open("a") as file:
        file.write(json.dumps({"type": "file-history-snapshot", "messageId": "m"}) + "\n")
    _spool(claude).add(_request(path, session=SESSION))
    moments = list[Moment]()
    with _host(claude, lambda moment, _: moments.append(moment)) as host:
        assert (process_queue(host), moments) == (1, [])


@contextmanager
def _host(claude: ClaudeCode, observer: Observer) -> Iterator[Agent]:
    with claude.memory() as memory:
        service = MemoryService(memory)
        with Agent.open(memory.settings, service=service, slot="memory-full", observer=observer) as host:
            yield host


def _deadlines() -> dict[str, float]:
    from memoriter.agent import hooks as bus

    return bus.DEADLINES  # type: ignore[return-value]


def _spool(claude: ClaudeCode) -> SessionQueue:
    return SessionQueue(claude.home / "agents" / "main" / "queue")


def _request(path: Path, event: str = "Stop", session: str = "s") -> SessionRequest:
    return SessionRequest(event, session, str(path), path.stat().st_size if path.exists() else 0, "", FAR)
