"""The example agent, as people run it: it learns something one day and is asked in a new process the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from chat_completions import serving

AGENT = Path(__file__).parents[2] / "examples" / "agent.py"


def run(*arguments: str, typed: str = "", **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(AGENT), *arguments],
        env={**os.environ, "PYTHONUTF8": "1", **environment},
        input=typed,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def after(text: str, words: str) -> str:
    """Return what is printed between these words of the user and the next."""
    return text.partition(words)[2].partition("    user  ")[0]


def test_a_new_process_knows_the_next_day_what_the_first_one_learned() -> None:
    out = run()
    first, _, second = out.partition("day 2, a new process")
    assert "memory  added: I prefer green tea over coffee." in first
    assert 'tool  memory_save({"content": "The rent is due on the fifth of every month."})' in first
    assert "host  the conversation was shortened" in after(first, "Here are my notes")
    assert "memory  written: memory/" in after(first, "Here are my notes")  # the flush
    assert "memory  written: memory/" in after(first, "user  /new")  # the summary
    assert "agent  As I remember it: I prefer green tea over coffee." in after(
        first, "Which tea do I prefer?"
    )

    assert "agent  As I remember it: I prefer green tea over coffee." in after(second, "tea or coffee?")
    assert "on the server in Porto" in after(second, "nightly backups?")
    assert "the fifth of every month" in after(second, "When is the rent due?").partition("agent  ")[2]
    assert "the third of March" in after(second, "announce the launch?").partition("agent  ")[2]
    assert "tool  memory_search" in after(second, "交房租？")
    assert "the fifth of every month" in after(second, "交房租？").partition("agent  ")[2]
    assert "recalled: agent" not in out  # a label such as `agent` is not the text of a line
    # A handler on a busy machine may miss its deadline. What it had to do is asserted above.
    warnings = [line for line in out.splitlines() if line.startswith(" warning  ")]
    assert [line for line in warnings if "took longer than" not in line] == []
    assert "repeated" not in out  # the host sends the whole conversation each time


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "agent")


NO_MODEL = {"MEMORITER_EMBEDDING__PROVIDER": "none"}  # keyword search is enough here


def test_it_works_with_any_chat_completions_server(folder: str) -> None:
    with serving() as model:
        server = {
            "OPENAI_BASE_URL": model.url,
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_MODEL": "parrot-1",
            **NO_MODEL,
        }
        first = run("--chat", "--folder", folder, typed="I prefer green tea over coffee.\n/quit\n", **server)
        second = run("--chat", "--folder", folder, typed="Do I prefer tea or coffee?\n/new\n", **server)
    assert "agent  Noted." in first
    assert "memory  added: I prefer green tea over coffee." in first
    assert 'tool  memory_recall({"query": "Do I prefer tea or coffee?"})' in second
    assert "agent  From memory: I prefer green tea over coffee." in second
    assert "agent  A new session has started." in second

    assert model.mistakes == []
    assert set(model.keys) == {"Bearer sk-test"}
    first, asked, answered = (body["messages"] for body in model.asked)
    assert {body["model"] for body in model.asked} == {"parrot-1"}
    assert {tool["function"]["name"] for tool in model.asked[0]["tools"]} >= {
        "memory_search",
        "memory_recall",
    }
    assert first[0]["content"].count("## Memory recall") == 1
    assert [message["role"] for message in first] == ["system", "user"]
    assert [message["role"] for message in asked] == ["system", "user"]
    assert asked[1]["content"].startswith("<relevant-memories ")
    assert "I prefer green tea over coffee." in asked[1]["content"]
    assert [message["role"] for message in answered] == ["system", "user", "assistant", "tool"]


def test_it_continues_without_memory(folder: str) -> None:
    out = run(
        "--chat",
        "--folder",
        folder,
        typed="Which tea?\n",
        MEMORITER_PLUGINS__SLOTS__MEMORY="none",
        **NO_MODEL,
    )
    assert "warning  without memory: Memory is switched off: `plugins.slots.memory` is `none`." in out
    assert "agent  I do not know." in out


def test_a_server_that_does_not_answer_gives_a_one_line_error(folder: str) -> None:
    done = subprocess.run(
        [sys.executable, str(AGENT), "--chat", "--folder", folder, "--base-url", "http://127.0.0.1:9/v1"],
        env={**os.environ, **NO_MODEL},
        input="Hello, you!\n",
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("The model at http://127.0.0.1:9/v1/chat/completions does not answer: ")
    assert done.stderr.count("\n") == 1
