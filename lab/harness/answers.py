"""A language model answers LoCoMo's questions from what memoriter, mem0 and memsearch find, and from nothing.

    python -m lab.harness.answers prompts --data DIR --tokenizer tokenizer.json --out prompts.jsonl
    python -m lab.harness.answers answer --prompts prompts.jsonl --address http://127.0.0.1:8080/v1 --out answers.jsonl
    python -m lab.harness.answers score --data DIR --prompts prompts.jsonl --answers answers.jsonl

`DIR` has LoCoMo as `lab.evals` reads it. `prompts` indexes the same notes with every memory, as `lab.evals.peers` does,
and writes one prompt for each question, memory and budget. Any model can answer them: `answer` asks one behind an
OpenAI-compatible address, and `score` reads the answers of any program, as lines of `{"id": …, "answer": …}`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import fmean

from lab.evals import metrics
from lab.evals.options import default_cache
from lab.evals.peers.__main__ import Server, embeddings, open_peer
from lab.evals.peers.install import PEERS, Peer
from lab.evals.run import write_notes
from lab.evals.sets import Item
from lab.harness.locomo import ADVERSARIAL, Question, read, sample

MEMORIES, BUDGETS, QUESTIONS = "none,memoriter,mem0,memsearch", "256,512,1024", 260
#: Hits that every memory is asked for. They fill the largest budget.
HITS = 60
#: The memory of the prompts without one.
NONE = "none"
SYSTEM = "You answer questions about conversations between two people."
LINES = "Lines of their conversations:\n\n{}\n\nBased on the above context, write"
ASK = (
    "{} an answer in the form of a short phrase for the following question. "
    "Answer with exact words from the context whenever possible.\n\nQuestion: {} Short answer:"
)
Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question with the lines of one memory."""

    id: str
    memory: str
    #: The most tokens that the lines may have.
    budget: int
    question_id: str
    system: str
    prompt: str
    #: The tokens of the lines.
    tokens: int
    #: The share of the lines with the answer that are in the prompt.
    evidence: float


# ---- prompts ----------------------------------------------------------------------------------------------------


