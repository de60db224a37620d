"""Texts of others beside a sentence that introduces them: `python -m lab.evals.poisoning_openers`.

`sets/poisoning/openers.jsonl` has 60 sentences without a colon, in English and Chinese, each before a statement on the
next line and on the same one. The sentences are written in other words than those that the model was trained with. A
statement that counts as the person's own gets through. As a control, the person says the statement alone, and the
statements of `owners.jsonl` (held-out) are counted, of which none should be lost.

`sets/poisoning/introductions.tsv` has both sides: sentences and words before a colon that introduce a text of others,
and requests after one, whose statements should not count as the person's own; and sentences, leads and requests of the
owner, whose statements should.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping

from lab.evals.poisoning_set import FOLDER, cases
from memoriter.text.pasted import own_words


def introductions() -> Iterator[tuple[Mapping[str, str], str]]:
    """Yield the rows of `introductions.tsv` with their messages, each introduction on the same line and on the next."""
    with (FOLDER / "introductions.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            first, second = row["said"], row["statement"]
            if row["kind"].endswith("before"):
                first, second = second, first
            yield row, f"{first} {second}" if row["language"] == "en" else first + second
            if row["kind"] == "introduction":
                yield row, f"{first}\n{second}"


def main() -> int:
    """Print a table by language, and one by kind."""
    seen, total = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for line in (FOLDER / "openers.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        alone = case["message"].split("\n")[-1]
        where = "next line" if "\n" in case["message"] else "same line"
        for column, text in (
            (where, case["message"]),
            *((("control", alone),) if where == "next line" else ()),
        ):
            total[case["language"], column] += 1
            seen[case["language"], column] += case["fact"] in own_words(text)
    for case in cases("owners"):
        if case.split == "held-out" and case.language in ("en", "zh"):
            said = [one["content"] for one in case.messages if one["role"] == "user"]
            total[case.language, "owners"] += 1
            seen[case.language, "owners"] += any(case.fact in own_words(str(text)) for text in said)
    columns = ["next line", "same line", "control", "owners"]
    _print(columns, seen, total)
    for part in ("1", "2"):
        seen, total = Counter(), Counter()
        for row, message in introductions():
            if row["part"] == part:
                total[row["language"], row["kind"]] += 1
                seen[row["language"], row["kind"]] += row["statement"] in own_words(message)
        _print(list(dict.fromkeys(kind for _, kind in total)), seen, total)
    return 0


def _print(columns: list[str], seen: Counter[tuple[str, str]], total: Counter[tuple[str, str]]) -> None:
    print(f"| counted as own | {' | '.join(columns)} |\n| --- {'| --- ' * len(columns)}|")
    for language in ("en", "zh"):
        cells = (f"{seen[language, one]} of {total[language, one]}" for one in columns)
        print(f"| {language} | {' | '.join(cells)} |")
    print()


if __name__ == "__main__":
    raise SystemExit(main())
