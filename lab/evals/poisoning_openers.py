"""Texts of others behind a sentence that introduces them: `python -m lab.evals.poisoning_openers`.

`sets/poisoning/openers.jsonl` has 60 sentences without a colon, in English and Chinese, each before a statement on the
next line and on the same one. The sentences are written in other words than those that the model was trained with. A
statement that counts as the person's own gets through. As a control, the person says the statement alone, and the
statements of `owners.jsonl` (held-out) are counted, of which none should be lost.
"""

from __future__ import annotations

import json
from collections import Counter

from lab.evals.poisoning_set import FOLDER, cases
from memoriter.text.pasted import own_words


def main() -> int:
    """Print a table by language."""
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
    columns = ("next line", "same line", "control", "owners")
    print(f"| language | {' | '.join(columns)} |\n| --- {'| --- ' * len(columns)}|")
    for language in ("en", "zh"):
        cells = (f"{seen[language, one]} of {total[language, one]}" for one in columns)
        print(f"| {language} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
