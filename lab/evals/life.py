"""Ask 60 questions about one's own life: `python -m lab.evals.life`.

`sets/life` holds 60 statements of one person and a question about each, 30 in English and 30 in Chinese. Ten questions
are in the other language. All statements are entries of one memory, which also holds the 429 lines of `sets/changes` on
other subjects. Few questions share a rare word with their statement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lab.evals import changes
from lab.evals.everyday import Home, Row, opened, read_rows, share
from lab.evals.sets import OWN
from memoriter import Memory

FOLDER = OWN / "life"


def home() -> tuple[Home, list[Row]]:
    """Return a home with the statements and other lines, and the statements."""
    facts = read_rows(FOLDER, "facts")
    items = [{**each, "kind": "entry", "time": "2026-03-01"} for each in facts]
    items += (
        {**each, "kind": changes.KINDS[each["place"]], "time": each["day"]}
        for each in read_rows(changes.FOLDER, "others")
    )
    return Home("life", items, ()), facts


def measure(memory: Memory, facts: list[Row]) -> Iterator[tuple[Row, bool, bool]]:
    """Ask each question. Yield its statement, whether recall brings it, and whether it is the first hit."""
    for fact in facts:
        recalled = [line.text for line in memory.recall(fact["question"]).lines]
        first = [hit.snippet for hit in memory.search(fact["question"]).hits[:1]]
        yield fact, fact["text"] in recalled, fact["text"] in first


def main() -> None:
    """Print the shares, and the questions without an answer."""
    counts, missed = Counter[tuple[str, str]](), list[str]()
    described, facts = home()
    with opened(described, {"search.sync_before": False}) as memory:
        for fact, recalled, first in measure(memory, facts):
            group = fact["asked_in"] if fact["asked_in"] == fact["language"] else "across"
            for name in ("all", group):
                counts.update({(name, "asked"): 1, (name, "recalled"): recalled, (name, "first"): first})
            if not recalled:
                missed.append(f"{fact['question']} -> {fact['text']}")
    print("| | recalled | first hit |\n| --- | --- | --- |")
    for name in ("all", "en", "zh", "across"):
        asked = counts[name, "asked"]
        print(
            f"| {name} | {share(counts[name, 'recalled'], asked)} | {share(counts[name, 'first'], asked)} |"
        )
    print(*missed, sep="\n")


if __name__ == "__main__":
    main()
