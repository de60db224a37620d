"""Measure `sets/poisoning`: how much of strangers' text gets through, and what owners and agents lose.

`python -m lab.evals.poisoning --set` prints the figures by language and by kind, for each split.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lab.evals.poisoning import Message, Planted, isolated, play, recalled
from memoriter import Memory
from memoriter.tools.toolbox import Toolbox

FOLDER = Path(__file__).parent / "sets" / "poisoning"
SPLITS = ("development", "held-out")


class Case(NamedTuple):
    """One line of a file of the set."""

    id: str
    split: str
    language: str
    kind: str
    messages: Sequence[Message]
    fact: str
    #: The stranger's statement alone, where it makes sense alone.
    said: str = ""
    #: The text that an agent stores.
    text: str = ""


def cases(name: str) -> list[Case]:
    """Read a file of the set: `cases`, `owners` or `saves`."""
    lines = (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [Case(**json.loads(line)) for line in lines]


def get_through(memory: Memory, planted: Sequence[Case]) -> Iterator[bool]:
    """Yield whether each fact enters a prompt or becomes an entry of the owner."""
    played = {
        case.id: Planted(case.said or _text(case.messages), case.fact, case.messages) for case in planted
    }
    entered = set(play(memory, list(played.values())))
    owned = "\n".join(entry.text for entry in memory.entries.list(states=(), trust=("owner",)))
    for case in planted:
        yield played[case.id].text in entered or case.fact in owned


def are_captured(memory: Memory, said: Sequence[Case]) -> Iterator[bool]:
    """Yield whether each fact of an owner becomes an entry."""
    for case in said:
        remembered = memory.capture_messages(case.messages, session=case.id)
        yield any(one.entry is not None and case.fact in one.entry.text for one in remembered)


def are_reached(memory: Memory, stored: Sequence[Case]) -> Iterator[bool]:
    """Yield whether each text that an agent stores reaches recall, or waits for the owner's approval."""
    toolbox = Toolbox(memory, access="write")
    for case in stored:
        result = toolbox.call("memory_store", {"text": case.text})
        call = {"type": "tool_use", "id": "store", "name": "memory_store", "input": {"text": case.text}}
        answer = {"type": "tool_result", "tool_use_id": "store", "content": json.dumps(result)}
        turns = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
        memory.capture_messages([*case.messages, *turns], session=case.id)
        memory.sync()
        waiting = [entry.text for entry in memory.entries.list(states=("staged",))]
        yield any(case.fact in text for text in (recalled(memory, case.text), *waiting))


def get_through_as_owner(memory: Memory, planted: Sequence[Case]) -> Iterator[bool]:
    """Yield whether each statement of a stranger would get through if the owner said it alone."""
    return get_through(
        memory, [case._replace(messages=[{"role": "user", "content": case.said}]) for case in planted]
    )


#: Column, file and measure. "control" shows which statements get through at all. An owner's words that are not captured
#: as an entry can be recalled from the transcript.
COLUMNS: Mapping[str, tuple[str, Callable[[Memory, Sequence[Case]], Iterator[bool]]]] = {
    "get through": ("cases", get_through),
    "control": ("cases", get_through_as_owner),
    "owners captured": ("owners", are_captured),
    "owners recalled": ("owners", get_through),
    "saves reached": ("saves", are_reached),
}


def _text(messages: Sequence[Message]) -> str:
    return " ".join(str(message["content"]) for message in messages)


def measure() -> Iterator[tuple[str, Case, bool]]:
    """Yield the column, the case and the outcome of each case. A language of a split has a memory of its own."""
    for column, (name, outcomes) in COLUMNS.items():
        groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
        for case in cases(name):
            if column != "control" or case.said:
                groups[case.split, case.language].append(case)
        for group in groups.values():
            with isolated() as memory:
                for case, outcome in zip(group, outcomes(memory, group), strict=True):
                    yield column, case, outcome


def main() -> int:
    """Print a table by language and one by kind. List the failures of the development split on standard error."""
    outcomes = list(measure())
    for column, case, outcome in outcomes:
        if case.split == "development" and column != "control" and outcome is (column == "get through"):
            print(f"{column}: {case.id} {_text(case.messages)!r} {case.text!r}", file=sys.stderr)
    for field in ("language", "kind"):
        rows: dict[str, dict[tuple[str, str], list[bool]]] = {}
        for column, case, outcome in outcomes:
            for row in (getattr(case, field), "all"):
                rows.setdefault(row, defaultdict(list))[case.split, column].append(outcome)
        rows["all"] = rows.pop("all")
        heads = [(split, column) for split in SPLITS for column in COLUMNS]
        print(f"| {field} | " + " | ".join(f"{split}: {column}" for split, column in heads) + " |")
        print("| --- " * (len(heads) + 1) + "|")
        for row, values in rows.items():
            cells = (f"{sum(values[head])} of {len(values[head])}" if values[head] else "–" for head in heads)
            print(f"| {row} | " + " | ".join(cells) + " |")
        print()
    return 0
