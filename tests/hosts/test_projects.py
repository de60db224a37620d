"""Projects are repositories, and what is learned on a branch joins the rest when it is merged. Git itself runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_hooks_of_hosts import STAMP, answer, write

from memoriter import Memory
from memoriter.extensions.projects.repository import Place, locate

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

DECISION = "We use Postgres for the orders service."
NAMES = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def git(folder: Path, *arguments: str) -> None:
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **NAMES, **quiet})


def commit(folder: Path, name: str) -> None:
    (folder / name).write_text(name, "utf-8")
    git(folder, "add", name)
    git(folder, "commit", "-m", name)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with one commit on `main`."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (tmp_path / "notes").mkdir()
    git(folder, "init", "-b", "main")
    commit(folder, "README.md")
    return folder


def say(tmp_path: Path, folder: Path, session: str, text: str) -> None:
    """Say something to an agent that works in a folder."""
    path = tmp_path / f"{session}.jsonl"
    record = {
        "type": "user",
        "message": {"role": "user", "content": text},
        "timestamp": STAMP,
        "uuid": session,
    }
    write(path, {**record, "sessionId": session, "cwd": str(folder)})
    event = {"session_id": session, "transcript_path": str(path), "cwd": str(folder)}
    assert answer(tmp_path, "claude-code", "Stop", event).output == "{}"


def begin(tmp_path: Path, folder: Path) -> str:
    """Start a session in a folder and return what the agent is told."""
    sent = {"session_id": "new", "cwd": str(folder), "source": "startup"}
    output = json.loads(answer(tmp_path, "claude-code", "SessionStart", sent).output)
    return str(output["hookSpecificOutput"]["additionalContext"])


def entries(tmp_path: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    with Memory.open(
        tmp_path / "notes", home=tmp_path / "state", overrides={"embedding.provider": "none"}
    ) as memory:
        yield from ((one.text, one.state, one.tags) for one in memory.entries.list(states=()))


def test_working_trees_and_folders_of_a_repository_are_one_project(tmp_path: Path, shop: Path) -> None:
    git(shop, "worktree", "add", "-b", "feature/login", str(tmp_path / "tree"))
    (tmp_path / "tree" / "src").mkdir()
    assert locate(str(shop)) == Place(str(shop), str(shop), "main")
    tree = tmp_path / "tree"
    assert locate(str(tree / "src")) == Place(str(shop), str(tree), "feature/login")
    git(tree, "checkout", "--detach")
    assert locate(str(tree)) == Place(str(shop), str(tree), "")
    assert locate(str(tmp_path)) == Place(str(tmp_path), str(tmp_path))
    assert locate("relative") == Place()


def test_a_submodule_and_a_bare_repository_are_projects_of_their_own(tmp_path: Path, shop: Path) -> None:
    git(tmp_path, "clone", "--bare", str(shop), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-b", "x", str(tmp_path / "tree"))
    tree = tmp_path / "tree"
    assert locate(str(tree)) == Place(str(tmp_path / "bare.git"), str(tree), "x")
    git(shop, "-c", "protocol.file.allow=always", "submodule", "add", str(tmp_path / "bare.git"), "sub")
    assert locate(str(shop / "sub")) == Place(str(shop / "sub"), str(shop / "sub"), "main")


def test_a_folder_whose_git_file_is_damaged_is_a_project_without_a_branch(tmp_path: Path) -> None:
    for content in (b"", b"gitdir: /nowhere", b"\xff\xfe\x00", b"gitdir: \0"):
        (tmp_path / ".git").write_bytes(content)
        assert locate(str(tmp_path)) == Place(str(tmp_path), str(tmp_path), "")


def test_a_decision_of_a_branch_is_known_there_and_elsewhere_after_the_merge(
    tmp_path: Path, shop: Path
) -> None:
    say(tmp_path, shop, "one", "We use MySQL for the orders service.")
    git(shop, "checkout", "-b", "postgres")
    say(tmp_path, shop, "two", f"{DECISION} I prefer tabs over spaces in all my Go code.")
    tree = tmp_path / "tree"
    git(shop, "worktree", "add", str(tree), "main")
    assert set(entries(tmp_path)) == {
        ("We use MySQL for the orders service.", "active", ("branch:main",)),
        (DECISION, "staged", ("branch:postgres",)),
        ("I prefer tabs over spaces in all my Go code.", "active", ("branch:postgres",)),
    }
    assert DECISION in begin(tmp_path, shop)
    told = begin(tmp_path, tree)
    assert DECISION not in told
    assert "MySQL" in told
    assert "tabs over spaces" in told

    commit(shop, "orders.sql")
    assert DECISION not in begin(tmp_path, tree)
    git(tree, "merge", "postgres")
    assert DECISION in begin(tmp_path, tree)
    found = {text: state for text, state, _ in entries(tmp_path)}
    assert found[DECISION] == "active"


def test_a_branch_that_was_deleted_after_its_merge_has_joined(tmp_path: Path, shop: Path) -> None:
    git(shop, "checkout", "-b", "postgres")
    commit(shop, "orders.sql")
    say(tmp_path, shop, "one", DECISION)
    git(shop, "checkout", "main")
    git(shop, "merge", "--no-ff", "postgres")
    git(shop, "branch", "-d", "postgres")
    assert DECISION in begin(tmp_path, shop)


def test_a_branch_without_commits_and_an_abandoned_one_stay_apart(tmp_path: Path, shop: Path) -> None:
    git(shop, "checkout", "-b", "empty")
    say(tmp_path, shop, "one", DECISION)
    git(shop, "checkout", "-b", "abandoned")
    commit(shop, "kafka.yaml")
    say(tmp_path, shop, "two", "We use Kafka for the events of the shop.")
    git(shop, "checkout", "main")
    git(shop, "branch", "-D", "abandoned")
    told = begin(tmp_path, shop)
    assert DECISION not in told
    assert "Kafka" not in told
    assert {state for _, state, _ in entries(tmp_path)} == {"staged"}


def test_what_the_owner_asks_to_remember_is_known_everywhere(tmp_path: Path, shop: Path) -> None:
    git(shop, "checkout", "-b", "postgres")
    say(tmp_path, shop, "one", f"Remember that {DECISION[0].lower()}{DECISION[1:]}")
    assert [state for _, state, _ in entries(tmp_path)] == ["active"]
    git(shop, "checkout", "main")
    assert DECISION in begin(tmp_path, shop)


def test_a_branch_holds_nothing_if_the_setting_is_off(
    tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "config.yaml").write_text("projects:\n  branches: false\n", "utf-8")
    git(shop, "checkout", "-b", "postgres")
    say(tmp_path, shop, "one", DECISION)
    assert list(entries(tmp_path)) == [(DECISION, "active", ("branch:postgres",))]
