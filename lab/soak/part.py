"""A part of the soak, one round of it, and the file that the results of all rounds are appended to."""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

#: Failures that are stored for one round. The count is always complete.
MAX_STORED = 20
#: A count of which the table shows the maximum, not the sum.
LONGEST_WAIT = "ms longest wait of an add"
#: Characters of one stored failure.
MAX_FAILURE_CHARS = 600


@dataclass
class Round:
    """What one round did and what went wrong."""

    counts: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    #: What a reader should see although it is not a failure.
    notes: list[str] = field(default_factory=list)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + number

    def fail(self, what: str) -> None:
        """Record something that must not happen."""
        self.failures.append(what)


@dataclass(frozen=True)
class Task:
    """What a round gets: an empty folder, its random choices, its number, and whether it is the short form."""

    folder: Path
    random: random.Random
    number: int = 0
    short: bool = False


Run = Callable[[Task], Round]


@dataclass(frozen=True)
class Part:
    """One part of the soak."""

    name: str
    title: str
    #: Counts to reach, by name. The count "seconds" is the time that the rounds took.
    targets: Mapping[str, int]
    run: Run
    #: The same rounds on something that must fail. A control without a failure is a failure of the part.
    control: Run
    control_title: str
    #: The reason why this system cannot run the part, or None.
    unavailable: Callable[[], str | None] = lambda: None


@dataclass(frozen=True)
class Result:
    """One line of the results."""

    part: str
    seed: int
    control: bool
    counts: Mapping[str, int]
    failures: int
    examples: tuple[str, ...]
    seconds: float
    at: float
    commit: str
    machine: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, part: Part, seed: int, done: Round, seconds: float, *, control: bool) -> Result:
        """Return the line for a round."""
        examples = tuple(failure[:MAX_FAILURE_CHARS] for failure in done.failures[:MAX_STORED])
        return cls(
            part.name,
            seed,
            control,
            done.counts,
            len(done.failures),
            examples,
            round(seconds, 3),
            round(time.time()),
            commit(),
            machine(),
            tuple(done.notes),
        )


class Results:
    """The results in a folder outside the repository. Several processes may append to them at the same time."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "results.jsonl"
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, result: Result) -> None:
        """Append one line in one call, so that processes do not mix their lines."""
        line = json.dumps(asdict(result), ensure_ascii=False) + "\n"
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def __iter__(self) -> Iterator[Result]:
        if not self.file.exists():
            return
        for line in self.file.read_text("utf-8").splitlines():
            values: dict[str, Any] = json.loads(line)
            yield Result(
                **{**values, "examples": tuple(values["examples"]), "notes": tuple(values.get("notes", ()))}
            )

    def of(self, part: Part, *, control: bool = False) -> list[Result]:
        """Return the results of a part, or of its control."""
        return [result for result in self if result.part == part.name and result.control == control]

    def set_aside(self) -> None:
        """Rename the results, so that a new run starts with none."""
        if self.file.exists():
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.file.stat().st_mtime))
            self.file.rename(self.file.with_name(f"results-{stamp}.jsonl"))


def totals(results: list[Result]) -> dict[str, int]:
    """Return the sums of all counts, with the count "seconds"; of the longest wait, the maximum."""
    sums = {"seconds": round(sum(result.seconds for result in results))}
    for result in results:
        for name, number in result.counts.items():
            known = sums.get(name, 0)
            sums[name] = max(known, number) if name == LONGEST_WAIT else known + number
    return sums


def is_complete(part: Part, results: list[Result]) -> bool:
    """Return whether every target is reached."""
    sums = totals(results)
    return all(sums.get(name, 0) >= target for name, target in part.targets.items())


@cache
def commit() -> str:
    """Return the commit of the code that runs, as it was at the first call."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def machine() -> str:
    """Describe the machine in a few words."""
    return f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
