"""The commands `recall` and `capture`, with conversations in the formats of common clients."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_claude_code import ClaudeCode, Ran

SAID = "I prefer tabs in Go code."
OPENAI = [
    {"role": "system", "content": "You are helpful."},
    {"role": "user", "content": [{"type": "input_text", "text": SAID}]},
    {"role": "assistant", "content": [{"type": "output_text", "text": "I always use spaces."}]},
]
ANTHROPIC = [
    {"role": "user", "content": [{"type": "text", "text": SAID}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "bash", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "I like Perl."}]},
]
PLAIN = [{"role": "user", "content": SAID}]


@pytest.fixture
def memoriter(claude: ClaudeCode) -> Callable[..., Ran]:
    def run(*arguments: str, said: str = "") -> Ran:
        return claude.run(list(arguments), said.encode(), claude.environment, claude.project)

    return run


Memoriter = Callable[..., Ran]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(PLAIN),
        json.dumps(OPENAI, indent=2),
        "".join(json.dumps(message) + "\n" for message in ANTHROPIC),
        json.dumps({"model": "x", "messages": ANTHROPIC}, indent=1),
        json.dumps(PLAIN[0]),
    ],
    ids=["array", "openai", "json lines", "request", "one message"],
)
def test_capture_reads_every_message_format(
    memoriter: Memoriter, claude: ClaudeCode, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "messages"
    file.write_text(text)
    done = memoriter("capture", "--messages", str(file), "--session", "s1", "--json")
    assert done.code == 0
    assert [outcome["memory"]["text"] for outcome in json.loads(done.output)["remembered"]] == [SAID]
    assert json.loads(
        memoriter("capture", "--messages", "-", "--session", "s1", "--json", said=text).output
    ) == {"remembered": []}
    assert claude.entries() == [SAID]


def test_recall_prints_the_block_and_nothing_else(memoriter: Memoriter) -> None:
    memoriter("capture", "--messages", "-", said=json.dumps(PLAIN))
    asked = json.dumps([{"role": "user", "content": "Do I prefer tabs?"}])
    block = memoriter("recall", "--messages", "-", said=asked).output.decode()
    assert block.startswith("<relevant-memories recall=")
    assert block.endswith("</relevant-memories>\n")
    assert SAID in block
    result = json.loads(memoriter("recall", "--messages", "-", "--json", said=asked).output)
    assert [line["text"] for line in result["lines"]] == [SAID]
    unknown = json.dumps([{"role": "user", "content": "What is the weather?"}])
    assert memoriter("recall", "--messages", "-", said=unknown).output == b""


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "null", '{"role": "user"', "\x00", "[" * 100_000])
def test_input_that_is_not_a_conversation_is_one_sentence(memoriter: Memoriter, text: str) -> None:
    for command in ("recall", "capture"):
        done = memoriter(command, "--messages", "-", said=text)
        assert "Traceback" not in done.error.decode()
        assert done.code == 1 or text == ""
        assert done.error.decode().count("\n") == (1 if text else 0)
