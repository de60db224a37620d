"""Every command and every Python block of the documentation runs, or says why it does not. All others are valid."""

from __future__ import annotations

import ast
import configparser
import json
import os
import plistlib
import shlex
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

import apsw
import pytest
import yaml
from page_blocks import ROOT, SHELL, Block, blocks, named_commands
from typer.main import get_command

from memoriter.cli.app import app
from memoriter.config import load
from memoriter.testing import sample_workspace

RunForked = Callable[..., subprocess.CompletedProcess[bytes]]

#: Pages whose blocks other tests run: tests/readme, tests/frameworks, tests/agent and tests/extensions.
ELSEWHERE = ("README.md", "frameworks.md", "plugins.md", "extensions.md")
ENTRY_ID = "1f0c2a9e-0000-4000-8000-000000000001"
#: Characters that only a shell understands.
SHELL_SYNTAX = set("|;&<>$`()*")


# ---- commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home: notes, a vault, exports of other programs, and programs that accept every command."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")
    sample_workspace(tmp_path / "notes")
    for name in (
        "vault/Cooking",
        "team-notes",
        "work-notes",
        "docs",
        "drafts",
        ".openclaw/workspace",
        ".claude/projects",
        "Downloads",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "vault/Cooking/bread.md").write_text(
        "# Bread\n\nFeed the sourdough every evening.\n", "utf-8"
    )
    (tmp_path / ".openclaw/openclaw.json").write_text("{}", "utf-8")
    (tmp_path / ".openclaw/workspace/MEMORY.md").write_text("Bo prefers tea.\n", "utf-8")
    write_exports(tmp_path)
    (tmp_path / "memoriter").symlink_to(ROOT / "src/memoriter")  # the package, as an unpacked wheel
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, command in (
        ("claude", "true"),
        ("openclaw", "true"),
        ("memoriter", f'exec {sys.executable} -m memoriter "$@"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{command}\n", "utf-8")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return tmp_path


def write_exports(home: Path) -> None:
    """Write a small export of every program in docs/migration.md, where the page says that it is."""
    notes = home / "notes"
    memory = {"id": "m1", "memory": "Alex likes tea", "user_id": "alex", "created_at": "2026-03-01T10:00:00Z"}
    (notes / "mem0.json").write_text(json.dumps({"results": [memory]}), "utf-8")
    (notes / "memories.json").write_text('["The rent is due on the fifth"]', "utf-8")
    conversation = {"role": "user", "content": "Remember that the rent is due on the fifth."}
    (notes / "conversation.json").write_text(json.dumps([conversation]), "utf-8")
    (home / "basic-memory").mkdir()
    (home / "basic-memory/tea.md").write_text("---\npermalink: tea\n---\n\n- [fact] Tea is green\n", "utf-8")
    message = {
        "id": "a",
        "author": {"role": "user"},
        "content": {"content_type": "text", "parts": ["Where do I keep the backups?"]},
        "create_time": 1772000000.0,
    }
    chatgpt = [
        {
            "id": "c1",
            "title": "Backups",
            "current_node": "a",
            "mapping": {"a": {"id": "a", "message": message, "parent": None, "children": []}},
        }
    ]
    said = {"uuid": "m", "sender": "human", "text": "Hello Claude", "created_at": "2026-03-01T10:00:00Z"}
    claude = [{"uuid": "c2", "name": "Hello", "created_at": "2026-03-01T10:00:00Z", "chat_messages": [said]}]
    for name, conversations in (("chatgpt", chatgpt), ("claude", claude)):
        with zipfile.ZipFile(home / f"Downloads/{name}.zip", "w") as archive:
            archive.writestr("conversations.json", json.dumps(conversations))
    (home / ".claude-mem").mkdir()
    database = apsw.Connection(str(home / ".claude-mem/claude-mem.db"))
    database.execute("create table observations (id integer primary key, type, title, narrative, project)")
    database.execute(
        "insert into observations values (1, 'decision', 'Backups', 'They go to Porto.', 'infra')"
    )
    database.close()
    entry = {"id": ENTRY_ID, "text": "Bo prefers green tea", "type": "user_preference", "importance": 3}
    (home / "entry.json").write_text(json.dumps([entry]), "utf-8")


class Shell:
    """Runs the command lines of a page, those of memoriter in a fork of a process that has loaded everything."""

    def __init__(self, home: Path, run_forked: RunForked) -> None:
        self.folder = home / "notes"
        self.run_forked = run_forked

    def run(self, command: str) -> None:
        """Run one command line. It must succeed."""
        words = shlex.split(command, comments=True)
        if words[0] == "cd" and len(words) == 2:
            self.folder = Path(words[1]).expanduser()
        elif words[0] == "memoriter" and not SHELL_SYNTAX & set("".join(words)):
            arguments = [str(Path(word).expanduser()) if word.startswith("~") else word for word in words[1:]]
            finished = self.run_forked(arguments, os.environ, b"y\n", self.folder)  # yes to a question
            assert finished.returncode == 0, (
                f"{command}\n{finished.stdout.decode()}\n{finished.stderr.decode()}"
            )
        else:
            result = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"


def shell_pages() -> Iterator[tuple[str, list[Block]]]:
    for page, found in groupby(blocks(*SHELL), key=lambda block: block.page):
        if run := [block for block in found if not block.reason]:
            yield page, run


@pytest.mark.parametrize(("page", "run"), [pair for pair in shell_pages() if pair[0] not in ELSEWHERE])
def test_the_commands_of_a_page_run_in_order(
    page: str, run: list[Block], home: Path, run_forked: RunForked
) -> None:
    shell = Shell(home, run_forked)
    shell.run("memoriter import ~/entry.json")
    for block in run:
        for command in block.commands:
            for part in command.split(" && "):
                shell.run(part)


def test_every_command_and_option_in_the_pages_exists() -> None:
    root: Any = get_command(app)
    context = root.make_context("memoriter", [], resilient_parsing=True)
    commands = {name: root.get_command(context, name) for name in root.list_commands(context)}
    wrong = []
    for place, words in named_commands():
        known, names = commands, options_of(root)
        for word in words:
            if word in known:
                names |= options_of(known[word])
                known = getattr(known[word], "commands", {})
            elif word == "--":
                break
            elif word.startswith("-") and word != "-" and word.partition("=")[0] not in names:
                wrong.append(f"{place}: {' '.join(words)}: {word}")
        first = next((word for word in words if word[0].isalpha() and word in commands), None)
        if first is None and not words[0].startswith("--"):
            wrong.append(f"{place}: {' '.join(words)}: there is no command {words[0]}")
    assert wrong == []


def options_of(command: Any) -> set[str]:
    names = {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
    return names | {"-h", "--help"}


@pytest.mark.posix("bash")
@pytest.mark.parametrize("block", [block for block in blocks(*SHELL) if block.reason], ids=str)
def test_commands_that_are_not_run_have_valid_syntax(block: Block) -> None:
    checked = subprocess.run(
        ["bash", "-n"], input="\n".join(block.commands), capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


# ---- Python -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "block",
    [block for block in blocks("python") if not block.reason and block.page not in ELSEWHERE],
    ids=str,
)
def test_every_python_block_runs(block: Block, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    program = compile(block.text, str(block), "exec")
    # In a thread, because the main thread has a running event loop after the tests that use a browser.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(exec, program, {"__name__": "__main__"}).result()


@pytest.mark.parametrize("block", [block for block in blocks("python") if block.reason], ids=str)
def test_python_that_is_not_run_has_valid_syntax(block: Block) -> None:
    ast.parse(block.text)


# ---- data ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", blocks("yaml", "json", "toml", "ini", "xml"), ids=str)
def test_every_block_of_data_can_be_read(block: Block) -> None:
    match block.language:
        case "yaml":
            assert yaml.safe_load(block.text)
        case "json":
            assert json.loads(block.text)
        case "toml":
            assert tomllib.loads(block.text)
        case "ini":
            parser = configparser.RawConfigParser(strict=False)
            parser.optionxform = str  # type: ignore[assignment,method-assign]
            parser.read_string(block.text)
            assert parser.sections()
        case "xml":
            service = plistlib.loads(block.text.encode())  # the service of launchd, which expands no `~`
            assert "~" not in "".join([*service["ProgramArguments"], service["StandardErrorPath"]])


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_every_setting_in_a_block_exists(block: Block, home: Path) -> None:
    file = home / "config.yaml"
    file.write_text(block.text, "utf-8")
    assert load(config=file, arguments={"home": home / ".memoriter"}, cwd=home)
