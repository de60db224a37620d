"""How a command line may be written: global options anywhere, texts without quotes, and help that fits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run
from person import Person
from rich.cells import cell_len

from memoriter.cli.app import app
from memoriter.cli.context import grouped_commands
from memoriter.config import load
from memoriter.files.platform import quote
from memoriter.resident import command_line


@pytest.fixture
def notes(note) -> None:
    note("MEMORY.md", "# Facts\n\nThe backup runs every night at two.\n")


@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--home", "{home}", "--workspace", "{notes}", "search", "backup", "--json"],
        ["search", "backup", "--home", "{home}", "--workspace={notes}", "--json"],
        ["--home={home}", "search", "--workspace", "{notes}", "backup", "--json"],
        ["search", "--json", "--home", "{home}", "--workspace", "{notes}", "--", "backup"],
    ],
)
def test_global_options_work_before_and_after_the_command(
    memoriter: Run, workspace: Path, tmp_path: Path, arguments: list[str]
) -> None:
    home = tmp_path / "other"
    home.mkdir()
    line = [word.format(home=home, notes=workspace) for word in arguments]
    done = memoriter(*line, MEMORITER_WORKSPACE="", MEMORITER_HOME="", HOME=str(tmp_path / "empty"))
    assert [hit["path"] for hit in json.loads(done.stdout)["results"]] == ["MEMORY.md"]
    assert (home / "agents").is_dir()
    assert not (tmp_path / "empty" / ".memoriter").exists()


@pytest.mark.parametrize("command", [["search", "tea"], ["save", "tea"], ["status", "--json"]])
def test_a_named_folder_that_does_not_exist_is_refused_and_not_created(
    memoriter: Run, workspace: Path, tmp_path: Path, command: list[str]
) -> None:
    away, home = tmp_path / "away notes", tmp_path / "away"
    for option, sentence in (
        (
            ["--workspace", str(away)],
            (
                f"There is no folder {away}, the workspace that --workspace names. If you moved it, run "
                f"`memoriter init` in its new place. `memoriter init {quote(str(away))}` creates an empty one."
            ),
        ),
        (
            ["--home", str(home)],
            f"There is no folder {home}, which --home names. `memoriter --home {quote(str(home))} init` creates it.",
        ),
    ):
        done = memoriter(*command, *option, MEMORITER_RESIDENT__ENABLED=str(option[0] == "--home"))
        assert (done.returncode, done.stderr) == (1, f"memoriter: {sentence}\n")
        assert "error" in json.loads(done.stdout) if "--json" in command else done.stdout == ""
    variable = memoriter(*command, MEMORITER_WORKSPACE=str(away))
    assert "the workspace that MEMORITER_WORKSPACE names" in variable.stderr
    assert [folder.exists() for folder in (away, home)] == [False, False]
    assert not list(tmp_path.glob("*/agents/*/workspaces/*"))
    assert memoriter("--home", str(home), "init", str(workspace)).returncode == 0


def test_an_option_of_the_command_wins(memoriter: Run, tmp_path: Path) -> None:
    done = memoriter("token", "create", "--agent", "work", "--json", "--home", str(tmp_path / "other"))
    assert json.loads(done.stdout)["agents"] == ["work"]
    assert (tmp_path / "other/gateway").is_dir()


@pytest.mark.usefixtures("notes")
def test_a_text_needs_no_quotes(memoriter: Run) -> None:
    quoted = json.loads(memoriter("search", "when does the backup run", "--json").stdout)
    bare = json.loads(memoriter("search", "when", "does", "the", "-n", "6", "backup", "run", "--json").stdout)
    assert bare == quoted
    added = json.loads(memoriter("add", "I", "prefer", "tabs", "over", "spaces", "--json").stdout)["entry"]
    assert added["text"] == "I prefer tabs over spaces"
    assert memoriter("save", "Anna", "prefers", "tea").stdout.startswith("Saved: memory/")


def test_only_the_first_word_names_the_command(memoriter: Run, note) -> None:
    note("MEMORY.md", "# Hooks\n\nThe hook claude-code reads each prompt.\n")
    added = memoriter("add", "hook", "claude-code", "reads", "my", "prompt")
    assert (added.returncode, added.stdout.split(":")[0], added.stderr) == (0, "Added", "")
    assert "hook claude-code reads my prompt" in memoriter("list").stdout
    found = memoriter("search", "hook", "claude-code", stdin=b'{"prompt": "x"}')
    assert "The hook claude-code reads each prompt." in found.stdout
    home = memoriter("--home", "hook", "search", "claude-code")
    assert (home.returncode, "There is no folder" in home.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "options", "unknown", "words"),
    [
        ("search tea", {}, [], ["search", "tea"]),
        ("--home h --agent=a search tea", {"home": "h", "agent": "a"}, [], ["search", "tea"]),
        ("search --store u tea --home=h -n 3", {"store": "u", "home": "h"}, [], ["search", "tea", "-n", "3"]),
        ("--bogus hook x --what", {}, ["--bogus"], ["hook", "x", "--what"]),
        ("--home hook claude-code", {"home": "hook"}, [], ["claude-code"]),
        ("search -- --home h", {}, [], ["search", "--", "--home", "h"]),
        ("-- --home h", {}, ["--"], ["--home", "h"]),
        ("search --home", {}, [], ["search", "--home"]),
        ("--home", {}, ["--home"], []),
        ("save -", {}, [], ["save", "-"]),
        ("", {}, [], []),
    ],
)
def test_a_command_line_is_global_options_and_words(
    arguments: str, options: dict[str, str], unknown: list[str], words: list[str]
) -> None:
    line = command_line.read(arguments.split())
    assert (line.options, line.unknown, line.words) == (options, unknown, words)


@pytest.mark.parametrize(
    ("option", "environ"),
    [
        (None, {}),
        ("~/mine", {"MEMORITER_HOME": "/other"}),
        (None, {"MEMORITER_HOME": "~/a", "STORAGE_DIR": "/b"}),
        (None, {"STORAGE_DIR": "relative/b", "MEMORITER_HOME": ""}),
    ],
)
def test_clients_of_the_resident_process_find_the_same_home_as_the_settings(
    option: str | None, environ: dict[str, str]
) -> None:
    settings = load(arguments={"home": option}, environ=environ)
    assert command_line.find_home({"home": option} if option else {}, environ) == str(settings.home)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", ""], "The query is empty. Write what you are looking for."),
        (["search", " ", "  "], "The query is empty. Write what you are looking for."),
        (["add", ""], "The statement is empty."),
        (["recall"], "Write the message of the user, or name a file with --messages."),
        (["recall", "x", "--messages", "y.json"], "Give a text or --messages, not both."),
    ],
)
def test_an_empty_text_gets_a_clear_sentence(memoriter: Run, arguments: list[str], message: str) -> None:
    done = memoriter(*arguments)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"Error: Invalid value: {message}")


def test_arguments_are_shown_by_convention(memoriter: Run) -> None:
    usage = {
        command: memoriter(*command.split(), "--help").stdout.splitlines()[0].partition("[OPTIONS] ")[2]
        for command in ("search", "forget", "approve", "config set")
    }
    assert usage == {
        "search": "QUERY...",
        "forget": "[ENTRY_ID]",
        "approve": "[IDS]...",
        "config set": "KEY VALUE",
    }
    assert memoriter("history").stderr.splitlines()[-1] == "Error: Missing argument 'ENTRY_ID'."


@pytest.mark.parametrize("encoding", ["ascii", "cp936", "cp1252"])
def test_a_pipe_gets_utf8_whatever_the_encoding_of_the_terminal(
    memoriter: Run, workspace: Path, tmp_path: Path, encoding: str
) -> None:
    memoriter("add", "我喜欢喝茶")
    environment = {
        **os.environ,
        "MEMORITER_WORKSPACE": str(workspace),
        "MEMORITER_HOME": str(tmp_path / "state"),
        "MEMORITER_EMBEDDING__PROVIDER": "none",
        "PYTHONIOENCODING": encoding,
    }
    shown = subprocess.run(
        [sys.executable, "-m", "memoriter", "list"], env=environment, check=True, capture_output=True
    )
    total, line, *_ = shown.stdout.decode().split("\n")
    assert (total, line.endswith("  我喜欢喝茶")) == ("共 1 条", True)


@pytest.mark.parametrize("option", ["--home", "--workspace"])
def test_a_path_that_is_too_long_for_the_system_is_one_sentence(
    memoriter: Run, tmp_path: Path, option: str
) -> None:
    long = tmp_path.joinpath(*["n" * 200] * 25)
    done = memoriter("status", option, str(long))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert str(long) in done.stderr.replace("\\\\", "\\")


def test_a_question_without_a_terminal_says_how_to_confirm(memoriter: Run) -> None:
    entry = json.loads(memoriter("add", "I drink tea", "--json").stdout)["entry"]
    refused = memoriter("forget", entry["id"])
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (
        1,
        "memoriter: Cancelled; nothing was changed. Without a terminal, confirm with --yes.",
    )


def test_add_says_which_statement_the_new_one_supersedes(memoriter: Run) -> None:
    old = json.loads(memoriter("add", "I prefer tabs over spaces", "--json").stdout)["entry"]
    added, superseded = memoriter("add", "I prefer spaces over tabs").stdout.splitlines()
    assert added.startswith("Added: ")
    assert superseded == f"Superseded: {old['id'][:8]} (the opposite comparison)"


@pytest.mark.parametrize("group", ["collection", "config", "resident", "token"])
def test_help_of_a_group_shows_every_command_on_one_whole_line(memoriter: Run, group: str) -> None:
    _, commands = memoriter(group, "--help", COLUMNS="80").stdout.split("Commands:\n")
    assert [line for line in commands.splitlines() if not line.endswith(".") or line.endswith("...")] == []


def test_help_shows_every_command_once_on_one_line_in_five_groups(memoriter: Run) -> None:
    shown = memoriter("--help", COLUMNS="80").stdout
    titles = ["Notes:", "Entries:", "Agents:", "Serving:", "Maintenance:"]
    assert [line for line in shown.splitlines() if line in [*titles, "Other:", "Commands:"]] == titles
    registered = {
        command.name or command.callback.__name__.rstrip("_").replace("_", "-")
        for command in app.registered_commands
        if not command.hidden  # other names of a command
    }
    registered |= {group.name for group in app.registered_groups}
    for name in registered:
        [line] = [line for line in shown.splitlines() if line.startswith(f"  {name} ")]
        assert (line.endswith("."), len(line) <= 79) == (True, True)
    assert registered <= {name for commands in grouped_commands().values() for name in commands}


@pytest.mark.usefixtures("notes")
def test_recall_shows_what_would_be_added_and_why_explains_it(memoriter: Run) -> None:
    memoriter("add", "I prefer tabs over spaces.")
    block = memoriter("recall", "do", "I", "prefer", "tabs", "or", "spaces")
    assert "I prefer tabs over spaces." in block.stdout
    listed = memoriter("recalls").stdout.splitlines()
    assert listed[0].split() == ["recall", "time", "by", "session", "added", "query"]
    assert listed[1].endswith("do I prefer tabs or spaces")
    [recall] = json.loads(memoriter("recalls", "--json").stdout)["recalls"]
    assert recall["interface"] == "cli"
    why = memoriter("why").stdout
    assert why.startswith(f"Recall {recall['id']}")
    assert "I prefer tabs over spaces." in why
    nothing = memoriter("recall", "zxcv", "qwer")
    assert (nothing.stdout, nothing.stderr) == (
        "",
        "Nothing in the memory is relevant enough to be added. `memoriter search` shows the nearest lines.\n",
    )


def test_a_table_is_whole_in_a_pipe_and_aligns_chinese(memoriter: Run) -> None:
    long = "我总是在早上九点开会，" * 12 + "然后喝茶。"
    memoriter("add", long)
    assert long in memoriter("list", COLUMNS="40").stdout
    [entry] = json.loads(memoriter("list", "--json").stdout)["entries"]
    history = memoriter("history", entry["id"], COLUMNS="40").stdout
    assert long in history
    shown = memoriter("config", "show", COLUMNS="40").stdout.splitlines()
    assert all(line == line.rstrip() for line in shown)
    assert any(line.startswith("memory.qmd.limits.timeout_ms ") for line in shown)


def test_a_table_fits_the_terminal(person: Person) -> None:
    folder = person.folder("notes")
    person.run(folder, "init")
    person.run(folder, "add", "我总是在早上九点开会，" * 9)
    status, printed = person.answer(folder, "", "list", TERM="xterm", COLUMNS="50")
    lines = printed.strip().splitlines()
    assert status == 0
    assert lines[0] == "共 1 条"
    assert lines[1].endswith("…")
    assert cell_len(lines[1]) in (49, 50)
