"""What a language model is asked about LoCoMo, and how its answers are scored."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from lab.evals.sets import Item
from lab.harness import answers
from lab.harness.locomo import MISSING, Question, f1, sample


def question(category: str, answer: str, number: int = 0, group: str = "conv-26") -> Question:
    return Question(f"{group}/q{number}", group, "What did she paint?", category, answer, ("D1:0",))


@pytest.mark.parametrize(
    ("answer", "right", "score"),
    [
        ("7 May 2023", "7 May, 2023", 1.0),
        ("The 7 May", "7 May 2023", 0.8),
        ("Painted lakes", "a lake painting", 1.0),
        ("no idea", "2022", 0.0),
        ("", "2022", 0.0),
    ],
)
def test_the_score_is_the_share_of_common_words(answer: str, right: str, score: float) -> None:
    assert f1(answer, right) == pytest.approx(score)


def test_each_of_several_answers_counts_by_the_nearest_part_of_what_was_said() -> None:
    assert question("multi-hop", "pottery, camping, swimming").score("camping, pottery") == pytest.approx(
        2 / 3
    )
    assert question("single-hop", "pottery, camping, swimming").score("camping, pottery") == pytest.approx(
        0.8
    )


def test_only_the_first_part_of_an_answer_about_the_world_counts() -> None:
    assert question("open-domain", "Yes; she collects classics").score("Yes") == 1.0


@pytest.mark.parametrize("number", range(6))
def test_an_adversarial_question_is_right_if_the_model_chooses_not_mentioned(number: int) -> None:
    asked = question("adversarial", "a horse", number)
    right, wrong = ("a", "b") if asked.choices[0] == MISSING else ("b", "a")
    assert [asked.score(said) for said in (right, f"({right})", f"{MISSING}.", wrong, f"({wrong})", "a horse")] == [
        1, 1, 1, 0, 0, 0,
    ]  # fmt: skip
    assert f"(a) {asked.choices[0]} (b) {asked.choices[1]}" in asked.asked


def test_a_sample_has_every_kind_of_every_group_and_is_the_same_in_every_run() -> None:
    all_ = [
        question(category, "x", 100 * place + number, group)
        for group in ("conv-26", "conv-30")
        for place, (category, count) in enumerate(
            {"temporal": 30, "adversarial": 60, "open-domain": 2}.items()
        )
        for number in range(count)
    ]
    chosen = sample(all_, 40)
    assert chosen == sample(all_[::-1], 40)[::-1]
    assert Counter((one.group, one.category) for one in chosen) == {
        (group, category): count
        for group in ("conv-26", "conv-30")
        for category, count in {"temporal": 7, "adversarial": 13, "open-domain": 1}.items()
    }


def test_lines_that_exceed_the_budget_are_left_out() -> None:
    items = [
        Item(f"D1:{number}", "conv-26", text, "2023-05-08")
        for number, text in enumerate(("a b", "c " * 50, "d"))
    ]
    made = answers.prompt_of("mem0", 20, question("temporal", "x"), items, lambda text: len(text.split()))
    assert made.prompt.startswith(
        "Lines of their conversations:\n\n[8 May 2023] a b\n[8 May 2023] d\n\nBased on"
    )
    assert (made.tokens, made.evidence) == (9, 1.0)


@contextmanager
def model(prompts: list[str]) -> Iterator[str]:
    """Serve a model that knows the answer if the prompt has it."""

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            prompts.append(body["messages"][1]["content"])
            said = "lake sunrise" if "lake sunrise" in prompts[-1] else "a dog"
            answer = {"choices": [{"message": {"content": said}}], "usage": {"prompt_tokens": 9}}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_three_steps_lead_from_the_set_to_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turn = {"group": "conv-26", "session": "conv-26/S1", "time": "1:56 pm on 8 May, 2023"}
    texts = ("Melanie: I painted a lake sunrise.", "Caroline: I went to a support group yesterday.")
    said = [turn | {"id": f"conv-26/D1:{number}", "text": text} for number, text in enumerate(texts)]
    query = {
        "id": "conv-26/q0",
        "group": "conv-26",
        "query": "What did Melanie paint?",
        "category": "single-hop",
    }
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo/corpus.jsonl").write_text("\n".join(map(json.dumps, said)))
    (tmp_path / "locomo/queries.jsonl").write_text(
        json.dumps(query | {"answer": "a lake sunrise", "relevant": ["conv-26/D1:0"]})
    )
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"
    data = ["--data", str(tmp_path)]
    chosen = ["--memories", "none,memoriter", "--budgets", "64", "--cache", str(tmp_path / "cache")]
    answers.main(["prompts", *data, *chosen, "--out", str(prompts)])
    asked = list[str]()
    with model(asked) as address:
        arguments = ["answer", "--prompts", str(prompts), "--address", address, "--out", str(out)]
        answers.main(arguments)
        answers.main(arguments)  # what has an answer is not asked again
    assert ["[8 May 2023] Melanie: I painted" in prompt for prompt in asked] == [False, True]
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {"id": "conv-26/q0 none 0", "answer": "a dog", "prompt_tokens": 9},
        {"id": "conv-26/q0 memoriter 64", "answer": "lake sunrise", "prompt_tokens": 9},
    ]
    capsys.readouterr()
    answers.main(["score", *data, "--prompts", str(prompts), "--answers", str(out)])
    shown = capsys.readouterr().out
    assert "1 questions, and 0 adversarial ones" in shown
    assert "| 0 | none | 0.0 [0.0, 0.0] |" in shown
    assert "| 64 | memoriter | 100.0 [100.0, 100.0] |  | 100 % |" in shown
    assert "| 64 | memoriter | 100.0 (1) |" in shown
