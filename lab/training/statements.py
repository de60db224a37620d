"""Train the models of `memoriter/text/likelihood.py`: `python -m lab.training.statements`.

For statements it reads `turns/statements.tsv` and `turns/others.tsv`, in which `{a|b}` stands for either, the scenes,
and the development halves of the sets. For sentences that introduce a text of others it also reads `turns/openers.tsv`,
but no sentence that `lab.evals.poisoning_openers` measures.
`--check` trains without the statements of `sets/poisoning` and prints how many of them are recognised.
"""

from __future__ import annotations

import csv
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from memoriter.text import likelihood as models
from memoriter.text.words import split_sentences

HERE = Path(__file__).parent
SETS = HERE.parent / "evals" / "sets"
OUT = Path(models.__file__).parent
#: Texts of one line of `turns/`, of one of `turns/openers.tsv`, and of all scenes.
EXPANSIONS = 40
OPENERS = 30
SCENES = 3000
EPOCHS = 300
#: Of the coefficients of each model, in an epoch.
DECAY: dict[models.Model, float] = {"statements": 6e-7, "openers": 2e-7}

_CHOICE = re.compile(r"\{([^{}]*)\}")


class Example(NamedTuple):
    """A sentence, and whether it is what the model recognises."""

    source: str
    language: str
    wanted: bool
    text: str


def expand(line: str, chance: random.Random, most: int = EXPANSIONS) -> Iterator[str]:
    """Yield texts of a line, without repetitions."""
    found = set[str]()
    for _ in range(4 * most):
        text = _CHOICE.sub(lambda choice: chance.choice(choice[1].split("|")), line)
        if text not in found and len(found) < most:
            found.add(text)
            yield text


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _turns(chance: random.Random) -> Iterator[Example]:
    for name, lasts in (("statements", True), ("others", False)):
        for line in (HERE / "turns" / f"{name}.tsv").read_text("utf-8").splitlines():
            language, _, template = line.partition("\t")
            for text in expand(template, chance):
                yield Example("turns", language, lasts, text)


def _scenes(chance: random.Random) -> Iterator[Example]:
    found = [
        Example(
            "scenes", language, True, re.sub(r"\{\w+\}", "Lisbon" if language == "en" else "里斯本", text)
        )
        for path in sorted((HERE / "scenes").glob("*.jsonl"))
        for scene in _rows(path)
        for state in ("old", "new")
        for language, texts in scene[state].items()
        for text in texts
        if not re.match(r"(?i)the user|user\b|用户|\w+:", text)
    ]
    yield from chance.sample(found, min(SCENES, len(found)))


