"""Which turns were processed: turns that a host sends again are skipped, and new turns are not missed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from memoriter.errors import WriteError
from memoriter.records import Turn
from memoriter.sessions.seen_turns import SILENCE_S, SeenTurns

TEA = ("user", "I prefer tea.")
COFFEE = ("user", "No, coffee.")
YES = ("assistant", "Noted.")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Host:
    """Sends conversations. Each time, a new process handles them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 1_000_000.0

    def seen_turns(self) -> SeenTurns:
        return SeenTurns(self.folder, digest, clock=lambda: self.now)

    def send(self, *messages: tuple[str, str] | tuple[str, str, float], session: str = "s") -> list[str]:
        """Return the new turns."""
        turns = [
            Turn(message[0], message[1], number, message[2] if len(message) > 2 else None)  # type: ignore[arg-type]
            for number, message in enumerate(messages, 1)
        ]
        with self.seen_turns().of(session) as seen:
            new = seen.new(turns)
            seen.add(new)
        return [turn.text for turn in new]

    def end(self, session: str = "s") -> None:
        with self.seen_turns().of(session) as seen:
            seen.mark_ended()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_folder_that_cannot_be_written_is_an_error_of_this_package(host: Host) -> None:
    (host.folder / "seen_turns").write_text("a file is in the place of the folder")
    with pytest.raises(WriteError, match=r"seen_turns cannot be written \(.*exists\)\. Check the disk"):
        host.send(TEA, YES)
    (host.folder / "seen_turns").unlink()
    host.send(TEA, YES)
    (state,) = (host.folder / "seen_turns").glob("*.json")
    state.unlink()
    state.mkdir()  # cannot be replaced by a file
    with pytest.raises(WriteError, match=r"seen_turns cannot be written \((Is a directory|Access denied)\)"):
        host.send(TEA, YES)


def test_only_the_last_turns_of_a_growing_conversation_are_new(host: Host) -> None:
    assert host.send(TEA, YES) == ["I prefer tea.", "Noted."]
    assert host.send(TEA, YES) == []
    assert host.send(TEA, YES, COFFEE, YES) == ["No, coffee.", "Noted."]
    assert host.send(TEA, YES, COFFEE, YES) == []
    host.end()
    assert host.send(TEA, YES, COFFEE, YES) == []


def test_a_host_may_send_new_turns_and_then_the_whole_conversation(host: Host) -> None:
    assert host.send(TEA, YES) == ["I prefer tea.", "Noted."]
    assert host.send(COFFEE) == ["No, coffee."]
    assert host.send(TEA, YES, COFFEE) == []


def test_turns_left_after_a_compaction_are_known(host: Host) -> None:
    host.send(TEA, YES, COFFEE, YES)
    summary = ("user", "Summary: tea, then coffee.")
    assert host.send(summary, COFFEE, YES) == ["Summary: tea, then coffee."]


def test_a_resumed_conversation_is_known(host: Host) -> None:
    host.send(TEA, YES)
    host.now += 40 * SILENCE_S
    host.end()
    assert host.send(TEA, YES, COFFEE) == ["No, coffee."]


@pytest.mark.parametrize("by", ["the end of the last", "a long silence"])
def test_another_conversation_with_the_same_name_is_new(host: Host, by: str) -> None:
    """A person who says tea, then coffee, then tea again wants tea, whatever the name of the session."""
    host.send(("user", "Good morning!"), TEA, YES, COFFEE, YES)
    if by == "a long silence":
        host.now += SILENCE_S + 1
    else:
        host.end()
    assert host.send(("user", "Good evening!"), TEA, YES) == ["Good evening!", "I prefer tea.", "Noted."]
    assert host.send(("user", "Good evening!"), TEA, YES) == []


