"""A home that cannot be written: what was indexed and remembered before still answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ANSWERS = """
import json, sys
from memoriter import Memory

memory = Memory.open(sys.argv[1], home=sys.argv[2], overrides={"embedding.provider": "none"})
found = [memory.search(query, max_results=1) for query in sys.argv[3:]]
answers = [[[hit.path.split("/")[0] for hit in answer.hits], answer.degraded] for answer in found]
print(json.dumps([answers, memory.read("memory/heron.md").text, memory.status().files]))
"""


def run_read_only(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a child that cannot write the home. Root ignores permissions, so it needs a mount."""
    command = [sys.executable, *arguments]
    if os.geteuid() == 0:
        if not shutil.which("unshare"):
            pytest.skip("unshare is not installed")
        mounts = f"mount --bind {home} {home} && mount -o remount,ro,bind {home}"
        if subprocess.run(
            ["unshare", "-m", "bash", "-c", mounts], capture_output=True, check=False
        ).returncode:
            pytest.skip("this machine does not allow mounts")
        command = ["unshare", "-m", "bash", "-c", f'{mounts} && exec "$@"', "-", *command]
    else:
        for path in (home, *home.rglob("*")):
            path.chmod(path.stat().st_mode & 0o555)
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        for path in (home, *home.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)


def ask_read_only(home: Path, *arguments: str) -> list[object]:
    """Search a home that cannot be written."""
    done = run_read_only(home, "-c", ANSWERS, *arguments)
    assert done.returncode == 0, done.stderr
    answers: list[object] = json.loads(done.stdout)
    return answers


@pytest.mark.integration
@pytest.mark.skipif(sys.platform != "linux", reason="it needs mounts or permissions of Linux")
def test_search_and_read_work_on_a_read_only_disk_and_say_what_is_not_indexed(
    note: Callable[[str, str], Path], workspace: Path, tmp_path: Path, open_memory
) -> None:
    note("memory/heron.md", "The heron stands in the river.\n")
    memory = open_memory(embedding__provider="none")
    memory.sync()
    memory.entries.add("The owner likes oolong tea.", "fact")
    memory.search("oolong")
    memory.close()
    home = tmp_path / "state"
    answers, text, files = ask_read_only(home, str(workspace), str(home), "heron river", "oolong tea")
    assert answers == [[["memory"], None], [["entries"], None]]
    assert (text, files) == ("The heron stands in the river.", 1)
    note("memory/otter.md", "The otter sleeps.\n")
    [[hits, degraded], _], *_ = ask_read_only(home, str(workspace), str(home), "heron river", "otter")
    assert hits == ["memory"]
    assert degraded.startswith("Files that changed recently are not indexed: Cannot lock ")


@pytest.mark.integration
@pytest.mark.skipif(sys.platform != "linux", reason="it needs mounts or permissions of Linux")
def test_commands_that_cannot_write_name_the_file_and_the_reason(workspace: Path, tmp_path: Path) -> None:
    home = tmp_path / "state"
    plugin = home / "claude-code/memoriter/plugin"
    plugin.mkdir(parents=True)
    (plugin / ".mcp.json").touch()
    for file in (home / "config.yaml", workspace / ".memoriter.yaml", workspace / "MEMORY.md"):
        file.touch()
    (workspace / "memory").mkdir(exist_ok=True)
    options = ("-m", "memoriter", "--home", str(home), "--workspace", str(workspace))
    reason = "Read-only file system" if os.geteuid() == 0 else "Permission denied"
    for words, message in (
        (("init",), f"{reason} ({home / 'config.yaml'})."),
        (("config", "set", "search.max_results", "5"), f"{reason} ({home / 'config.yaml'})."),
        (("install", "claude-code"), f"{plugin} cannot be replaced: {reason}."),
    ):
        done = run_read_only(home, *options, *words)
        assert (done.returncode, done.stderr) == (1, f"memoriter: {message}\n")


@pytest.mark.integration
@pytest.mark.skipif(sys.platform != "linux", reason="it needs mounts or permissions of Linux")
def test_the_advice_for_a_read_only_folder_of_notes_works(tmp_path: Path) -> None:
    folder, home = tmp_path / "team", tmp_path / "state"
    for path in (folder, home):
        path.mkdir()
    (folder / "walrus.md").write_text("The walrus sleeps on the ice.\n", "utf-8")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        done = run_read_only(folder, "-m", "memoriter", "--home", str(home), *words)
        assert (folder / ".memoriter.yaml").exists() is False
        return done

    advice = f"To index all notes, run `memoriter collection add NAME {folder}`."
    refused = run("init", str(folder))
    sentence = f"memoriter: {folder} is read-only and cannot be set up. {advice}\n"
    assert (refused.returncode, refused.stderr) == (1, sentence)
    assert advice in run("search", "walrus", "--workspace", str(folder)).stdout
    assert run("init", str(tmp_path / "own")).returncode == 0
    assert run("collection", "add", "team", str(folder)).returncode == 0
    assert "The walrus sleeps on the ice." in run("search", "walrus").stdout
