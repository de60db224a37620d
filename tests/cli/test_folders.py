"""`init` in any folder, and named collections, as a person uses them: a process in that folder."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from interrupts import Interrupt
from person import NOTES, Person

import memoriter
from memoriter.cli import folders
from memoriter.files.platform import quote


def test_init_indexes_a_vault_and_leaves_out_hidden_folders_and_packages(person: Person) -> None:
    vault = person.folder("vault")
    printed = person.run(vault, "init", "--all-notes")
    assert "3 notes in 3 folders." in printed
    assert person.found(vault, "heron") == ["Inbox.md"]
    assert person.found(vault, "石榴") == ["Projekte/Garten.md"]
    for path in (".trash/Old.md", "node_modules/heron/README.md"):
        assert "is refused" in person.run(vault, "get", path, fails=True)
    new = {path.name for path in vault.iterdir()} - {path.split("/")[0] for path in NOTES}
    assert new == {".memoriter.yaml"}, "a vault gets no other files"
    again = json.loads(person.run(vault, "init", "--json"))
    assert (again["made"], again["notes"], again["folders"], again["notIndexed"]) == ([], 3, 3, 0)


def test_init_without_a_terminal_says_which_notes_it_does_not_index(person: Person) -> None:
    vault = person.folder("vault")
    printed = person.run(vault, "init")
    command = f"memoriter init {quote(str(vault))} --all-notes"
    assert f"Not indexed: notes 3. To index all notes, run `{command}`." in printed
    assert person.found(vault, "heron") == []
    assert "4 notes in 3 folders." in person.run(person.user, "init", vault, "--all-notes")
    assert person.found(vault, "heron") == ["Inbox.md"]


def test_a_workspace_has_a_name_that_options_understand(person: Person) -> None:
    work, private = person.folder("work"), person.folder("private", {"memory/cat.md": "The cat sleeps.\n"})
    assert "No workspace has a name." in person.run(person.user, "workspace", "list")
    assert "run `memoriter init --workspace work`" in person.run(
        person.user, "workspace", "add", "work", work
    )
    person.run(person.user, "init", "--workspace", "work", "--all-notes")
    person.run(private, "init")
    person.run(private, "workspace", "add", "private")
    assert person.found(person.user, "heron", "--workspace", "work") == ["Inbox.md"]
    assert person.found(work, "cat", "--workspace", "private") == ["memory/cat.md"]
    person.run(person.user, "workspace", "use", "private")
    assert person.found(person.user, "cat") == ["memory/cat.md"]
    listed = json.loads(person.run(person.user, "workspace", "list", "--json"))["workspaces"]
    assert listed == [
        {"name": "work", "path": str(work), "default": False, "exists": True},
        {"name": "private", "path": str(private), "default": True, "exists": True},
    ]
    assert "Did you mean 'work'?" in person.run(person.user, "workspace", "use", "wrok", fails=True)
    mistyped = person.run(person.user, "search", "cat", "--workspace", "wrok", fails=True)
    assert mistyped.endswith("The names of workspaces are: work, private.\n")
    person.run(person.user, "workspace", "remove", "work")
    assert person.config()["workspaces"] == {"private": str(private)}


def test_an_interrupted_init_says_what_is_ready_and_how_to_go_on(person: Person) -> None:
    days = "".join(f"On day {day} the heron {{n}} stood in the water.\n\n" for day in range(150))
    notes = {f"memory/{n}.md": days.replace("{n}", str(n)) for n in range(40)}
    folder = person.folder("large", notes)
    local = {"MEMORITER_EMBEDDING__PROVIDER": "local"}
    interrupt = Interrupt()
    command = interrupt.command(["init", "--wait"])
    with subprocess.Popen(
        command, cwd=folder, env=person.environ | local, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        lines = [next(line for line in process.stderr if b"Embedding" in line)]
        interrupt.send(process)
        lines += process.stderr
    assert process.returncode == 130
    # Nothing follows: texts that have not begun are not waited for, and no failure of the embedder is reported.
    assert re.fullmatch(
        r"memoriter: Interrupted\. 41 files can be searched by keyword, \d+ of \d+ chunks by meaning\. "
        r"To go on, run `memoriter index`\.\n",
        lines[-1].decode(),
    )


def test_files_beyond_the_limit_are_said_not_to_be_counted(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_COUNTED", 2)
    folder = person.folder("many", {f"{n}.pdf": "" for n in range(3)})
    with memoriter.open(folder, home=person.root / "home") as memory:
        counts = folders.not_indexed(memory)
    assert (counts, folders.describe_files(counts)) == (
        {"PDF": 2, "uncounted": 1},
        "PDF 2 among the first 2 files; the folder has more than 2",
    )


@pytest.mark.parametrize(("answer", "found"), [("y", ["Inbox.md"]), ("n", [])])
def test_init_asks_in_a_terminal(person: Person, answer: str, found: list[str]) -> None:
    vault = person.folder("vault")
    status, printed = person.answer(vault, answer, "init")
    assert (status, "has 3 notes in 3 folders. Index all of them? [Y/n]" in printed) == (0, True)
    assert person.found(vault, "heron") == found


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 1)])
def test_init_asks_before_it_creates_a_folder(person: Person, answer: str, status: int) -> None:
    folder = person.user / "typo/deep"
    done, printed = person.answer(person.user, answer, "init", "typo/deep")
    assert (done, f"There is no folder {folder}. Create it? [y/N]" in printed) == (status, True)
    assert folder.is_dir() == (answer == "y")


@pytest.mark.parametrize("words", [(), ("--yes",), ("--json",)])
def test_init_without_a_question_says_that_it_creates_a_folder(person: Person, words: tuple[str]) -> None:
    folder = person.user / "new"
    _, errors = person.streams(person.user, "init", "new", *words)
    assert (errors, folder.is_dir()) == (f"memoriter: There is no folder {folder}. It is created.\n", True)


def test_init_sets_up_the_named_the_empty_and_the_default_folder(person: Person) -> None:
    vault, empty = person.folder("vault"), person.folder("empty", {})
    person.run(person.user, "init", vault, "--all-notes")
    assert person.config() == {"workspace": str(vault)}
    assert person.found(person.user, "heron") == ["Inbox.md"], "the first workspace is the default"
    person.run(empty, "init")
    assert {path.name for path in empty.iterdir()} == {"MEMORY.md", "memory", ".memoriter.yaml"}
    person.run(empty, "save", "The kite nests in the oak.")
    assert len(person.found(empty, "kite")) == 1
    assert person.found(vault, "kite") == []
    assert person.config() == {"workspace": str(vault)}, "a second workspace does not replace the default"
    person.run(person.user, "--workspace", empty, "init")
    assert person.config() == {"workspace": str(empty)}
    assert len(person.found(person.user, "kite")) == 1


def test_init_names_the_files_that_it_changes(person: Person) -> None:
    vault, other = person.folder("vault"), person.folder("other", {})
    person.run(vault, "init")
    config = str(Path("~/.memoriter/config.yaml"))
    for words, changed in (
        (("--workspace", other), [config]),
        (("--workspace", other), []),
        (("--all-notes",), [str(vault / ".memoriter.yaml")]),
    ):
        lines = person.run(vault, "init", *words).splitlines()
        assert [line.removeprefix("changed  ") for line in lines if line.startswith("changed")] == changed
        assert (f"kept     {config}" in lines) == (config not in changed)


@pytest.mark.parametrize("place", ["home", "root"])
def test_init_in_the_home_or_root_folder_does_not_make_it_a_workspace(person: Person, place: str) -> None:
    person.run(person.user if place == "home" else Path(person.root.anchor), "init")
    assert [path.name for path in person.user.iterdir()] == [".memoriter"]
    assert person.config() == {"workspace": str(person.user / ".memoriter/workspace")}


def test_init_refuses_a_file_and_two_folders(person: Person) -> None:
    vault = person.folder("vault")
    assert "is not a folder" in person.run(vault, "init", "Inbox.md", fails=True)
    assert "Name the folder once" in person.run(vault, "--workspace", vault, "init", "Projekte", fails=True)


def test_changing_folders_does_not_replace_an_index(person: Person) -> None:
    one, two = person.folder("one"), person.folder("two", {"a.md": "The owl sleeps in the barn.\n"})
    for folder in (one, two):
        person.run(folder, "init", "--all-notes")
    for _ in range(2):
        assert (person.found(one, "heron"), person.found(two, "heron")) == (["Inbox.md"], [])
        assert (person.found(one, "owl"), person.found(two, "owl")) == ([], ["a.md"])
    for folder, files in ((one, 3), (two, 1)):
        report = json.loads(person.run(folder, "index", "--json"))
        assert (report["files"], report["unchanged"]) == (files, files)


class TestCommandsElsewhere:
    """Commands in a folder that is not the workspace they use."""

    @pytest.fixture
    def vault(self, person: Person) -> Path:
        vault = person.folder("user/vault")
        person.run(vault, "init", "--all-notes")
        return vault

    @pytest.mark.parametrize(
        "words", [("search", "heron"), ("search", "heron", "--json"), ("list", "--json")]
    )
    def test_name_the_workspace_on_standard_error(
        self, person: Person, vault: Path, words: tuple[str, ...]
    ) -> None:
        output, errors = person.streams(person.user, *words)
        assert errors == f"memoriter: The workspace is {Path('~/vault')}.\n"
        assert output == person.run(vault, *words)

    @pytest.mark.parametrize("note", ["MEMORY.md", "memory/zebra.md"])
    def test_offer_to_set_up_a_folder_with_notes(self, person: Person, vault: Path, note: str) -> None:
        other = person.folder("other", {note: "The zebra is striped.\n"})
        output, errors = person.streams(other, "search", "zebra")
        assert output.startswith("Nothing relevant found.")
        assert errors == (
            f"memoriter: The workspace is {Path('~/vault')}. The current folder has notes but is not set up: "
            "run `memoriter init .`.\n"
        )
        assert vault != other
        person.run(other, "init", ".")
        assert person.found(other, "zebra") == [note]

    def test_say_nothing_in_the_workspace_or_if_it_is_named(self, person: Person, vault: Path) -> None:
        for folder, words in (
            (vault, ()),
            (vault / "Projekte", ()),
            (person.user, ("--workspace", vault)),
        ):
            assert person.streams(folder, "search", "heron", *words)[1] == ""


class TestNotesOfAgents:
    """`init` finds what coding agents keep on this machine."""

    @pytest.fixture
    def project(self, person: Person) -> Path:
        project = person.folder(
            "project",
            {
                "memory/own.md": "The heron is mine.\n",
                "CLAUDE.md": "The heron is in CLAUDE.md.\n",
                ".cursor/rules/birds.mdc": "---\nalwaysApply: true\n---\nThe heron is a rule.\n",
                ".git/HEAD": "ref: refs/heads/main\n",
            },
        )
        (project / "AGENTS.md").symlink_to("CLAUDE.md")
        slug = re.sub(r"[^A-Za-z0-9]", "-", str(project))
        person.folder(
            f"user/.claude/projects/{slug}/memory", {"MEMORY.md": "The heron is known to Claude.\n"}
        )
        person.folder("user/.codex/memories", {"memory_summary.md": "The heron is known to Codex.\n"})
        return project

    def test_are_named_and_added_on_request(self, person: Person, project: Path) -> None:
        printed = person.run(project, "init")
        assert (
            "Not searched: Claude Code's memory of this project (1 note), Codex's memories (1 note), "
            "Cursor's rules (1 note), CLAUDE.md (1 note), written by agents. To search them too, run "
            f"`memoriter init {project} --agent-notes`."
        ) in " ".join(printed.split())
        assert person.found(project, "heron") == ["memory/own.md"]
        assert "Added: Claude Code's memory of this project" in person.run(project, "init", "--agent-notes")
        hits = json.loads(person.run(project, "search", "heron", "-n", "9", "--json"))["results"]
        assert {Path(hit["path"]).name: hit["trust"] for hit in hits} == {
            "own.md": "owner",
            "MEMORY.md": "agent",
            "memory_summary.md": "agent",
            "birds.mdc": "agent",
            "CLAUDE.md": "agent",
        }
        assert "written by agents" not in person.run(project, "init")

    @pytest.mark.parametrize("answer", ["y", "n"])
    def test_are_offered_in_a_terminal(self, person: Person, project: Path, answer: str) -> None:
        _, printed = person.answer(project, answer, "init")
        assert "Search them too? [y/N]" in printed
        assert len(person.found(project, "heron")) == {"y": 5, "n": 1}[answer]


def test_init_without_a_terminal_creates_no_chain_of_folders(person: Person) -> None:
    refused = person.run(person.user, "init", "typo/deep", fails=True)
    assert (
        f"There is no folder {person.user / 'typo/deep'}. To create it and the folders above it, pass --yes."
        in refused
    )
    assert not (person.user / "typo").exists()
    person.run(person.user, "init", "typo/deep", "--yes")
    assert (person.user / "typo/deep").is_dir()


def test_the_list_of_workspaces_shows_a_default_without_a_name(person: Person) -> None:
    notes = person.folder("notes")
    person.run(notes, "init")
    assert f"{notes} (no name" in person.run(person.user, "workspace", "list")


def test_before_anything_is_set_up_a_folder_of_notes_is_offered(person: Person) -> None:
    vault = person.folder("vault")
    _, errors = person.streams(vault, "search", "heron")
    assert "The current folder has notes but is not set up: run `memoriter init .`." in errors
