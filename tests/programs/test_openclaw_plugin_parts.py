"""Parts of the plugin for OpenClaw, run in Node with a stand-in for the host: wrong input, failures, visibility.

`test_openclaw_slot_itself.py` runs the whole plugin in the real OpenClaw.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HOST = ROOT / "tests" / "openclaw" / "plugin_host.mjs"
MEMORITER = [sys.executable, "-m", "memoriter"]
OWNER = {"agentId": "main", "sessionKey": "agent:main:main", "sessionId": "s1", "senderIsOwner": True}

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js"),
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("- The backup goes to the bucket heron.\n")
    return folder


def run(workspace: Path, *steps: dict[str, Any], **config: Any) -> tuple[list[Any], dict[str, Any]]:
    """Run steps in the plugin. Return their results, and the log."""
    settings = {"command": MEMORITER, "home": str(workspace.parent / "home"), "timeoutMs": 60_000, **config}
    entries = {"main": {"workspace": str(workspace)}, "lost": {"workspace": str(workspace / "gone")}}
    asked = {
        "folder": str(ROOT / "plugins" / "openclaw"),
        "config": {name: value for name, value in settings.items() if value is not None},
        "openclaw": {"agents": {"entries": entries}},
        "steps": steps,
    }
    done = subprocess.run(
        ["node", str(HOST)], input=json.dumps(asked), capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    *results, last = [json.loads(line) for line in done.stdout.splitlines()]
    return results, last


def search(query: str = "backup bucket", **ctx: Any) -> dict[str, Any]:
    return {"do": "tool", "name": "memory_search", "args": {"query": query}, "ctx": {**OWNER, **ctx}}


def test_a_search_has_openclaws_shape(workspace: Path) -> None:
    ((_, found), _) = run(workspace, {"do": "sync"}, search())
    (hit,) = found["results"]
    assert {key: hit[key] for key in ("path", "startLine", "endLine", "source", "corpus")} == {
        "path": "MEMORY.md",
        "startLine": 1,
        "endLine": 1,
        "source": "memory",
        "corpus": "memory",
    }
    assert hit["provenance"]["originClass"] == "owner"
    assert hit["level"] in ("high", "medium")
    assert "notice" not in found
    assert found["mode"] == "hybrid"


def test_a_search_says_that_nothing_relevant_is_known(workspace: Path) -> None:
    ((_, found), _) = run(workspace, {"do": "sync"}, search("Wer hat die Oper Nabucco komponiert?"))
    assert found["notice"].startswith("Nothing relevant found.")
    assert {hit["level"] for hit in found["results"]} <= {"low"}


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"command": "memoriter"}, "The setting `command` of memoriter must be a list of strings."),
        (
            {"timeoutMs": "soon"},
            "The setting `timeoutMs` of memoriter must be a whole number between 100 and 60000.",
        ),
        ({"colour": "red"}, "`colour` is not a setting of memoriter."),
        ({"url": "http://127.0.0.1:9"}, "The setting `url` of memoriter also needs `token`."),
    ],
)
def test_a_wrong_setting_is_one_sentence(workspace: Path, config: dict[str, Any], sentence: str) -> None:
    ((found,), last) = run(workspace, search(), **config)
    assert (found["disabled"], found["error"]) == (True, f"Memory is unavailable: {sentence}")
    assert last["problem"] == f"Memory is unavailable: {sentence}"


def test_unknown_agents_lost_workspaces_and_outside_paths_are_one_sentence(workspace: Path) -> None:
    outside = {"do": "tool", "name": "memory_get", "args": {"path": "../../etc/passwd"}, "ctx": OWNER}
    ((unknown, lost, read, manager), _) = run(
        workspace,
        search(agentId="nobody", sessionKey="agent:nobody:main"),  # words: ok
        search(agentId="lost", sessionKey="agent:lost:main"),
        outside,
        {"do": "manager", "agentId": "lost"},
    )
    assert unknown["error"] == "Memory is unavailable: OpenClaw has no agent nobody."  # words: ok
    gone = f"Memory is unavailable: the workspace {workspace / 'gone'} of the agent lost does not exist."
    assert (lost["error"], manager["error"]) == (gone, gone)
    assert (read["status"], read["text"]) == ("not_found", "")
    assert read["error"]


def test_a_program_that_is_missing_or_fails_is_reported(workspace: Path) -> None:
    ((missing,), _) = run(workspace, search(), command=["/nowhere/memoriter"])
    assert missing["error"].startswith("Memory is unavailable: the command /nowhere/memoriter was not found;")
    ((module,), last) = run(workspace, search(), command=[sys.executable, "-I", "-S", "-m", "memoriter"])
    assert "memoriter ended with status 1" in module["error"]
    assert "install it with `pip install memoriter`" in module["error"]
    assert [line for line in last["log"] if "memoriter ended with status 1" in line]


def test_a_program_that_does_not_answer_costs_only_the_deadline(workspace: Path) -> None:
    hanging = [sys.executable, "-c", "import time; time.sleep(1000)"]
    ((status,), _) = run(
        workspace,
        {"do": "tool", "name": "memory_store", "args": {"text": "x"}, "ctx": OWNER},
        command=hanging,
        tools=["memory_store"],
    )
    assert status["error"] == "Memory is unavailable: memoriter did not answer within 15 s."


def test_session_hits_are_shown_to_their_owner_only(workspace: Path) -> None:
    hits = [{"path": "MEMORY.md", "source": "memory"}, {"path": "sessions/s1-0.jsonl", "source": "sessions"}]
    keys = [None, "agent:main:main", "agent:main:telegram:group:-100", "agent:main:telegram:direct:7"]
    steps = [{"do": "authorize", "requesterSessionKey": key, "agentId": "main", "hits": hits} for key in keys]
    results, _ = run(workspace, *steps)
    assert [[hit["source"] for hit in result] for result in results] == [
        ["memory", "sessions"],
        ["memory", "sessions"],
        ["memory"],
        ["memory"],
    ]


def test_more_tools_are_switched_on_by_config(workspace: Path) -> None:
    ((names,), _) = run(workspace, {"do": "names"}, tools=["memory_store", "memory_forget"])
    assert names == ["memory_search", "memory_get", "memory_store", "memory_forget"]


@pytest.fixture
def gateway(workspace: Path) -> Iterator[dict[str, str]]:
    """A gateway for the agent `main`: the settings `url` and `token` of the plugin."""
    places = ["--home", str(workspace.parent / "home"), "--workspace", str(workspace), "--agent", "main"]
    with subprocess.Popen(
        [*MEMORITER, *places, "serve", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as started:
        try:
            assert started.stdout is not None
            ready = json.loads(started.stdout.readline())
            yield {"url": ready["address"], "token": ready["token"]}
        finally:
            started.terminate()


def test_a_gateway_answers_as_a_process_does(workspace: Path, gateway: dict[str, str]) -> None:
    read = {"do": "tool", "name": "memory_get", "args": {"path": "memory/agents.md"}, "ctx": OWNER}
    lost = search(agentId="lost", sessionKey="agent:lost:main")
    ((_, found, missing, unknown), _) = run(workspace, {"do": "sync"}, search(), read, lost, **gateway)
    assert [hit["path"] for hit in found["results"]] == ["MEMORY.md"]
    assert (missing["status"], "memory/agents.md" in missing["error"]) == ("not_found", True)
    assert unknown["error"] == f"Memory is unavailable: the gateway {gateway['url']} has no agent lost."


def test_a_gateway_that_refuses_the_token_or_is_gone_is_one_sentence(
    workspace: Path, gateway: dict[str, str]
) -> None:
    url = gateway["url"]
    ((refused,), _) = run(workspace, search(), url=url, token="mmr_wrong")
    assert refused["error"] == f"Memory is unavailable: the gateway {url} refuses the token."
    ((gone,), _) = run(workspace, search(), url="http://127.0.0.1:9", token="mmr_wrong")
    assert gone["error"] == "Memory is unavailable: the gateway http://127.0.0.1:9 cannot be reached."