def test_times_distinguish_repeated_words_from_repeated_messages(host: Host) -> None:
    assert host.send((*TEA, 1.0), (*YES, 2.0)) == ["I prefer tea.", "Noted."]
    assert host.send((*TEA, 1.0), (*YES, 2.0)) == []
    assert host.send((*TEA, 9.5)) == ["I prefer tea."]
    assert host.send((*TEA, 1.0), (*YES, 2.0), (*TEA, 9.5)) == []


def test_a_turn_with_a_time_stays_known(host: Host) -> None:
    """A session that continues in a new process sends new turns, and everything at its end."""
    host.send((*TEA, 1.0), (*YES, 2.0))
    host.end()
    host.now += SILENCE_S * 9
    assert host.send((*COFFEE, 3.0)) == ["No, coffee."]
    assert host.send((*TEA, 1.0), (*YES, 2.0), (*COFFEE, 3.0)) == []


def test_turns_without_a_time_are_matched_by_text(host: Host) -> None:
    host.send(TEA, (*YES, 2.0))
    assert host.send((*TEA, 1.0), YES) == []
    assert host.send((*TEA, 1.0), YES, (*TEA, 3.0)) == ["I prefer tea."]


def test_sessions_are_tracked_separately(host: Host) -> None:
    host.send(TEA, session="a")
    assert host.send(TEA, session="b") == ["I prefer tea."]


def test_no_text_is_stored(host: Host, tmp_path: Path) -> None:
    host.send(TEA, YES)
    (file,) = (tmp_path / "seen_turns").glob("*.json")
    assert not {"tea", "Noted"} & set(file.read_text("utf-8").replace('"', " ").split())
    if os.name == "posix":  # elsewhere the home is private as a whole
        assert file.stat().st_mode & 0o077 == 0


def test_a_conversation_longer_than_the_limit_is_still_known(
    host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("memoriter.sessions.seen_turns.MAX_OLD_TURNS", 10)
    long = [("user", f"Turn {number}.") for number in range(100)]
    assert len(host.send(*long)) == 100
    assert host.send(*long) == []
    assert host.send(*long[50:], TEA) == ["I prefer tea."]
    assert host.send(*long[35:], TEA) == ["Turn 35.", "Turn 36.", "Turn 37.", "Turn 38.", "Turn 39."]


def test_an_unreadable_state_file_causes_only_a_repetition(host: Host, tmp_path: Path) -> None:
    host.send(TEA)
    (file,) = (tmp_path / "seen_turns").glob("*.json")
    for damage in ("{half", "[1, 2]", '{"known": 3, "at": "x"}', ""):
        file.write_text(damage, encoding="utf-8")
        assert host.send(TEA) == ["I prefer tea."]
        assert host.send(TEA) == []


def test_a_limited_number_of_sessions_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoriter.sessions.seen_turns.MAX_SESSIONS", 3)
    host = Host(tmp_path)
    for number in range(6):
        host.send(TEA, session=f"s{number}")
        for file in (tmp_path / "seen_turns").glob("*.json"):
            os.utime(file, (file.stat().st_mtime - 10,) * 2)  # file times may have a low resolution
    locks = [".lock"] * 3 if os.name == "posix" else []  # Windows deletes them after use
    assert sorted(file.suffix for file in (tmp_path / "seen_turns").iterdir()) == [".json"] * 3 + locks
    assert host.send(TEA, session="s5") == []
    assert host.send(TEA, session="s0") == [TEA[1]]


@pytest.mark.posix("named pipes")
def test_a_pipe_in_place_of_the_state_of_a_session_is_an_empty_state(open_memory: Any) -> None:
    memory = open_memory()
    said = [{"role": "user", "content": "I live in Lund."}]
    memory.capture_messages(said, session="s", record=True)
    (state,) = (memory.settings.agent_folder / "seen_turns").glob("*.json")
    state.unlink()
    os.mkfifo(state)
    memory.capture_messages(said, session="s", record=True)
    assert [entry.text for entry in memory.entries.list()] == ["I live in Lund."]
    assert state.is_file()
