"""The files that LongMemEval's and BEAM's evaluations read."""

from __future__ import annotations

import json
from pathlib import Path

from lab.harness import hypotheses
from lab.harness.__main__ import MESSAGES, QUESTION, WANTED, model


def test_longmemeval_gets_one_hypothesis_for_each_question(tmp_path: Path) -> None:
    case = {
        "question_id": "q1_abs",
        "question": QUESTION,
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_dates": ["2023/05/08 (Mon) 13:56", "2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [MESSAGES, [{"role": "user", "content": "The weather is fine."}]],
    }
    data, out = tmp_path / "data.json", tmp_path / "hypotheses.jsonl"
    data.write_text(json.dumps([case, case | {"question_id": "q2", "question": "What weather is it?"}]))
    with model() as url:
        hypotheses.main(["longmemeval", "--data", str(data), "--url", url, "--out", str(out)])
    first, second = (json.loads(line) for line in out.read_text().splitlines())
    assert (first["question_id"], second["question_id"]) == ("q1_abs", "q2")
    assert "[2023-05-08]" in first["hypothesis"]
    assert WANTED in first["hypothesis"]


def test_beam_gets_the_answers_by_kind_of_question(tmp_path: Path) -> None:
    def message(role: str, content: str, day: str | None = None) -> dict[str, str | None]:
        return {"role": role, "content": content, "time_anchor": day}

    turns = [
        [
            message("user", "My first sprint ends on March 29. ->-> 1,1", "March-15-2024"),
            message("assistant", "Noted."),
        ],
        [message("user", "Now it is April.", "April-05-2024")],
    ]
    chat = tmp_path / "chats" / "1"
    (chat / "probing_questions").mkdir(parents=True)
    (chat / "chat.json").write_text(json.dumps([{"batch_number": 1, "turns": turns}]))
    asked = {"information_extraction": [{"question": "When does my first sprint end?"}], "abstention": []}
    (chat / "probing_questions" / "probing_questions.json").write_text(json.dumps(asked))
    with model() as url:
        places = ["--data", str(tmp_path / "chats"), "--out", str(tmp_path / "results")]
        hypotheses.main(["beam", *places, "--url", url])
    found = json.loads((tmp_path / "results" / "1" / "memoriter.json").read_text())
    (answered,) = found["information_extraction"]
    assert answered["question"] == "When does my first sprint end?"
    assert answered["llm_response"].endswith("user: My first sprint ends on March 29. assistant: Noted.")
    assert answered["llm_response"].startswith("[2024-03-15]")
    assert found["abstention"] == []
