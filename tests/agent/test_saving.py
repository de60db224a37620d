"""Saving, summarising and watching with the tool `memory_save` and the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interrupts import Interrupt

from memoriter import Memory
from memoriter.tools.toolbox import TOOLS, Toolbox

OpenMemory = Callable[..., Memory]


# ---- the tool -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("E3")
def test_memory_save_writes_and_the_next_search_finds_it(open_memory: OpenMemory, workspace: Path) -> None:
    toolbox = Toolbox(open_memory())
    toolbox.call("memory_search", {"query": "anything"})
    saved = toolbox.call(
        "memory_save",
        {"content": "用户喜欢使用 TypeScript 开发", "title": "用户偏好", "tags": ["preference", "tech"]},
    )
    assert saved["saved"]
    assert re.fullmatch(r"memory/\d{4}-\d\d-\d\d-agent\.md", saved["path"])
    assert "Tags: preference, tech" in (workspace / saved["path"]).read_text(encoding="utf-8")
    found = toolbox.call("memory_search", {"query": "用户喜欢什么"})
    assert found["results"][0]["path"] == saved["path"]
    again = toolbox.call("memory_save", {"content": "用户喜欢使用 TypeScript 开发"})
    assert (again["already"], again["path"]) == (True, saved["path"])
    item = toolbox.call("memory_save", {"content": "Ship in March.", "title": "Goals", "category": "project"})
    assert item["path"] == "memory/project/goals.md"
    assert not TOOLS["memory_save"].read_only


@pytest.mark.requirement("E3")
def test_a_hit_shows_its_own_note_without_the_text_and_tags_of_a_neighbour(open_memory: OpenMemory) -> None:
    toolbox = Toolbox(open_memory())
    notes = (
        ("I prefer dark themes in every editor", "Theme", ["preference", "tech"]),
        ("The backup of the server runs at two at night", "Backup", ["ops"]),
        ("The invoice of the bicycle is in the blue folder", "Bicycle", []),
    )
    for content, title, tags in notes:
        assert toolbox.call("memory_save", {"content": content, "title": title, "tags": tags})["saved"]
    found = toolbox.call("memory_search", {"query": "backup invoice themes", "minScore": 0})["results"]
    shown = {hit["snippet"].split("\n\n")[-2]: hit["heading"] for hit in found}
    day = found[0]["date"]
    assert shown == {
        "I prefer dark themes in every editor": "preference, tech",
        "The backup of the server runs at two at night": f"{day} > ops",
        "The invoice of the bicycle is in the blue folder": day,
    }


def test_notes_of_an_agent_are_never_trusted_as_the_owners(open_memory: OpenMemory) -> None:
    memory = open_memory()
    toolbox = Toolbox(memory)
    for category in (None, "birds"):
        memory.save("The heron is grey.", "Heron", category=category)
        given = {"content": "The heron is pink.", "title": "Heron", "category": category}
        assert toolbox.call("memory_save", given)["saved"]
    found = toolbox.call("memory_search", {"query": "heron", "minScore": 0, "maxResults": 20})["results"]
    trusts = {
        colour: {hit["trust"] for hit in found if colour in hit["snippet"]} for colour in ("grey", "pink")
    }
    assert trusts == {"grey": {"owner"}, "pink": {"agent"}}


def test_memory_save_reports_errors(open_memory: OpenMemory, workspace: Path) -> None:
    toolbox = Toolbox(open_memory())
    empty = toolbox.call("memory_save", {"content": "<private>x</private>"})
    assert (empty["saved"], empty["error"]) == (
        False,
        "Nothing to save: the content is empty or private.",
    )
    assert toolbox.call("memory_save", {})["error"] == "memory_save needs `content`."
    (workspace / "memory").rmdir()
    (workspace / "memory").write_text("a file", encoding="utf-8")
    assert "could not be written" in toolbox.call("memory_save", {"content": "x"})["error"]


@pytest.mark.parametrize("broken", [chr(0xDCFF), chr(0xD83D)], ids=ascii)
def test_text_that_is_not_unicode_does_not_damage_the_daily_log(
    open_memory: OpenMemory, workspace: Path, broken: str
) -> None:
    memory = open_memory()
    first = memory.save(f"Anna prefers tea {broken}.")
    assert "Anna prefers tea ?." in (workspace / first.path).read_text(encoding="utf-8")
    assert memory.save("Backups run at three.").path == first.path
    toolbox = Toolbox(memory)
    result = toolbox.call(
        "memory_save", {"content": f"Bo prefers milk {broken}.", "title": broken, "tags": [broken]}
    )
    assert result["saved"]
    assert toolbox.call("memory_save", {"content": "Bo lives in Lund."})["path"] == result["path"]
    messages = [{"role": "user", "content": f"We decided to ship on Thursday {broken}."}]
    summary = memory.summarise(messages, f"session {broken}")
    assert summary is not None
    assert "on Thursday ?" in (workspace / summary.path).read_text(encoding="utf-8")
    again = memory.summarise(messages, f"session {broken}")
    assert again is not None
    assert (again.path, again.already) == (summary.path, True)


# ---- the command line -----------------------------------------------------------------------------------------


@pytest.fixture
def environment(workspace: Path, tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "MEMORITER_WORKSPACE": str(workspace),
        "MEMORITER_HOME": str(tmp_path / "state"),
        "MEMORITER_EMBEDDING__PROVIDER": "none",
        "MEMORITER_WATCH__DEBOUNCE_S": "0.05",
        "MEMORITER_WRITING__TIMEZONE": "Asia/Shanghai",
    }


@pytest.fixture
def memoriter(
    environment: dict[str, str], run_forked: Callable[..., subprocess.CompletedProcess[bytes]]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        done = run_forked(list(arguments), environment, stdin.encode())
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


def test_save_and_summarise_on_the_command_line(
    memoriter: Callable[..., subprocess.CompletedProcess[str]], workspace: Path, tmp_path: Path
) -> None:
    done = memoriter(
        "save", "-", "--title", "Anna", "--tags", "people,tea", "--json", stdin="Anna prefers tea.\n"
    )
    saved = json.loads(done.stdout)
    assert (
        (workspace / saved["path"])
        .read_text(encoding="utf-8")
        .endswith("Anna prefers tea.\n\nTags: people, tea\n")
    )
    again = memoriter("save", "Anna prefers tea.")
    assert again.stdout.startswith("Already saved: memory/")
    folder = tmp_path / "state/agents/main/sessions"
    folder.mkdir(parents=True)
    talk = [("user", "我们把发布改到周四，可以吗？"), ("assistant", "可以，发布改到每周四上午十点。")]
    lines = [
        json.dumps({"role": role, "content": text, "time": "2026-04-01T23:00:00Z"}) for role, text in talk
    ]
    (folder / "s1.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    first = memoriter("summarise", "sessions/s1.jsonl")
    assert first.stdout.startswith("Saved: memory/2026-04-02-我们把发布改到周四.md#L1-L")
    assert memoriter("summarise", "sessions/s2.jsonl").returncode == 1


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])  # by the locale
def test_bytes_that_are_not_utf8_are_refused(environment: dict[str, str], errors: str) -> None:
    command = [sys.executable, "-m", "memoriter", "save", "-"]
    environment["PYTHONIOENCODING"] = f"utf-8:{errors}"
    done = subprocess.run(command, capture_output=True, env=environment, input=b"tea \xff", check=False)
    assert done.returncode == 2
    assert b"Standard input is not UTF-8 text (byte 4). Nothing was stored." in done.stderr


@pytest.fixture
def interrupt() -> Interrupt:
    return Interrupt()


@pytest.fixture
def watching(environment: dict[str, str], interrupt: Interrupt) -> Iterator[subprocess.Popen[str]]:
    command = interrupt.command(["watch", "--json"])
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    guard = threading.Timer(60, process.kill)
    guard.start()
    yield process
    guard.cancel()
    process.kill()
    process.communicate()


def test_watch_shows_syncs_and_ends_on_a_signal(
    watching: subprocess.Popen[str], note: Callable[[str, str], Path], interrupt: Interrupt
) -> None:
    assert watching.stdout is not None
    first = json.loads(watching.stdout.readline())
    assert (first["reason"], first["files"]) == ("start", 0)
    note("memory/a.md", "The heron stands in the marsh.")
    for line in watching.stdout:
        event = json.loads(line)
        if event["files"]:
            break
    assert (event["reason"], event["changed"], event["chunks"]) == ("notes", 1, 1)
    interrupt.send(watching)
    assert watching.wait(600) == 0
    assert watching.stderr is not None
    assert watching.stderr.read() == ""
