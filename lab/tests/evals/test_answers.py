"""The score of an answer, and what the model is shown."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from lab.harness import answers


@pytest.mark.parametrize(
    ("answer", "right", "score"),
    [("7 May 2023", "7 May 2023", 1.0), ("The 7 May", "7 May 2023", 0.8), ("no idea", 2022, 0.0)],
)
def test_the_score_is_the_share_of_common_words(answer: str, right: object, score: float) -> None:
    assert answers.f1(answer, right) == pytest.approx(score)


def test_each_question_is_asked_with_and_without_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = {"group": "conv-26", "session": "conv-26/S1", "time": "1:56 pm on 8 May, 2023"}
    texts = ("Melanie: I painted a lake sunrise.", "Caroline: I went to a support group yesterday.")
    said = [turn | {"id": f"conv-26/D1:{number}", "text": text} for number, text in enumerate(texts)]
    query = {
        "group": "conv-26",
        "query": "What did Melanie paint?",
        "category": "single",
        "answer": "a lake sunrise",
    }
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo/corpus.jsonl").write_text("\n".join(map(json.dumps, said)))
    (tmp_path / "locomo/queries.jsonl").write_text(json.dumps(query | {"relevant": ["conv-26/D1:0"]}))
    prompts = list[str]()

    class Model(BaseHTTPRequestHandler):
        """A server that knows the answer if the prompt contains it."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            prompts.append(body["messages"][0]["content"])
            said = "lake sunrise" if "lake sunrise" in prompts[-1] else "a dog"
            answer = {"choices": [{"message": {"content": said}}], "usage": {"prompt_tokens": 9}}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    out = tmp_path / "answers.jsonl"
    arguments = [
        "answers",
        "--data",
        str(tmp_path),
        "--url",
        f"http://127.0.0.1:{server.server_port}/v1",
        "--out",
        str(out),
    ]
    monkeypatch.setattr("sys.argv", arguments)
    answers.main()
    server.shutdown()
    server.server_close()
    found: list[dict[str, Any]] = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(one["memory"], one["f1"], one["evidence"]) for one in found] == [
        (True, 1.0, True),
        (False, 0.0, False),
    ]
    assert "[2023-05-08]" in prompts[0]
    assert "| memory on | 1 | 100.0 | 100% |" in capsys.readouterr().out
