"""`forget` on the command line: a question, a way back, and erasure at once if the owner wants it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run


def add(memoriter: Run, text: str) -> str:
    return str(json.loads(memoriter("add", text, "--json").stdout)["entry"]["id"])


def listed(memoriter: Run) -> list[str]:
    return [entry["text"] for entry in json.loads(memoriter("list", "--json").stdout)["entries"]]


def test_a_forgotten_entry_is_hidden_and_undo_restores_it(memoriter: Run) -> None:
    id_ = add(memoriter, "I live in Lisbon.")
    done = memoriter("forget", id_, "--yes")
    assert done.stdout.splitlines() == [
        f"Forgot 1 entry: {id_[:8]}",
        "  Covered: search, recall and lists: they no longer show it, and it is not captured again",
        "  Not covered: the database, for 30 days, so that it can be undone; then it is erased",
        f"Restore with `memoriter undo {id_[:8]}`. Erase at once with `memoriter forget {id_[:8]} --now`.",
    ]
    assert listed(memoriter) == []
    assert json.loads(memoriter("search", "Lisbon", "--json").stdout)["results"] == []
    messages = json.dumps([{"role": "user", "content": "Remember that I live in Lisbon."}]).encode()
    memoriter("capture", "--messages", "-", stdin=messages)
    assert listed(memoriter) == []
    assert memoriter("undo").stdout == f"Undone: forget of {id_[:8]}  I live in Lisbon.\n"
    assert listed(memoriter) == ["I live in Lisbon."]
    assert memoriter("redo").stdout == f"Redone: {id_[:8]}  I live in Lisbon.\n"
    memoriter("capture", "--messages", "-", stdin=messages)
    assert listed(memoriter) == []


def test_hiding_keeps_a_line_of_a_note_and_erasing_lists_it_before_it_asks(
    memoriter: Run, workspace: Path
) -> None:
    log = workspace / "memory" / "2026-02-08.md"
    log.parent.mkdir(exist_ok=True)
    log.write_text("- I live in Lisbon.\n- Rain.\n", encoding="utf-8")
    memoriter("index")
    id_ = add(memoriter, "I live in Lisbon.")
    hidden = memoriter("forget", id_, "--yes").stdout
    assert "Notes and sessions that still say it:\n  memory/2026-02-08.md#L1-" in hidden
    assert log.read_text(encoding="utf-8") == "- I live in Lisbon.\n- Rain.\n"
    asked = memoriter("forget", "--query", "I live in Lisbon", "--now", stdin=b"n\n")
    line = "Lines of daily logs that are erased too:\n  memory/2026-02-08.md:1  - I live in Lisbon.\n"
    assert (asked.returncode, line in asked.stdout) == (1, True)
    assert log.read_text(encoding="utf-8") == "- I live in Lisbon.\n- Rain.\n"
    memoriter("forget", "--query", "I live in Lisbon", "--now", "--yes")
    assert log.read_text(encoding="utf-8") == "- Rain.\n"


def test_repeated_undos_go_back_further(memoriter: Run) -> None:
    for text in ("I live in Lisbon.", "My cat is called Otto."):
        add(memoriter, text)
    left = []
    for _ in range(2):
        memoriter("undo")
        left.append(listed(memoriter))
    assert left == [["I live in Lisbon."], []]
    done = memoriter("undo")
    assert (done.returncode, done.stderr) == (1, "memoriter: There is nothing to undo.\n")


def test_now_erases_every_byte_and_cannot_be_undone(memoriter: Run, tmp_path: Path) -> None:
    id_ = add(memoriter, "My locker is zq4711.")
    memoriter("forget", id_, "--yes")
    memoriter("forget", id_, "--now", "--yes")
    left = [
        file for file in (tmp_path / "state").rglob("*") if file.is_file() and b"zq4711" in file.read_bytes()
    ]
    assert left == []
    undone = memoriter("undo", id_)
    assert (undone.returncode, undone.stderr) == (
        1,
        "memoriter: This entry was erased. Erased entries cannot be restored.\n",
    )


@pytest.mark.parametrize(("answer", "left"), [(b"y\n", []), (b"n\n", ["I live in Lisbon, near the river."])])
def test_one_clear_hit_is_asked_about(memoriter: Run, answer: bytes, left: list[str]) -> None:
    add(memoriter, "I live in Lisbon, near the river.")
    done = memoriter("forget", "--query", "where do I live: Lisbon", stdin=answer)
    assert "I live in Lisbon, near the river." in done.stdout
    assert "? [y/N]" in done.stdout
    assert listed(memoriter) == left


def test_the_owner_can_say_it_again(memoriter: Run) -> None:
    id_ = add(memoriter, "I live in Lisbon.")
    memoriter("forget", id_, "--yes")
    again = add(memoriter, "I live in Lisbon.")
    assert (again != id_, listed(memoriter)) == (True, ["I live in Lisbon."])


def test_a_removed_secret_is_reported(memoriter: Run) -> None:
    done = memoriter("add", "Deploy with ghp_0123456789abcdefghijABCDEFGHIJ012345 on Fridays")
    assert "Note: Secrets or private parts were removed before it was stored." in done.stdout
    assert listed(memoriter) == ["Deploy with [redacted github token] on Fridays"]


def test_an_unknown_source_is_answered_with_the_sources(memoriter: Run) -> None:
    add(memoriter, "I live in Lisbon.")
    done = memoriter("forget", "--source", "claude", "--yes")
    assert (done.returncode, done.stderr) == (
        1,
        "memoriter: No entry comes from the source 'claude'. Sources of entries: cli.\n",
    )


def test_a_text_in_place_of_an_id_is_answered_with_the_way_to_search(memoriter: Run) -> None:
    done = memoriter("forget", "Lisbon", "--yes")
    assert (done.returncode, done.stderr) == (
        1,
        "memoriter: There is no entry 'Lisbon'. To forget an entry by what it says, use --query.\n",
    )


def test_an_entry_that_is_not_relevant_is_not_asked_about(memoriter: Run) -> None:
    add(memoriter, "I live in Lisbon, near the river, in the house with the green door.")
    done = memoriter("forget", "--query", "the river that the heron crossed at dawn last year", stdin=b"y\n")
    assert (done.returncode, "? [y/N]" in done.stdout) == (1, False)
    assert listed(memoriter) == ["I live in Lisbon, near the river, in the house with the green door."]
