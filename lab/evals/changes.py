"""Measure on `sets/changes` what a memory makes of pairs of statements: `python -m lab.evals.updates --changes`.

A later statement replaces the earlier one, or both stand. The pairs of one topic are in different homes, because they
were written as the words of different people. The other lines of the set fill every home. The earlier entries are
imported with their day and the later ones are remembered, so the memory judges each when it is said. Lines of notes and
transcripts have their day.

`--judge` leaves the memory out: it measures any function `score(earlier, later)`, by default the bundled
reader.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from lab.evals.everyday import SPLITS, Home, Row, opened, read_rows, share
from lab.evals.everyday import homes as homes_of_prompts
from lab.evals.metrics import auroc
from lab.evals.sets import OWN
from memoriter import Memory
from memoriter.memory import parts_of
from memoriter.records import Query
from memoriter.search.changes import MAX_LOG_ODDS, RETIRED, reader
from memoriter.search.freshness import COMPARED, chased, near_lines, statement_of
from memoriter.search.shape import judge as judge_answer
from memoriter.text import query_terms

FOLDER = OWN / "changes"
GROUPS = ("all", "en", "zh", "zh-Hant", "across", "long", "entry", "note", "transcript")
#: The kinds of items in `everyday.Home`, by the place of a line.
KINDS = {"entry": "entry", "note": "log", "transcript": "session"}
#: What the prompt gets for the question about a change.
OUTCOMES = ("new alone", "both, new first", "both, old first", "old alone", "none")
#: The place of a line that is not there.
MISSING = 999

#: How surely the later of two statements replaces the earlier one.
Score = Callable[[str, str], float]
Table = Mapping[str, Mapping[str, str]]


def groups_of(pair: Row) -> Iterator[str]:
    """Yield the columns that a pair belongs to. Both scripts count as Chinese."""
    yield "all"
    yield pair["place"]
    language = pair["language"]
    yield language if language in GROUPS else "across"
    if language == "zh-Hant":
        yield "zh"
    if pair["long"]:
        yield "long"


# ---- the memory ---------------------------------------------------------------------------------------------------


def homes(pairs: Sequence[Row], others: Sequence[Row]) -> Iterator[tuple[Home, list[Row]]]:
    """Yield homes with at most one pair of each topic, without the entries that are still to be remembered."""
    numbered = defaultdict[str, list[Row]](list)
    for pair in pairs:
        numbered[pair["id"].rpartition(".")[2]].append(pair)
    for number, members in sorted(numbered.items()):
        items = [_item(each["id"], each["place"], each) for each in others]
        for pair in members:
            items.append(_item(f"{pair['id']}/earlier", pair["place"], pair["earlier"]))
            if pair["place"] != "entry":
                items.append(_item(f"{pair['id']}/later", pair["place"], pair["later"]))
        yield Home(number, items, ()), members


def _item(item: str, place: str, line: Row) -> Row:
    return {"id": item, "kind": KINDS[place], "text": line["text"], "time": line["day"]}


def measure(
    memory: Memory, pairs: Sequence[Row], others: Sequence[Row], counts: Counter[tuple[str, str]]
) -> None:
    """Remember the later entries of a home in the order of their days, ask every question, and count."""
    _remember(memory, pairs)
    retired = {entry.text for entry in memory.entries.list(states=("superseded",))}
    counts["all", "other entries retired"] += len(retired & {each["text"] for each in others})
    for pair in pairs:
        figures = Counter(_figures(memory, pair, retired))
        for group in groups_of(pair):
            counts.update({(group, name): number for name, number in figures.items()})


def _remember(memory: Memory, pairs: Sequence[Row]) -> None:
    entries = [pair for pair in pairs if pair["place"] == "entry"]
    for pair in sorted(entries, key=lambda each: each["later"]["day"]):
        memory.remember(pair["later"]["text"])


def _figures(memory: Memory, pair: Row, retired: set[str]) -> Iterator[str]:
    """Yield the name of each count that a pair adds one to.

    An entry can be retired. Any line can be marked: a search says that a newer one replaced it.
    """
    lines = {name: pair[name]["text"] for name in ("earlier", "later")}
    hits = memory.search(pair["question"]).hits
    found = [hit for text in lines.values() for hit in memory.search(text).hits]
    stale = [hit.snippet for hit in (*hits, *found) if hit.superseded_by]
    marked = {name for name, text in lines.items() if text in retired or place_of(text, stale) < MISSING}
    gone = not retired.isdisjoint(lines.values())
    recalled = [line.text for line in memory.recall(pair["question"]).lines]
    old, new = (place_of(text, recalled) for text in lines.values())
    below, above = (place_of(text, [hit.snippet for hit in hits]) for text in lines.values())
    wanted = {"earlier": old, "later": new, "both": min(old, new)}[pair["answer_in"]]
    yield pair["label"]
    if pair["label"] == "replaced":
        yield outcome(old, new)
        named = {
            "recognised": "earlier" in marked,
            "entry retired": gone,
            "newer retired": "later" in marked,
            "new above old": above < below,
        }
    else:
        named = {"wrongly marked": bool(marked), "wrongly retired": gone, "answer recalled": wanted < MISSING}
    yield from (name for name, holds_true in named.items() if holds_true)


def outcome(old: int, new: int) -> str:
    """Name what a prompt got, by the places of the old and the new line; one that is missing has a large number."""
    if max(old, new) < MISSING:
        return OUTCOMES[1 if new <= old else 2]
    return OUTCOMES[0 if new < MISSING else 3 if old < MISSING else 4]


def place_of(text: str, lines: Sequence[str]) -> int:
    """Return the number of the first line that holds a statement."""
    return next((number for number, line in enumerate(lines) if holds(line, text)), MISSING)


def holds(line: str, text: str) -> bool:
    """Tell whether a line holds a statement or, if it is cut, a sentence of it.

    >>> holds("- Rent is 900. [2026]", "Rent is 900. The cellar is damp."), holds("Rent", "Rent is 900.")
    (True, False)
    """
    return any(part in line for part in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", text) if len(part) > 3)


def rows(counts: Counter[tuple[str, str]]) -> Table:
    """Return the figures of one half: by name, and then by group."""
    named = [
        ("changes recognised: retired or marked", "recognised", "replaced"),
        ("changes with a retired entry", "entry retired", "replaced"),
        ("newer statement retired or marked", "newer retired", "replaced"),
        ("pairs that stand, retired or marked", "wrongly marked", "stands"),
        ("pairs that stand with a retired entry", "wrongly retired", "stands"),
        ("search: new above old", "new above old", "replaced"),
        *((f"recall: {name}", name, "replaced") for name in OUTCOMES),
        ("recall: answer, of pairs that stand", "answer recalled", "stands"),
    ]
    table = {
        name: {group: share(counts[group, part], counts[group, whole]) for group in GROUPS}
        for name, part, whole in named
    }
    return {**table, "other entries retired": {"all": str(counts["all", "other entries retired"])}}


# ---- the judge alone ----------------------------------------------------------------------------------------------


def read_pair(earlier: str, later: str) -> float:
    """Return what the bundled reader says: the probability that the earlier statement is out of date."""
    return reader().out_of_date(earlier, later) or 0.0


def judge(pairs: Sequence[Row], score: Score, thresholds: Sequence[float]) -> Table:
    """Return how well a function separates changes from pairs that stand, and the shares above each threshold."""
    found = {label: defaultdict[str, list[float]](list) for label in ("replaced", "stands")}
    for pair in pairs:
        value = score(pair["earlier"]["text"], pair["later"]["text"])
        for group in groups_of(pair):
            found[pair["label"]][group].append(value)
    changes, stands = found["replaced"], found["stands"]
    shared = [group for group in GROUPS if changes[group] and stands[group]]
    table = {"AUROC": {group: f"{auroc(changes[group], stands[group]):.3f}" for group in shared}}
    for threshold in thresholds:
        for name, values in (("changes", changes), ("pairs that stand", stands)):
            table[f"{name} above {threshold:.3f}"] = {
                group: share(sum(value > threshold for value in values[group]), len(values[group]))
                for group in shared
            }
    return table


def strict_threshold(pairs: Sequence[Row], score: Score) -> float:
    """Return the score that one of a hundred pairs that stand exceeds."""
    stands = [pair for pair in pairs if pair["label"] == "stands"]
    return float(
        np.quantile([score(pair["earlier"]["text"], pair["later"]["text"]) for pair in stands], 0.99)
    )


# ---- the rule for newer lines -----------------------------------------------------------------------------------


Found = tuple[list[float], bool]


def near_pairs(memory: Memory, question: str, is_change: Callable[[str, str], bool]) -> Iterator[Found]:
    """Yield the features of the lines near the first hits of a question, and whether they tell of a change."""
    search = parts_of(memory).search
    hits = judge_answer(search.find(Query(question)), question).hits
    first = [statement_of(hit, frozenset(query_terms(question))) for hit in hits[:COMPARED]]
    numbers = chased(first, past=False)
    for near in chain.from_iterable(
        near_lines(first, search.lookup(), number, every=True) for number in numbers
    ):
        chance = read_pair(near.old.line, near.new.line)
        odds = np.log(max(chance, 1e-9) / max(1 - chance, 1e-9))
        values = [*near.features, float(np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)), 1.0]
        yield values, is_change(near.old.hit.snippet, near.new.hit.snippet)


def near_pairs_of_changes(pairs: Sequence[Row], others: Sequence[Row]) -> Iterator[Found]:
    """Yield features for the questions of `sets/changes`."""
    for home, members in homes(pairs, others):
        with opened(home, {"search.sync_before": False}) as memory:
            _remember(memory, members)
            for pair in members:

                def is_change(old: str, new: str, pair: Row = pair) -> bool:
                    known = holds(old, pair["earlier"]["text"]) and holds(new, pair["later"]["text"])
                    return known and bool(pair["label"] == "replaced")

                yield from near_pairs(memory, pair["question"], is_change)


def near_pairs_of_prompts(folder: Path) -> Iterator[Found]:
    """Yield features for the prompts of a set of homes. Two lines on one topic are taken for a change."""
    for home in homes_of_prompts("development", folder):
        topics = {item["id"]: item["topic"] for item in home.items}

        def is_change(old: str, new: str, home: Home = home, topics: Mapping[str, str] = topics) -> bool:
            found = [{topics[item] for item in home.items_in(text)} for text in (old, new)]
            return not found[0].isdisjoint(found[1])

        with opened(home, {"search.sync_before": False}) as memory:
            for prompt in home.prompts:
                yield from near_pairs(memory, prompt["query"], is_change)


def fit(folder: Path = FOLDER) -> Iterator[str]:
    """Yield `memoriter.search.changes.WEIGHTS`, fitted on development halves, and what thresholds keep and bring."""
    pairs, others = read_rows(folder, "pairs"), read_rows(folder, "others")
    found = list(near_pairs_of_changes([pair for pair in pairs if pair["split"] == "development"], others))
    found += (one for name in ("everyday", "updates") for one in near_pairs_of_prompts(OWN / name))
    values, labels = np.array([one for one, _ in found]), np.array([label for _, label in found])
    weights = np.zeros(values.shape[1])
    for _ in range(50):  # Newton's method, with a little regularisation
        chances = 1 / (1 + np.exp(-values @ weights))
        slope = values.T @ (chances - labels) + weights
        weights -= np.linalg.solve(
            (values.T * (chances * (1 - chances))) @ values + np.eye(len(weights)), slope
        )
    yield f"WEIGHTS = ({', '.join(f'{weight:.2f}' for weight in weights)})"
    chances = 1 / (1 + np.exp(-values @ weights))
    for threshold in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5):
        kept, brought = (
            share(int((one >= threshold).sum()), len(one)) for one in (chances[labels], chances[~labels])
        )
        yield f"{threshold}: changes {kept}, others {brought}"


# ---- the report ---------------------------------------------------------------------------------------------------


def report(
    splits: Sequence[str], *, judge_only: bool = False, folder: Path = FOLDER, score: Score = read_pair
) -> Iterator[str]:
    """Yield the lines of one table per half."""
    pairs, others = read_rows(folder, "pairs"), read_rows(folder, "others")
    by_split = {split: [pair for pair in pairs if pair["split"] == split] for split in SPLITS}
    if judge_only:
        # The development half sets the strict threshold for both.
        thresholds = (0.5, RETIRED, strict_threshold(by_split["development"], score))
    for split in splits:
        if judge_only:
            table = judge(by_split[split], score, thresholds)
        else:
            counts = Counter[tuple[str, str]]()
            for home, members in homes(by_split[split], others):
                with opened(home, {"search.sync_before": False}) as memory:
                    measure(memory, members, others, counts)
            table = rows(counts)
        yield from (f"| {split} | {' | '.join(GROUPS)} |", "| --- " * (len(GROUPS) + 1) + "|")
        for name, values in table.items():
            yield "| " + " | ".join(chain([name], (values.get(group, "") for group in GROUPS))) + " |"
        yield ""