def _sets() -> Iterator[Example]:
    for language in ("en", "zh"):
        with (SETS / "capture" / f"{language}.tsv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                if row["role"] == "user" and row["trust"] == "owner":
                    yield Example("capture", language, row["keep"] == "1", row["text"])
        with (SETS / "merge" / f"development_{language}.tsv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                yield Example("merge", language, True, row["old"])
                yield Example("merge", language, True, row["new"])
    for row in _rows(SETS / "everyday" / "queries.jsonl"):
        if row["split"] == "development":
            yield Example("everyday", str(row["lang"]), False, str(row["query"]))
    for name in ("memories", "updates"):
        for row in _rows(SETS / name / "queries.jsonl"):
            yield Example(name, str(row.get("lang", "en")), False, str(row["query"]))


def _owners() -> Iterator[Example]:
    for row in _rows(SETS / "poisoning" / "owners.jsonl"):
        if row["split"] == "development":
            for message in row["messages"]:
                if message["role"] == "user" and isinstance(message["content"], str):
                    for text in split_sentences(message["content"]):
                        yield Example("owners", str(row["language"]), str(row["fact"]) in text, text)


def examples(*, owners: bool) -> list[Example]:
    """Return the examples, in a random order that is always the same."""
    chance = random.Random(7)
    found = [*_turns(chance), *_scenes(chance), *_sets(), *(_owners() if owners else ())]
    chance.shuffle(found)
    return found


def train(found: list[Example], name: models.Model) -> bytes:
    """Return the coefficients as signed bytes, with the constant at the end."""
    places = [models.features(one.text, name) for one in found]
    starts = np.cumsum([0, *(len(one) for one in places)])[:-1]
    at = np.concatenate([np.array(one, dtype=np.int64) for one in places])
    lengths = np.array([len(one) for one in places])
    share = np.repeat(1 / np.sqrt(lengths), lengths)
    truth = np.array([one.wanted for one in found], dtype=np.float64)
    # Each language and answer has the same weight, but no example more than twenty times that of another.
    sizes = Counter((one.language, one.wanted) for one in found)
    weight = np.array([1 / max(sizes[one.language, one.wanted], 100) for one in found])
    weight /= weight.sum()
    steps = np.zeros(models.SIZES[name][0] + 1)
    mean, spread = np.zeros_like(steps), np.zeros_like(steps)
    for epoch in range(1, EPOCHS + 1):
        score = np.add.reduceat(steps[at] * share, starts) + steps[-1]
        error = weight * (1 / (1 + np.exp(-score)) - truth)
        slope = np.append(
            np.bincount(at, weights=np.repeat(error, lengths) * share, minlength=models.SIZES[name][0]),
            error.sum(),
        )
        slope += DECAY[name] * steps
        mean, spread = 0.9 * mean + 0.1 * slope, 0.99 * spread + 0.01 * slope**2
        steps -= 0.1 * (mean / (1 - 0.9**epoch)) / (np.sqrt(spread / (1 - 0.99**epoch)) + 1e-9)
    return np.clip(np.round(steps * models.UNIT), -128, 127).astype(np.int8).tobytes()


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text.casefold())


def _measured() -> set[str]:
    """Return the introductions of `sets/poisoning`, which are measured and therefore not part of the training texts."""
    cases = (str(row["message"]).splitlines() for row in _rows(SETS / "poisoning" / "openers.jsonl"))
    with (SETS / "poisoning" / "introductions.tsv").open(encoding="utf-8") as file:
        said = [row["said"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    return {_letters(text) for text in (*said, *(lines[0] for lines in cases if len(lines) > 1))}


def openers(statements: list[Example]) -> list[Example]:
    """Return sentences that introduce a text of others, and statements, questions and others that do not."""
    chance = random.Random(7)
    asked, measured = ("everyday", "memories", "updates"), _measured()
    found = [one._replace(wanted=False) for one in statements if one.wanted or one.source in asked]
    for line in (HERE / "turns" / "openers.tsv").read_text("utf-8").splitlines():
        answer, language, template = line.split("\t")
        texts = [text for text in expand(template, chance, OPENERS) if _letters(text) not in measured]
        # Every line has the same weight, also one with few forms.
        found += (
            Example("openers", language, answer == "yes", text) for text in islice(cycle(texts), OPENERS)
        )
    chance.shuffle(found)
    return found


def main() -> int:
    """Train and write the coefficients, and print how many examples of each source are recognised."""
    check = "--check" in sys.argv[1:]
    statements = examples(owners=not check)
    trained: dict[models.Model, list[Example]] = {"statements": statements, "openers": openers(statements)}
    for name, found in trained.items():
        (OUT / f"{name}.bin").write_bytes(train(found, name))
        shown = [*found, *(_owners() if check and name == "statements" else ())]
        right = Counter[tuple[str, bool]]()
        for one in shown:
            right[one.source, one.wanted] += (models.likelihood(one.text, name) >= 0.5) is one.wanted
        sizes = Counter((one.source, one.wanted) for one in shown)
        for (source, wanted), size in sorted(sizes.items()):
            print(f"{name}\t{source}\t{'yes' if wanted else 'no'}\t{right[source, wanted]} of {size}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
