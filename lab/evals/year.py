"""Simulate a year of statements, with and without tidying: `python -m lab.evals.year [--out FOLDER] [--share 0.1]`.

Three people say 4,000 statements in 365 days: one in English, one in Chinese, one in both. Each has one pair of every
topic of `sets/changes`: a fact that a later statement replaces, or two that both stand. People also repeat what is in
force, and talk about their day. The truth is known on every day.

At the end of each month, every question about something that was said by then is asked. One memory is tidied every
night and the other never. The clock of the process is set to the simulated day, so nothing waits.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lab.evals import changes
from lab.evals.changes import MISSING, place_of
from lab.evals.everyday import Row, read_rows, share
from lab.evals.plots import Series, lines
from memoriter import Memory
from memoriter.extensions.tidy.running import tidy
from memoriter.text.tokens import estimate_tokens

START = datetime(2025, 10, 1, 8, tzinfo=UTC)
DAYS, STATEMENTS = 365, 4_000
#: The languages of each person.
PEOPLE = (("en",), ("zh", "zh-Hant"), ("en", "zh", "en-zh", "zh-en"))
#: The part of what is said that repeats something in force.
REPEATED = 0.35
SEED = 7

#: What people say about their day. The numbers make each sentence another one.
CHATTER = {
    "en": (
        "Lunch took {a} minutes today, the queue was long",
        "The bus came {b} minutes late this morning",
        "I closed {b} tickets before the stand-up",
        "It rained for {b} hours, so we stayed in",
        "Spent {a} euros at the market on Saturday",
        "The meeting about the roadmap had {b} slides too many",
        "Read {a} pages on the train",
        "The neighbour's dog barked {b} times last night",
    ),
    "zh": (
        "今天午饭排了{a}分钟的队",
        "早上公交车晚了{b}分钟",
        "开会前处理了{b}个工单",
        "下了{b}个小时的雨，就没出门",
        "周六在菜市场花了{a}块钱",
        "路线图的会上幻灯片多了{b}页",
        "在火车上看了{a}页书",
        "邻居家的狗昨晚叫了{b}次",
    ),
}


@dataclass(frozen=True, slots=True)
class Said:
    """A statement of one day."""

    day: int
    text: str


@dataclass(slots=True)
class Month:
    """The figures at the end of one month."""

    counts: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    entries: int = 0

    def __iadd__(self, other: Month) -> Month:
        self.counts += other.counts
        self.tokens += other.tokens
        self.entries += other.entries
        return self


def person(number: int, part: float) -> tuple[list[Said], list[Row]]:
    """Return what a person says, in order, and the pairs of statements with their days."""
    chance = random.Random(SEED + number)
    topics = defaultdict[str, list[Row]](list)
    for row in read_rows(changes.FOLDER, "pairs"):
        if row["language"] in PEOPLE[number]:
            topics[row["topic"]].append(row)
    chosen = [chance.choice(rows) for _, rows in sorted(topics.items())]
    pairs, said = list[Row](), list[Said]()
    for pair in chosen[: max(4, round(len(chosen) * part))]:
        first = chance.randrange(0, DAYS // 2)
        days = (first, chance.randrange(first + 20, DAYS - 20))
        texts = (pair["earlier"]["text"], pair["later"]["text"])
        said += [Said(day, text) for day, text in zip(days, texts, strict=True)]
        pairs.append({**pair, "days": days})
    wanted = round(STATEMENTS / len(PEOPLE) * part)
    while len(said) < wanted:
        said.append(_repeated(chance, pairs) or _chatter(chance, number))
    return sorted(said, key=lambda one: one.day), pairs


def _repeated(chance: random.Random, pairs: Sequence[Row]) -> Said | None:
    """Return something in force that is said again."""
    pair, day = chance.choice(pairs), chance.randrange(DAYS)
    first, second = pair["days"]
    if chance.random() > REPEATED or day <= first:
        return None
    return Said(day, pair["earlier" if day < second else "later"]["text"])


def _chatter(chance: random.Random, number: int) -> Said:
    text = chance.choice(CHATTER[chance.choice([name for name in PEOPLE[number] if name in CHATTER])])
    return Said(chance.randrange(DAYS), text.format(a=chance.randrange(10, 90), b=chance.randrange(2, 40)))


def live(number: int, part: float, *, tidied: bool) -> Iterator[Month]:
    """Live through the year of a person. Yield the figures at the end of each month."""
    import time_machine

    said, pairs = person(number, part)
    days = defaultdict[int, list[str]](list)
    for one in said:
        days[one.day].append(one.text)
    with tempfile.TemporaryDirectory() as folder, time_machine.travel(START) as clock:
        root = Path(folder)
        (root / "notes").mkdir()
        (root / "config.yaml").touch()
        overrides = {"search.sync_before": False, "tidy.nightly": False}
        with Memory.open(
            root / "notes", home=root / "home", config=root / "config.yaml", overrides=overrides
        ) as memory:
            for day in range(DAYS):
                for text in days[day]:
                    clock.shift(60)
                    memory.remember(text)
                if tidied:
                    tidy(memory)
                if (day + 1) % 30 == 0:
                    yield ask(memory, pairs, day)
                clock.move_to(START + timedelta(days=day + 1))


def ask(memory: Memory, pairs: Sequence[Row], day: int) -> Month:
    """Ask every question about something that was said by this day."""
    month = Month(entries=len(memory.entries.list()))
    for pair in pairs:
        first, second = pair["days"]
        if day < first:
            continue
        answer = memory.recall(pair["question"])
        recalled = [line.text for line in answer.lines]
        old, new = (place_of(pair[name]["text"], recalled) for name in ("earlier", "later"))
        is_changed = pair["label"] == "replaced" and day >= second
        wanted = new if is_changed else old if day < second else min(old, new)
        month.tokens += estimate_tokens(answer.text)
        month.counts["asked"] += 1
        month.counts["in force recalled"] += wanted < MISSING
        month.counts["changed"] += is_changed
        month.counts["stale recalled"] += is_changed and old < MISSING
        month.counts["stale alone"] += is_changed and old < MISSING <= new
    return month


def year(part: float, *, tidied: bool) -> list[Month]:
    """Return the figures of all people together, by month."""
    months = [Month() for _ in range(DAYS // 30)]
    for number in range(len(PEOPLE)):
        for place, month in enumerate(live(number, part, tidied=tidied)):
            months[place] += month
            print(f"person {number}, month {place + 1}, tidied: {tidied}", flush=True)
    return months


def table(name: str, months: Sequence[Month]) -> Iterator[str]:
    """Yield the rows of one table."""
    yield f"| {name}: month | facts in force recalled | stale recalled | stale alone | entries | tokens per recall |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for number, month in enumerate(months, 1):
        counts = month.counts
        yield (
            f"| {number} | {share(counts['in force recalled'], counts['asked'])} "
            f"| {share(counts['stale recalled'], counts['changed'])} "
            f"| {share(counts['stale alone'], counts['changed'])} "
            f"| {month.entries:,} | {month.tokens / max(1, counts['asked']):.0f} |"
        )


def main() -> None:
    """Print a table for each memory, and write the plot."""
    parser = argparse.ArgumentParser(prog="python -m lab.evals.year", description=__doc__)
    parser.add_argument("--out", type=Path, help="Write the plot into this folder.")
    parser.add_argument(
        "--share", type=float, default=1.0, help="Simulate a part of the statements (default: 1)."
    )
    options = parser.parse_args()
    years = {name: year(options.share, tidied=name == "tidied") for name in ("tidied", "not tidied")}
    for name, months in years.items():
        print(*table(name, months), "", sep="\n")
    if options.out:
        plot = lines(
            [
                Series(f"{what}, {name}", [_percent(month, what) for month in months])
                for what in ("in force recalled", "stale recalled")
                for name, months in years.items()
            ],
            x="month",
            y="%",
        )
        (options.out / "year.svg").write_text(plot, "utf-8")


def _percent(month: Month, what: str) -> float:
    whole = month.counts["asked" if what == "in force recalled" else "changed"]
    return 100 * month.counts[what] / max(1, whole)


if __name__ == "__main__":
    main()
