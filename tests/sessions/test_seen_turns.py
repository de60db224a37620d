"""Which turns were processed: turns that a host sends again are skipped, and new turns are not missed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from memoriter.records import Turn
from memoriter.sessions.seen_turns import SILENCE_S, SeenTurns

TEA = ("user", "I prefer tea.")
COFFEE = ("user", "No, coffee.")
YES = ("assistant", "Noted.")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Agent:
    """Sends conversations. Each time, a new process handles them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 1_000_000.0

    def seen_turns(self) -> SeenTurns:
        return SeenTurns(self.folder, digest, clock=lambda: self.now)

    def sends(self, *said: tuple[str, str] | tuple[str, str, float], session: str = "s") -> list[str]:
        """Return the new turns."""
        turns = [
            Turn(one[0], one[1], number, one[2] if len(one) > 2 else None)  # type: ignore[arg-type]
            for number, one in enumerate(said, 1)
        ]
        with self.seen_turns().of(session) as seen:
            new = seen.new(turns)
            seen.add(new)
        return [turn.text for turn in new]

    def ends(self, session: str = "s") -> None:
        with self.seen_turns().of(session) as seen:
            seen.mark_ended()


@pytest.fixture
def host(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def test_only_the_last_turns_of_a_growing_conversation_are_new(host: Agent) -> None:
    assert host.sends(TEA, YES) == ["I prefer tea.", "Noted."]
    assert host.sends(TEA, YES) == []
    assert host.sends(TEA, YES, COFFEE, YES) == ["No, coffee.", "Noted."]
    assert host.sends(TEA, YES, COFFEE, YES) == []
    host.ends()
    assert host.sends(TEA, YES, COFFEE, YES) == []


def test_a_host_may_send_new_turns_and_then_the_whole_conversation(host: Agent) -> None:
    assert host.sends(TEA, YES) == ["I prefer tea.", "Noted."]
    assert host.sends(COFFEE) == ["No, coffee."]
    assert host.sends(TEA, YES, COFFEE) == []


def test_turns_left_after_a_compaction_are_known(host: Agent) -> None:
    host.sends(TEA, YES, COFFEE, YES)
    summary = ("user", "Summary: tea, then coffee.")
    assert host.sends(summary, COFFEE, YES) == ["Summary: tea, then coffee."]


def test_a_resumed_conversation_is_known(host: Agent) -> None:
    host.sends(TEA, YES)
    host.now += 40 * SILENCE_S
    host.ends()
    assert host.sends(TEA, YES, COFFEE) == ["No, coffee."]


@pytest.mark.parametrize("by", ["the end of the last", "a long silence"])
def test_another_conversation_with_the_same_name_is_new(host: Agent, by: str) -> None:
    """A person who says tea, then coffee, then tea again wants tea, whatever the name of the session."""
    host.sends(("user", "Good morning!"), TEA, YES, COFFEE, YES)
    if by == "a long silence":
        host.now += SILENCE_S + 1
    else:
        host.ends()
    assert host.sends(("user", "Good evening!"), TEA, YES) == ["Good evening!", "I prefer tea.", "Noted."]
    assert host.sends(("user", "Good evening!"), TEA, YES) == []


def test_times_distinguish_repeated_words_from_repeated_messages(host: Agent) -> None:
    assert host.sends((*TEA, 1.0), (*YES, 2.0)) == ["I prefer tea.", "Noted."]
    assert host.sends((*TEA, 1.0), (*YES, 2.0)) == []
    assert host.sends((*TEA, 9.5)) == ["I prefer tea."]
    assert host.sends((*TEA, 1.0), (*YES, 2.0), (*TEA, 9.5)) == []


def test_a_turn_with_a_time_stays_known(host: Agent) -> None:
    """A session that continues in a new process sends new turns, and everything at its end."""
    host.sends((*TEA, 1.0), (*YES, 2.0))
    host.ends()
    host.now += SILENCE_S * 9
    assert host.sends((*COFFEE, 3.0)) == ["No, coffee."]
    assert host.sends((*TEA, 1.0), (*YES, 2.0), (*COFFEE, 3.0)) == []


def test_turns_without_a_time_are_matched_by_text(host: Agent) -> None:
    host.sends(TEA, (*YES, 2.0))
    assert host.sends((*TEA, 1.0), YES) == []
    assert host.sends((*TEA, 1.0), YES, (*TEA, 3.0)) == ["I prefer tea."]


def test_sessions_are_tracked_separately(host: Agent) -> None:
    host.sends(TEA, session="a")
    assert host.sends(TEA, session="b") == ["I prefer tea."]


def test_no_text_is_stored(host: Agent, tmp_path: Path) -> None:
    host.sends(TEA, YES)
    (file,) = (tmp_path / "seen_turns").glob("*.json")
    assert not {"tea", "Noted"} & set(file.read_text("utf-8").replace('"', " ").split())
    assert file.stat().st_mode & 0o077 == 0


def test_a_conversation_longer_than_the_limit_is_still_known(
    host: Agent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("memoriter.sessions.seen_turns.MAX_OLD_TURNS", 10)
    long = [("user", f"Turn {number}.") for number in range(100)]
    assert len(host.sends(*long)) == 100
    assert host.sends(*long) == []
    assert host.sends(*long[50:], TEA) == ["I prefer tea."]
    assert host.sends(*long[35:], TEA) == ["Turn 35.", "Turn 36.", "Turn 37.", "Turn 38.", "Turn 39."]


def test_an_unreadable_state_file_causes_only_a_repetition(host: Agent, tmp_path: Path) -> None:
    host.sends(TEA)
    (file,) = (tmp_path / "seen_turns").glob("*.json")
    for damage in ("{half", "[1, 2]", '{"known": 3, "at": "x"}', ""):
        file.write_text(damage, encoding="utf-8")
        assert host.sends(TEA) == ["I prefer tea."]
        assert host.sends(TEA) == []


def test_a_limited_number_of_sessions_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoriter.sessions.seen_turns.MAX_SESSIONS", 3)
    host = Agent(tmp_path)
    for number in range(6):
        host.sends(TEA, session=f"s{number}")
        for file in (tmp_path / "seen_turns").glob("*.json"):
            os.utime(file, (file.stat().st_mtime - 10,) * 2)  # file times may have a low resolution
    assert (
        sorted(file.suffix for file in (tmp_path / "seen_turns").iterdir()) == [".json"] * 3 + [".lock"] * 3
    )
    assert host.sends(TEA, session="s5") == []
    assert host.sends(TEA, session="s0") == [TEA[1]]
