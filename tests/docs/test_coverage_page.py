"""The requirements page lists every requirement and only existing files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coverage.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("## Checked by running")[0].splitlines()
    if re.match(r"\| ([A-EX]\d|–)", line)
]

LAST = {"A": 11, "B": 14, "C": 13, "D": 15, "E": 7, "X": 16}
#: The result of each requirement's own test.
CHECKED = dict(re.findall(r"^\| ([A-EX]\d+b?) \| [^|]+ \| (holds|does not hold yet) \|$", PAGE, re.MULTILINE))


def paths(cell: str) -> list[str]:
    """Return the code spans that are paths: they contain a slash or a file extension, and no blank."""
    return re.findall(r"`([^`\s]*(?:/|\.py|\.md)[^`\s]*)`", cell)


def test_every_row_has_an_id_a_requirement_code_and_a_test() -> None:
    assert ROWS
    assert [row for row in ROWS if len(row) != 4 or not paths(row[2]) or not paths(row[3])] == []


@pytest.mark.parametrize(("column", "folder"), [(2, "src/memoriter"), (3, "tests")])
def test_every_listed_path_exists(column: int, folder: str) -> None:
    listed = sorted({path for row in ROWS for path in paths(row[column])})
    assert [path for path in listed if not (ROOT / folder / path).exists()] == []


def test_every_requirement_is_listed_or_marked_as_not_yet_done() -> None:
    [open_ids] = re.findall(r"^Not yet: (.*)$", PAGE, re.MULTILINE)
    met = {id_ for row in ROWS for id_ in row[0].split(", ")}
    wanted = {f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)}
    assert wanted - met - set(re.findall(r"\b[A-EX]\d+\b", open_ids)) == set()


def test_every_requirement_that_is_met_has_a_test_named_after_it() -> None:
    [open_ids] = re.findall(r"^Not yet: (.*)$", PAGE, re.MULTILINE)
    wanted = {id_ for row in ROWS for id_ in row[0].split(", ") if id_ != "–"}
    assert wanted - CHECKED.keys() == set()
    unmet = {id_ for id_, result in CHECKED.items() if result != "holds"}
    assert unmet <= set(re.findall(r"\b[A-EX]\d+b?\b", open_ids))
