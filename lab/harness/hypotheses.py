"""Answers in the files that LongMemEval's and BEAM's own evaluations read.

    python -m lab.harness.hypotheses longmemeval --data longmemeval_s.json --url URL --out hypotheses.jsonl
    python -m lab.harness.hypotheses beam --data BEAM/chats/100K --url URL --out results/100K

Each conversation becomes notes, one for each session or day, in a memory of its own. The model behind the
OpenAI-compatible address gets the lines that a search finds, up to the budget, and answers. Then run LongMemEval's
`src/evaluation/evaluate_qa.py`, or BEAM's `src/evaluation/run_evaluation.py` with `memoriter.json` as its result file.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import memoriter
from lab.harness.answers import ask

PROMPT = (
    "Answer the question from these lines of earlier conversations with the user. "
    "If they do not say it, answer that the information is not there.\n\n{lines}\n\n{day}Question: {question}\nAnswer:"
)
#: Characters of a token in English dialogue.
CHARS_PER_TOKEN = 4
#: The days of sessions and what was said on them, in order.
Sessions = Sequence[tuple[str, list[str]]]


def open_sessions(folder: Path, sessions: Sessions) -> memoriter.Memory:
    """Return a memory with a note for each session."""
    (folder / "memory").mkdir(parents=True)
    for number, (day, said) in enumerate(sessions):
        note = folder / "memory" / f"{day or 'undated'}-{number:04}.md"
        note.write_text(f"# {day or 'Conversation'}\n\n" + "\n\n".join(said) + "\n", encoding="utf-8")
    memory = memoriter.open(folder, home=folder / "home")
    memory.sync()
    return memory


def lines_of(memory: memoriter.Memory, question: str, budget: int) -> str:
    """Return the lines of a search that fit into the budget of tokens, each with its day."""
    kept, left = list[str](), budget * CHARS_PER_TOKEN
    for hit in memory.search(question, max_results=20).hits:
        line = f"[{hit.date}] {' '.join(hit.snippet.split())}"
        if len(line) <= left:
            kept.append(line)
            left -= len(line) + 1
    return "\n".join(kept)


def answers(
    sessions: Sessions, questions: Sequence[tuple[str, str]], options: argparse.Namespace
) -> Iterator[str]:
    """Return the model's answer to each question, which may have a day."""
    with tempfile.TemporaryDirectory() as folder, open_sessions(Path(folder), sessions) as memory:
        for question, day in questions:
            lines = lines_of(memory, question, options.budget)
            today = f"Today is {day}.\n" if day else ""
            prompt = PROMPT.format(lines=lines, day=today, question=question)
            yield ask(options.url, options.model, prompt, tokens=200)[0]


# ---- LongMemEval --------------------------------------------------------------------------------------------------


def longmemeval_sessions(case: Mapping[str, Any]) -> Sessions:
    """Return the sessions of one question. Their days are written as `2023/05/20 (Sat) 02:21`."""
    return [
        (day[:10].replace("/", "-"), [f"{turn['role']}: {turn['content']}" for turn in said])
        for day, said in zip(case["haystack_dates"], case["haystack_sessions"], strict=True)
    ]


def longmemeval(options: argparse.Namespace) -> None:
    """Write a line with `question_id` and `hypothesis` for each question."""
    with options.out.open("w", encoding="utf-8") as out:
        for case in json.loads(options.data.read_text(encoding="utf-8"))[: options.limit]:
            asked = [(str(case["question"]), str(case.get("question_date", "")))]
            (answer,) = answers(longmemeval_sessions(case), asked, options)
            line = {"question_id": case["question_id"], "hypothesis": answer}
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            out.flush()


# ---- BEAM ---------------------------------------------------------------------------------------------------------


def beam_sessions(chat: Sequence[Mapping[str, Any]]) -> Sessions:
    """Return the messages by day. A day such as `March-15-2024` holds until the next one."""
    sessions, day = list[tuple[str, list[str]]](), ""
    for message in (one for batch in chat for turn in batch["turns"] for one in turn):
        if message.get("time_anchor"):
            day = f"{datetime.strptime(message['time_anchor'], '%B-%d-%Y'):%Y-%m-%d}"  # noqa: DTZ007 - a day
        if not sessions or sessions[-1][0] != day:
            sessions.append((day, []))
        sessions[-1][1].append(f"{message['role']}: {message['content'].partition(' ->->')[0]}")
    return sessions


def beam(options: argparse.Namespace) -> None:
    """Write `NUMBER/memoriter.json` for each chat: its questions by kind, each with `llm_response`."""
    chats = sorted((one for one in options.data.iterdir() if one.is_dir()), key=lambda one: int(one.name))
    for chat in chats[: options.limit]:
        kinds = json.loads(
            (chat / "probing_questions" / "probing_questions.json").read_text(encoding="utf-8")
        )
        asked = [(kind, str(one["question"])) for kind, some in kinds.items() for one in some]
        sessions = beam_sessions(json.loads((chat / "chat.json").read_text(encoding="utf-8")))
        found: dict[str, list[dict[str, str]]] = {kind: [] for kind in kinds}
        given = answers(sessions, [(question, "") for _, question in asked], options)
        for (kind, question), answer in zip(asked, given, strict=True):
            found[kind].append({"question": question, "llm_response": answer})
        place = options.out / chat.name / "memoriter.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(found, ensure_ascii=False, indent=4), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the answers for one benchmark."""
    parser = argparse.ArgumentParser(prog="python -m lab.harness.hypotheses", description=__doc__)
    parser.add_argument("benchmark", choices=("longmemeval", "beam"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--budget", type=int, default=1024, help="Tokens of the lines (default: 1024).")
    parser.add_argument("--limit", type=int, help="Questions, or chats of BEAM (default: all).")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    {"longmemeval": longmemeval, "beam": beam}[options.benchmark](options)


if __name__ == "__main__":
    main()
