"""Answers of a language model with and without the memory, on LoCoMo's questions.

    python -m lab.harness.answers --data DIR --url http://127.0.0.1:8080/v1 --budget 512 --limit 40 --out answers.json

`DIR` has LoCoMo as `lab.evals` reads it. The model is any behind an OpenAI-compatible address. Each session of a
conversation is a note with its date; the prompt gets the lines that a search finds, best first, up to the budget. The
score is LoCoMo's F1: the words that the answer and the right answer share, without articles and punctuation, by their
stems.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import memoriter
from memoriter.text.words import stem

#: Characters of a token in English dialogue. The table has the server's own count.
CHARS_PER_TOKEN = 4
PROMPT = (
    "Answer the question about two people in as few words as possible, without a sentence. "
    "Use exact words and absolute dates of the conversation.\n\n{lines}Question: {question}\nShort answer:"
)


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer."""

    question: str
    category: str
    memory: bool
    answer: str
    right: str
    f1: float
    #: Whether a line with the evidence was in the prompt.
    evidence: bool
    prompt_tokens: int
    seconds: float


def words(text: object) -> list[str]:
    """Return the stems of a text, as LoCoMo normalises answers."""
    plain = re.sub(r"[^\w\s]", "", str(text).lower().replace(",", ""))
    return [stem(word) for word in plain.split() if word not in ("a", "an", "the", "and")]


def f1(answer: object, right: object) -> float:
    """Return the harmonic mean of precision and recall of the words."""
    found, wanted = words(answer), words(right)
    shared = (Counter(found) & Counter(wanted)).total()
    return 2 * shared / (len(found) + len(wanted)) if shared else 0.0


def ask(url: str, model: str, prompt: str, tokens: int = 24) -> tuple[str, int]:
    """Return the model's answer and the number of tokens of the prompt."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_tokens": tokens,
    }
    request = urllib.request.Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        found = json.load(response)
    return str(found["choices"][0]["message"]["content"]).strip(), int(found["usage"]["prompt_tokens"])


def open_conversation(folder: Path, turns: Sequence[dict[str, Any]]) -> memoriter.Memory:
    """Return a memory with a note for each session."""
    sessions = defaultdict[str, list[dict[str, Any]]](list)
    for turn in turns:
        sessions[turn["session"]].append(turn)
    (folder / "memory").mkdir(parents=True)
    for name, said in sessions.items():
        day = datetime.strptime(said[0]["time"], "%I:%M %p on %d %B, %Y")  # noqa: DTZ007 - LoCoMo has no zones
        lines = "\n\n".join(turn["text"] for turn in said)
        note = folder / "memory" / f"{day:%Y-%m-%d}-{name.rpartition('/')[2].lower()}.md"
        note.write_text(f"# {day:%d %B %Y}\n\n{lines}\n", encoding="utf-8")
    memory = memoriter.open(folder, home=folder / "home")
    memory.sync()
    return memory


def lines_of(memory: memoriter.Memory, question: str, budget: int) -> str:
    """Return the lines of a search that fit into the budget, each with its day."""
    kept, left = list[str](), budget * CHARS_PER_TOKEN
    for hit in memory.search(question, max_results=20).hits:
        line = f"[{hit.date}] {' '.join(hit.snippet.split())}"
        if len(line) <= left:
            kept.append(line)
            left -= len(line) + 1
    return "\n".join(kept)


def measure(options: argparse.Namespace) -> Iterator[Answered]:
    """Ask each question with and without the memory."""
    corpus = [json.loads(line) for line in (options.data / "locomo/corpus.jsonl").read_text().splitlines()]
    queries = [json.loads(line) for line in (options.data / "locomo/queries.jsonl").read_text().splitlines()]
    asked = [
        query for query in queries if query["group"] == options.group and query.get("answer") is not None
    ]
    asked = asked[:: max(1, len(asked) // options.limit)][: options.limit]
    texts = {turn["id"]: turn["text"] for turn in corpus}
    with (
        tempfile.TemporaryDirectory() as folder,
        open_conversation(
            Path(folder), [turn for turn in corpus if turn["group"] == options.group]
        ) as memory,
    ):
        for query in asked:
            lines = lines_of(memory, query["query"], options.budget)
            evidence = any(" ".join(texts[id_].split()) in lines for id_ in query["relevant"])
            for on in (True, False):
                shown = f"Lines of their conversation:\n{lines}\n\n" if on else ""
                started = time.perf_counter()
                answer, tokens = ask(
                    options.url, options.model, PROMPT.format(lines=shown, question=query["query"])
                )
                taken = round(time.perf_counter() - started, 1)
                score = round(f1(answer, query["answer"]), 3)
                yield Answered(
                    query["query"],
                    query["category"],
                    on,
                    answer,
                    str(query["answer"]),
                    score,
                    on and evidence,
                    tokens,
                    taken,
                )


def table(found: Sequence[Answered]) -> str:
    """Return the figures as a table in Markdown."""
    rows = [
        "| | questions | F1 | evidence in the prompt | tokens of the prompt |",
        "| --- | --: | --: | --: | --: |",
    ]
    for label, on in (("memory on", True), ("memory off", False)):
        some = [one for one in found if one.memory == on]
        if some:
            score, tokens = (
                statistics.mean(one.f1 for one in some),
                statistics.mean(one.prompt_tokens for one in some),
            )
            share = f"{sum(one.evidence for one in some) / len(some):.0%}" if on else ""
            rows.append(f"| {label} | {len(some)} | {100 * score:.1f} | {share} | {tokens:.0f} |")
    return "\n".join(rows)


def main() -> None:
    """Measure and print the table. Answers are written as they come."""
    parser = argparse.ArgumentParser(prog="python -m lab.harness.answers", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--group", default="conv-26", help="The conversation (default: conv-26).")
    parser.add_argument("--budget", type=int, default=512, help="Tokens of the lines (default: 512).")
    parser.add_argument("--limit", type=int, default=40, help="Questions (default: 40), spread evenly.")
    parser.add_argument("--out", type=Path, required=True, help="A JSON line for each answer.")
    options = parser.parse_args()
    found = list[Answered]()
    with options.out.open("w", encoding="utf-8") as out:
        for one in measure(options):
            found.append(one)
            out.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
            out.flush()
    print(table(found))


if __name__ == "__main__":
    main()
