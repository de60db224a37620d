"""Measure what everyday prompts get from a home: `python -m lab.evals.everyday [--split held-out]`.

`sets/everyday` describes two homes, each of one person with notes, daily logs, sessions and entries in English and
Chinese, and prompts of a day: half of them can be answered from the home, the others are small talk, thanks, coding,
world knowledge, creative requests, and questions about things that the home does not contain. The first home is for
development. Tune nothing on the second.

A line is related if it holds an item that answers the prompt, or one on the same topic. Recall is measured by the
lines that enter the prompt, search by whether it says that nothing is relevant, and freshness by the order of an old
and a new statement.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.evals.metrics import auroc
from lab.evals.options import overrides
from lab.evals.sets import OWN
from memoriter import Memory

FOLDER = OWN / "everyday"
SPLITS = ("development", "held-out")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Home:
    """The items of one person, and the prompts that are asked."""

    name: str
    items: Sequence[Row]
    prompts: Sequence[Row]

    def related(self, prompt: Row) -> set[str]:
        """Return the ids of the items that answer a prompt or have the topic of one that does."""
        topics = {item["topic"] for item in self.items if item["id"] in prompt["relevant"]}
        return {item["id"] for item in self.items if item["topic"] in topics}

    def items_in(self, text: str) -> set[str]:
        """Return the ids of the items whose text is part of this text."""
        return {item["id"] for item in self.items if item["text"] in text}


def homes(split: str, folder: Path = FOLDER) -> Iterator[Home]:
    """Yield the homes of one half."""
    items = read_rows(folder, "corpus")
    prompts = [row for row in read_rows(folder, "queries") if row["split"] == split]
    for name in sorted({row["group"] for row in prompts}):
        asked = [row for row in prompts if row["group"] == name]
        yield Home(name, [row for row in items if row["group"] == name], asked)


def read_rows(folder: Path, name: str) -> list[Row]:
    """Return the rows of a file of a set."""
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@contextmanager
def opened(home: Home, settings: Mapping[str, object]) -> Iterator[Memory]:
    """Open a memory with the files and entries of a home."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in files_of(home.items).items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        (root / "config.yaml").touch()
        with Memory.open(
            root / "notes", home=root / "home", config=root / "config.yaml", overrides=settings
        ) as memory:
            memory.sync()
            entries = [item for item in home.items if item["kind"] == "entry"]
            memory.entries.import_(json.dumps([{**item, "created_at": item["time"]} for item in entries]))
            yield memory


def files_of(items: Iterable[Row]) -> dict[str, str]:
    """Return the notes, daily logs and transcripts of a home by path."""
    files = defaultdict[str, list[str]](list)
    for number, item in enumerate(items):
        day, hour = item["time"], 8 + number % 12
        if item["kind"] == "note":
            page = files[f"notes/memory/{item['file']}.md"]
            page += [] if page else ["---", f"date: {day}", "---", f"# {item['file'].split('/')[-1]}", ""]
            page.append(f"- {item['text']}")
        elif item["kind"] == "log":
            page = files[f"notes/memory/{day}.md"]
            page += [] if page else [f"# {day}", ""]
            page.append(f"- {hour:02}:{number % 60:02} {item['text']}")
        elif item["kind"] == "session":
            turn = {"role": "user", "content": item["text"], "time": f"{day}T{hour:02}:00:00Z"}
            page = files[f"home/agents/main/sessions/{day}.jsonl"]
            page.append(json.dumps(turn, ensure_ascii=False))
    return {path: "\n".join(page) + "\n" for path, page in files.items()}


@dataclass(slots=True)
class Tally:
    """The counts of one half."""

    injected: int = 0
    unrelated: int = 0
    answerable: int = 0
    answered: int = 0
    #: Prompts without an answer that still got a line.
    disturbed: int = 0
    #: Prompts for which search says that nothing is relevant, and how many of them have no answer.
    silent: int = 0
    rightly_silent: int = 0
    unanswerable: int = 0
    #: Confidence of the best hit.
    confident: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})
    #: By category: whether the wanted statement comes before the other one.
    order: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    misses: list[str] = field(default_factory=list)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the figures as text."""
        yield "injected lines that are unrelated", share(self.unrelated, self.injected)
        yield "answerable prompts with the answer injected", share(self.answered, self.answerable)
        yield "prompts without an answer that got a line", share(self.disturbed, self.unanswerable)
        yield '"nothing relevant": precision', share(self.rightly_silent, self.silent)
        yield '"nothing relevant": recall', share(self.rightly_silent, self.unanswerable)
        yield "AUROC of the best hit's confidence", f"{auroc(*self.confident.values()):.3f}"
        for category, wins in self.order.items():
            name = "new above old" if category == "update" else "old above new, asked about the past"
            yield name, share(sum(wins), len(wins))


def share(part: int, whole: int) -> str:
    """Return a share as a percentage and as a fraction."""
    return f"{100 * part / whole if whole else 0:.1f} % ({part} of {whole})"


def measure(home: Home, memory: Memory, tally: Tally) -> None:
    """Send every prompt of a home."""
    for prompt in home.prompts:
        wanted, related = set(prompt["relevant"]), home.related(prompt)
        lines = [home.items_in(line.text) for line in memory.recall(prompt["query"]).lines]
        tally.injected += len(lines)
        tally.unrelated += sum(related.isdisjoint(items) for items in lines)
        if wanted:
            tally.answerable += 1
            tally.answered += any(wanted & items for items in lines)
        else:
            tally.unanswerable += 1
            tally.disturbed += bool(lines)
        if bool(lines) != bool(wanted) or (wanted and not any(wanted & items for items in lines)):
            tally.misses.append(f"{prompt['category']}: {prompt['query']} -> {sorted(set().union(*lines))}")
        _measure_search(home, memory, prompt, tally)


def _measure_search(home: Home, memory: Memory, prompt: Row, tally: Tally) -> None:
    answer = memory.search(prompt["query"])
    wanted = set(prompt["relevant"])
    if not answer.relevant:
        tally.silent += 1
        tally.rightly_silent += not wanted
    best = max((hit.confidence or 0.0 for hit in answer.hits), default=0.0)
    tally.confident[bool(wanted)].append(best)
    if prompt["category"] in ("update", "past"):
        ranks = {
            item: number for number, hit in enumerate(answer.hits) for item in home.items_in(hit.snippet)
        }
        others = home.related(prompt) - wanted
        first = min((ranks.get(item, 99) for item in wanted), default=99)
        tally.order[prompt["category"]].append(first < min(ranks.get(item, 99) for item in others))


def main() -> None:
    """Print one table per half."""
    parser = argparse.ArgumentParser(prog="python -m lab.evals.everyday", description=__doc__)
    parser.add_argument("--split", choices=SPLITS, action="append", help="Measure only this half.")
    parser.add_argument("--misses", action="store_true", help="List the prompts that failed.")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="Override a setting.")
    options = parser.parse_args()
    for split in options.split or SPLITS:
        tally = Tally()
        for home in homes(split):
            with opened(home, {"search.sync_before": False, **overrides(options.set)}) as memory:
                measure(home, memory, tally)
        print(f"| {split} | |\n| --- | --- |")
        print(*(f"| {name} | {value} |" for name, value in tally.rows()), sep="\n")
        print(*(tally.misses if options.misses else ()), "", sep="\n", flush=True)


if __name__ == "__main__":
    main()
