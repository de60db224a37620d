"""The README works as written: every command runs in order, in a new home, and prints what the README promises.

One test runs the commands of the checkout on a few weeks of notes. Another one builds the wheel, installs it into a new
environment and walks through a year of notes in two languages, where every question must find its line.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from installation import ROOT, Installation, quoted, write_program
from mcp import Client, StdioServerParameters
from vault import write_vault
from year_of_notes import Question, write_year

from memoriter.testing import sample_workspace

README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def shell_commands() -> list[str]:
    """Return the commands of the shell blocks, without comments."""
    lines = [re.sub(r"\s+# .*", "", line).strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def table_commands() -> list[str]:
    """Return the commands in the running text and in tables, such as `memoriter serve`."""
    text = re.sub(r"^```.*?^```", "", README, flags=re.DOTALL | re.MULTILINE)
    return list(dict.fromkeys(re.findall(r"`(memoriter [^`]+)`", text)))


def shown_commands() -> Iterator[tuple[str, str]]:
    """Yield the commands of the console blocks, each with the output that the README shows."""
    for block in blocks("console"):
        for part in block.split("$ ")[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def without_numbers(text: str) -> str:
    """Replace scores and times, and remove blanks at the ends of lines."""
    return "\n".join(re.sub(r"\d+\.\d+", "N", line).rstrip() for line in text.strip().splitlines())


# ---- the steps ----------------------------------------------------------------------------------------------------


def check_shown_commands(installed: Installation) -> None:
    """Run the commands of the console blocks on the notes of the demo, and compare their output with the README."""
    workspace = installed.home / "demo-workspace"
    sample_workspace(workspace)
    for command, output in shown_commands():
        printed = installed.run(command, workspace)
        assert without_numbers(output) == without_numbers(printed), (
            f"the README shows another output of {command}"
        )
    (installed.home / ".memoriter").rename(installed.home / "home-of-the-demo")


def check_first_search(installed: Installation) -> None:
    """Run the shell block: init and search. The first search finds the decision, and nothing is missing."""
    for command in shell_commands():
        if command.startswith(("make ", "pip ")):
            continue
        printed = installed.run(command)
        if " init" in command:
            assert "notes" in printed
        if " search " in command:
            assert "memory/projects/backups.md#L" in printed
    installed.run("memoriter index", installed.notes)  # `init` leaves vectors to the resident process
    answer = installed.search("what did we decide about backups?")
    assert answer["degraded"] is None


def check_python(installed: Installation) -> None:
    """Run the Python block. It remembers a preference, finds it and recalls it."""
    [program] = blocks("python")
    script = installed.home / "program.py"
    script.write_text(program, encoding="utf-8")
    found, recalled, _ = installed.run(f"python {script}").partition("<relevant-memories ")
    assert "I prefer tabs over spaces" in found
    assert recalled


def check_table_commands(installed: Installation) -> None:
    """Run the commands in tables and text. A server is started, asked and stopped.

    Claude Code and OpenClaw are replaced by programs that record how they are called. The real ones are tested in
    tests/programs.
    """
    installed.programs.mkdir()
    for name in ("claude", "openclaw"):
        program = installed.programs / name
        program.write_text(f'#!/bin/sh\necho "$@" >> {program}.log\n', encoding="utf-8")
        program.chmod(0o755)
    openclaw = installed.home / ".openclaw" / "openclaw.json"
    openclaw.parent.mkdir()
    openclaw.write_text("{}", encoding="utf-8")
    for command in table_commands():
        if command == "memoriter serve":
            check_server(installed)
        elif "--print-config" in command:
            for program in ("claude-desktop", "cursor", "vscode", "zed", "codex", "openclaw", "json"):
                assert "memoriter" in installed.run(f"memoriter mcp --print-config {program}")
        else:
            installed.run(command)
    said = (installed.programs / "claude.log").read_text("utf-8")
    assert "plugin install memoriter@memoriter" in said
    assert json.loads(openclaw.read_text("utf-8"))["plugins"]["slots"]["memory"] == "memoriter"


def browser() -> urllib.request.OpenerDirector:
    """Return a client that keeps cookies, since the link sets one and leads to the page."""
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor())


def check_server(installed: Installation) -> None:
    server = subprocess.Popen(
        [installed.bin / "memoriter", "serve", "--port", "0"],
        cwd=installed.notes,
        env=installed.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        link = next(
            found[0] for line in server.stdout if (found := re.findall(r"http://\S+ticket=\S+", line))
        )
        with browser().open(link, timeout=60) as answer:
            assert answer.status == 200
            assert b"<html" in answer.read().lower()
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    assert server.returncode in (0, -signal.SIGTERM)


def check_promises(installed: Installation, question: Question) -> None:
    """Delete the index: the next searches find everything again, and the notes did not change."""
    before = {file: file.read_bytes() for file in installed.notes.rglob("*.md")}
    for file in installed.home.glob(".memoriter/agents/*/workspaces/*/index.db*"):
        file.unlink()
    installed.run("memoriter index", installed.notes)
    assert installed.finds(question)
    assert {file: file.read_bytes() for file in installed.notes.rglob("*.md")} == before


# ---- the walks ----------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Installation]:
    """The checkout, for a person with an empty home. Its resident process ends with the test."""
    person = Installation(tmp_path / "bin", tmp_path / "home")
    person.bin.mkdir()
    person.home.mkdir()
    write_program(person.bin / "python", sys.executable)
    write_program(person.bin / "memoriter", sys.executable, "-m", "memoriter")
    yield person
    person.run("memoriter resident stop")


@pytest.mark.integration
def test_the_commands_of_the_readme_work_in_the_checkout(checkout: Installation) -> None:
    check_shown_commands(checkout)
    questions = write_year(checkout.notes, days=10)
    check_first_search(checkout)
    check_python(checkout)
    check_table_commands(checkout)
    check_promises(checkout, questions[0])


@pytest.mark.integration
@pytest.mark.timeout(3000)
def test_the_readme_works_from_the_wheel_on_a_year_of_notes(installed: Installation) -> None:
    assert "pip install ." in shell_commands()
    check_shown_commands(installed)
    questions = write_year(installed.notes)
    check_first_search(installed)
    status = json.loads(installed.run("memoriter status --json", installed.notes))
    assert 1400 < status["chunks"] < 1600
    assert status["embedded"] == status["chunks"]
    missed = [question.text for question in questions if not installed.finds(question)]
    assert missed == []
    check_python(installed)
    check_table_commands(installed)
    check_promises(installed, questions[0])


# ---- a newcomer with a vault ------------------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink()
    }


def check_answers(installed: Installation, questions: tuple[Question, ...]) -> None:
    """In both languages, 85 % of the questions find their line first and 95 % among the first three hits."""
    ranks = {question: installed.rank(question) for question in questions}
    for language in (True, False):
        asked = {question: rank for question, rank in ranks.items() if question.text.isascii() == language}
        later = [(question.text, rank) for question, rank in asked.items() if rank != 1]
        third = [text for text, rank in later if rank is None or rank > 3]
        assert len(asked) == 20
        assert len(later) <= 0.15 * len(asked), later
        assert len(third) <= 0.05 * len(asked), third


def check_client(installed: Installation, question: Question) -> None:
    """Connect an MCP client with the printed configuration. It finds the line and remembers a statement."""
    printed = json.loads(installed.run("memoriter mcp --print-config claude-desktop", installed.notes))
    server = printed["mcpServers"]["memoriter"]
    parameters = StdioServerParameters(
        command=server["command"],
        args=server["args"],
        env=installed.environment,
        cwd=installed.home,  # not in the vault
    )

    async def talk() -> str:
        async with Client(parameters) as client:
            found = await client.call_tool("memory_search", {"query": question.text})
            return str(found.structured_content)

    # In a thread: the browser of other tests leaves a running event loop in this one.
    with ThreadPoolExecutor(1) as pool:
        assert question.path in pool.submit(asyncio.run, talk()).result()


def check_backup(installed: Installation, question: Question) -> None:
    """Back up, and restore into another home: the notes and the memories are the same."""
    installed.run("memoriter add 'I prefer tabs over spaces'", installed.notes)
    backup = installed.home / "backup.zip"
    installed.run(f"memoriter backup {backup}", installed.notes)
    person = Installation(installed.bin, installed.home.parent / "other", installed.folder)
    person.home.mkdir()
    place = f"--home {person.home}/.memoriter --workspace {quoted(str(person.notes))}"
    person.run(f"memoriter {place} restore {backup}")
    notes = {path: data for path, data in contents(installed.notes).items() if is_note(path)}
    assert {path: data for path, data in contents(person.notes).items() if is_note(path)} == notes
    listed = json.loads(person.run("memoriter list --json"))["entries"]
    assert [entry["text"] for entry in listed] == ["I prefer tabs over spaces"]
    assert person.run(f"memoriter get {quoted(question.path)}")
    person.run("memoriter index", person.notes)
    assert person.rank(question) == 1
    person.run("memoriter resident stop")


def is_note(path: str) -> bool:
    return path.endswith(".md") and not path.startswith((".", "node_modules/"))


def check_removal(installed: Installation, before: dict[str, bytes]) -> None:
    """Undo everything, as docs/folders.md says. The person's files are as they were, and no process is left."""
    installed.programs.mkdir()
    write_program(installed.programs / "claude", "true")
    installed.run("memoriter install claude-code", installed.notes)
    installed.run("memoriter uninstall claude-code", installed.notes)
    installed.run("memoriter resident stop", installed.notes)
    shutil.rmtree(installed.home / ".memoriter")
    (installed.notes / ".memoriter.yaml").unlink()
    shutil.rmtree(installed.programs)
    (installed.home / "backup.zip").unlink()
    assert contents(installed.home) == before
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(installed.home) not in processes


@pytest.mark.integration
@pytest.mark.timeout(3000)
def test_a_newcomer_searches_a_vault_connects_backs_up_and_removes_everything(
    installed: Installation,
) -> None:
    person = Installation(installed.bin, installed.home, "My Vault")
    questions = write_vault(person.notes)
    before = contents(person.home)
    printed = person.run("memoriter init --all-notes", person.notes)
    assert "80 notes in 18 folders." in printed
    assert set(contents(person.notes)) - {path.removeprefix("My Vault/") for path in before} == {
        ".memoriter.yaml"
    }
    person.run("memoriter index", person.notes)  # until every note has its vectors
    check_answers(person, questions)
    check_client(person, questions[0])
    check_backup(person, questions[0])
    check_removal(person, before)