def counter(tokenizer: Path | None) -> Count:
    """Return what counts the tokens of a text: a tokenizer of Hugging Face's format, or four characters each."""
    if tokenizer is None:
        return lambda text: -(-len(text) // 4)
    from tokenizers import Tokenizer

    opened = Tokenizer.from_file(str(tokenizer))
    return lambda text: len(opened.encode(text).ids)


def said_on(item: Item) -> str:
    """Return a line as every memory's prompt shows it: with its day, as LoCoMo writes days."""
    if item.day is None:
        return item.text
    day = date.fromisoformat(item.day)
    return f"[{day.day} {day:%B %Y}] {' '.join(item.text.split())}"


def prompt_of(memory: str, budget: int, question: Question, ranked: Iterable[Item], count: Count) -> Prompt:
    """Return the prompt with the best lines that fit into the budget."""
    kept, left = list[Item](), budget
    for item in ranked:
        needed = count(said_on(item) + "\n")
        if needed <= left:
            kept.append(item)
            left -= needed
    lines = "\n".join(map(said_on, kept))
    found = {item.id for item in kept}
    return Prompt(
        f"{question.id} {memory} {budget}",
        memory,
        budget,
        question.id,
        SYSTEM,
        ASK.format(LINES.format(lines) if lines else "Write", question.asked),
        budget - left,
        fmean(one in found for one in question.relevant),
    )


def prompts_of(
    peer: Peer,
    groups: Mapping[str, tuple[list[Item], list[Question]]],
    budgets: Sequence[int],
    count: Count,
    server: Server,
    cache: Path,
) -> Iterator[Prompt]:
    """Index every group with one memory, and ask it every question."""
    for group, (items, questions) in groups.items():
        print(f"{peer.name}: {group}, {len(questions)} questions", file=sys.stderr, flush=True)
        place = cache / "answers" / group
        by_path = write_notes(place, items)
        by_id = {item.id: item for item in items}
        with (
            tempfile.TemporaryDirectory(prefix=f"{peer.name}-") as state,
            open_peer(peer, place, state, server) as driver,
        ):
            driver.ask({"op": "index"})
            for question in questions:
                paths = driver.ask({"op": "search", "query": question.text, "limit": HITS})["paths"]
                ranked = [by_id[by_path[path]] for path in dict.fromkeys(paths) if path in by_path]
                for budget in budgets:
                    yield prompt_of(peer.name, budget, question, ranked, count)


def write_prompts(options: argparse.Namespace) -> None:
    """Write the prompts of all memories."""
    names, budgets = options.memories.split(","), [int(one) for one in options.budgets.split(",")]
    peers = [peer for peer in PEERS if peer.name in names]
    if missing := [peer.name for peer in peers if not peer.is_installed]:
        raise SystemExit(f"not installed; run: python -m lab.evals.peers.install {' '.join(missing)}")
    items, questions = read(options.data / "locomo")
    questions, count = sample(questions, options.limit), counter(options.tokenizer)
    groups = {
        group: (
            [item for item in items if item.group == group],
            [question for question in questions if question.group == group],
        )
        for group in sorted({question.group for question in questions})
    }
    with options.out.open("w", encoding="utf-8") as out, embeddings(options.cache) as server:

        def write(prompts: Iterable[Prompt]) -> None:
            for prompt in prompts:
                out.write(json.dumps(asdict(prompt), ensure_ascii=False) + "\n")

        if NONE in names:
            write(prompt_of(NONE, 0, question, (), count) for question in questions)
        for peer in peers:
            write(prompts_of(peer, groups, budgets, count, server, options.cache))


# ---- answers ----------------------------------------------------------------------------------------------------


def ask(
    address: str, model: str, prompt: str, *, system: str = "", tokens: int = 32
) -> tuple[str, int | None]:
    """Return the model's answer, and the number of tokens of the whole prompt if the server says it."""
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": prompt})
    body = {"model": model, "messages": messages, "temperature": 0, "max_tokens": tokens}
    request = urllib.request.Request(
        f"{address}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        found = json.load(response)
    said = str(found["choices"][0]["message"]["content"]).strip()
    return said, (found.get("usage") or {}).get("prompt_tokens")


def write_answers(options: argparse.Namespace) -> None:
    """Ask the prompts that have no answer yet. Answers are written as they come."""
    done = {row["id"] for row in _rows(options.out)} if options.out.exists() else set()
    with options.out.open("a", encoding="utf-8") as out:
        for prompt in _prompts(options.prompts):
            if prompt.id not in done:
                said, tokens = ask(options.address, options.model, prompt.prompt, system=prompt.system)
                row = {"id": prompt.id, "answer": said, "prompt_tokens": tokens}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                out.flush()


# ---- scores -----------------------------------------------------------------------------------------------------


def table(prompts: Sequence[Prompt], questions: Mapping[str, Question], answers: Mapping[str, str]) -> str:
    """Return the figures as a table in Markdown. A question counts only if every prompt of it has an answer."""
    cells = defaultdict[tuple[int, str], dict[str, Prompt]](dict)
    for prompt in prompts:
        cells[prompt.budget, prompt.memory][prompt.question_id] = prompt
    open_ones = {prompt.question_id for prompt in prompts if prompt.id not in answers}
    asked = [one for one in questions.values() if one.id not in open_ones]
    plain = [one.id for one in asked if one.category != ADVERSARIAL]
    tricky = [one.id for one in asked if one.category == ADVERSARIAL]
    scores = {
        cell: {one.id: 100 * one.score(answers[of[one.id].id]) for one in asked if one.id in of}
        for cell, of in cells.items()
    }
    rows = [
        f"{len(plain)} questions, and {len(tricky)} adversarial ones. In brackets: 95 % bootstrap intervals.",
        "",
        "| tokens | memory | F1 | memoriter − it | evidence in the prompt | tokens used | adversarial right |",
        "| --: | --- | --- | --- | --: | --: | --- |",
    ]
    for (budget, memory), of in cells.items():
        mine, ours = scores[budget, memory], scores.get((budget, "memoriter"), {})
        shown = [of[one] for one in plain]
        beside = [ours[one] - mine[one] for one in plain if one in ours] if memory != "memoriter" else []
        found = f"{100 * fmean(one.evidence for one in shown):.0f} %" if budget else ""
        used = f"{fmean(one.tokens for one in shown):.0f}" if budget else ""
        rows.append(
            f"| {budget} | {memory} | {_mean([mine[one] for one in plain])} | {_mean(beside)} | {found} | {used} "
            f"| {_mean([mine[one] for one in tricky])} |"
        )
    return "\n".join(rows)


def kinds(prompts: Sequence[Prompt], questions: Mapping[str, Question], answers: Mapping[str, str]) -> str:
    """Return F1 by kind of question as a table in Markdown."""
    found = defaultdict[tuple[int, str], dict[str, list[float]]](lambda: defaultdict(list))
    for prompt in prompts:
        question = questions[prompt.question_id]
        if prompt.id in answers:
            cell = found[prompt.budget, prompt.memory]
            cell[question.category].append(100 * question.score(answers[prompt.id]))
    names = sorted({name for cell in found.values() for name in cell} - {ADVERSARIAL})
    rows = [
        f"| tokens | memory | {' | '.join(names)} |",
        f"| --: | --- | {' | '.join('--:' for _ in names)} |",
    ]
    for (budget, memory), cell in found.items():
        means = [f"{fmean(cell[name]):.1f} ({len(cell[name])})" if cell[name] else "" for name in names]
        rows.append(f"| {budget} | {memory} | {' | '.join(means)} |")
    return "\n".join(rows)


def _mean(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, high = metrics.interval(values)
    return f"{fmean(values):.1f} [{low:.1f}, {high:.1f}]"


def print_scores(options: argparse.Namespace) -> None:
    """Print both tables."""
    prompts = list(_prompts(options.prompts))
    asked = {prompt.question_id for prompt in prompts}
    questions = {one.id: one for one in read(options.data / "locomo")[1] if one.id in asked}
    answers = {str(row["id"]): str(row["answer"]) for row in _rows(options.answers)}
    print(table(prompts, questions, answers), kinds(prompts, questions, answers), sep="\n\n")
    if missing := sum(prompt.id not in answers for prompt in prompts):
        print(f"\n{missing} of {len(prompts)} prompts have no answer.")


def _rows(path: Path) -> Iterator[dict[str, object]]:
    return (json.loads(line) for line in path.read_text("utf-8").splitlines() if line)


def _prompts(path: Path) -> Iterator[Prompt]:
    return (Prompt(**row) for row in _rows(path))  # type: ignore[arg-type]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one step."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.harness.answers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    steps = parser.add_subparsers(required=True)
    prompts, answer, score = (steps.add_parser(name) for name in ("prompts", "answer", "score"))
    for step in (prompts, score):
        step.add_argument("--data", type=Path, required=True, help="Folder with the folder `locomo`.")
    for step in (answer, score):
        step.add_argument("--prompts", type=Path, required=True)
    for step in (prompts, answer):
        step.add_argument("--out", type=Path, required=True)
    prompts.add_argument("--memories", default=MEMORIES, help=f"Default: {MEMORIES}.")
    prompts.add_argument("--budgets", default=BUDGETS, help=f"Tokens of the lines (default: {BUDGETS}).")
    prompts.add_argument("--limit", type=int, default=QUESTIONS, help=f"Questions (default: {QUESTIONS}).")
    prompts.add_argument(
        "--tokenizer", type=Path, help="tokenizer.json of the model (default: 4 characters a token)."
    )
    prompts.add_argument("--cache", type=Path, default=default_cache(), help="Folder for notes and vectors.")
    prompts.set_defaults(run=write_prompts)
    answer.add_argument("--address", required=True, help="For example http://127.0.0.1:8080/v1.")
    answer.add_argument("--model", default="default")
    answer.set_defaults(run=write_answers)
    score.add_argument("--answers", type=Path, required=True)
    score.set_defaults(run=print_scores)
    options = parser.parse_args(arguments)
    options.run(options)


if __name__ == "__main__":
    main()
