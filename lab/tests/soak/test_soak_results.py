"""Results of rounds add up, survive a restart, and are what the page shows."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from lab.soak import __main__ as program
from lab.soak import report
from lab.soak.part import LONGEST_WAIT, Part, Result, Results, Round, Task, commit, totals


def part(*, broken: bool = False, control_fails: bool = True) -> Part:
    def run(task: Task) -> Round:
        if broken:
            raise ValueError("the harness is broken")
        return Round({"coins": 2 + task.number})

    def control(task: Task) -> Round:
        return Round({"coins": 1}, ["tails"] if control_fails else [])

    return Part("coins", "Coins", {"coins": 9}, run, control, "a false coin")


def options(folder: Path, *arguments: str) -> argparse.Namespace:
    return program.parser().parse_args(["--state", str(folder), *arguments])


def test_rounds_are_repeated_until_the_target_and_continue_after_a_restart(tmp_path: Path) -> None:
    results = Results(tmp_path)
    assert program.run(part(), results, options(tmp_path), until=float("inf"))
    assert [result.counts for result in Results(tmp_path).of(part())] == [
        {"coins": 2},
        {"coins": 3},
        {"coins": 4},
    ]
    assert program.run(part(), Results(tmp_path), options(tmp_path, "--resume"), until=float("inf"))
    assert len(Results(tmp_path).of(part())) == 3
    assert totals(Results(tmp_path).of(part()))["coins"] == 9
    results.set_aside()
    assert Results(tmp_path).of(part()) == []


def test_the_folder_of_the_state_does_not_depend_on_the_working_directory() -> None:
    assert program.parser().parse_args(["--state", "build/soak"]).state == Path.cwd() / "build/soak"


def test_a_broken_round_is_a_failure(tmp_path: Path) -> None:
    done = program.once(part(broken=True), 1, options(tmp_path))
    assert [failure.splitlines()[-1] for failure in done.failures] == ["ValueError: the harness is broken"]


def test_a_control_that_does_not_fail_fails_the_part(tmp_path: Path) -> None:
    assert not program.run(
        part(control_fails=False), Results(tmp_path), options(tmp_path), until=float("inf")
    )


def test_an_unknown_part_is_a_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.main(["nothing", "--state", str(tmp_path)])
    assert "unknown part 'nothing'. The parts are: kills" in capsys.readouterr().err


def test_the_table_says_what_was_reached(tmp_path: Path) -> None:
    results = Results(tmp_path)
    program.run(part(), results, options(tmp_path), until=float("inf"))
    figures = report.figures_of(results, part())
    row = report.table([figures]).splitlines()[2]
    ran = f"{figures['first'][:10]}, {commit()}"
    assert row == f"| Coins | 9 coins | 0 min 0 s | 0 | 9 coins: reached | a false coin: 1 failures | {ran} |"


def test_parts_that_were_not_run_keep_their_last_figures(tmp_path: Path) -> None:
    notes = Part("notes", "Notes", {"notes": 1}, part().run, part().control, "no note")
    last = [{"part": "coins", "rounds": 1}, {"part": "notes", "rounds": 3}]
    program.run(part(), Results(tmp_path), options(tmp_path), until=float("inf"))
    results = Results(tmp_path)
    assert report.renewed(last, results, [part(), notes]) == [report.figures_of(results, part()), last[1]]


def test_notes_of_the_rounds_become_a_table_of_rates(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for number, note in enumerate(("heads: 1 of 4", "survived: a coin", "tails: 2 of 2", "heads: 3 of 4")):
        done = Round({"coins": number}, notes=[note])
        results.add(Result.of(part(), number, done, 1.0, control=False))
    rates = report.figures_of(results, part())["rates"]
    assert rates == {"heads": [3, 4], "tails": [2, 2]}
    assert report.rate_table("Side", "Up", "Coins", rates).splitlines()[2:] == [
        "| heads | 3 | 4 | 75.0% |",
        "| tails | 2 | 2 | 100.0% |",
    ]


def test_the_page_shows_the_committed_results() -> None:
    text = report.PAGE.read_text("utf-8")
    assert report.page(text) == text


def test_the_longest_wait_of_several_rounds_is_their_maximum() -> None:
    rounds = [Round({LONGEST_WAIT: wait, "adds timed": 2}) for wait in (700, 1200, 900)]
    results = [Result.of(part(), 1, done, 1.0, control=False) for done in rounds]
    assert totals(results) == {"seconds": 3, LONGEST_WAIT: 1200, "adds timed": 6}
