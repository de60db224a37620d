"""Commands and mistakes of people who try the program for the first time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import Run

from memoriter.files.platform import quote

#: Windows asks a shell to find the editor.
NO_EDITOR = (
    "Command 'no-such-editor "
    if sys.platform == "win32"
    else "No such file or directory. Nothing was changed."
)


@pytest.fixture
def entry(memoriter: Run) -> str:
    """The id of an entry."""
    return str(json.loads(memoriter("add", "I drink tea", "--json").stdout)["entry"]["id"])


def texts(memoriter: Run) -> list[str]:
    return [entry["text"] for entry in json.loads(memoriter("list", "--json").stdout)["entries"]]


class TestEdit:
    def test_changes_the_text_of_an_entry_until_undo(self, memoriter: Run, entry: str) -> None:
        done = memoriter("edit", entry[:8], "--text", "I drink green tea", "--json")
        assert json.loads(done.stdout)["entry"]["text"] == "I drink green tea"
        assert texts(memoriter) == ["I drink green tea"]
        memoriter("undo")
        assert texts(memoriter) == ["I drink tea"]

    def test_opens_the_editor(self, memoriter: Run, entry: str, tmp_path: Path) -> None:
        script = tmp_path / "an editor.py"
        script.write_text("import sys; open(sys.argv[1], 'w').write('I drink coffee')")
        done = memoriter("edit", entry, EDITOR=f'"{sys.executable}" "{script}"', VISUAL="")
        assert (done.returncode, done.stderr, texts(memoriter)) == (0, "", ["I drink coffee"])

    @pytest.mark.parametrize(
        ("editor", "sentence"),
        [
            ("", "No editor is set: set EDITOR, or pass the new text with --text."),
            ("false", "The editor 'false' failed: Command '"),
            ("no-such-editor", f"The editor 'no-such-editor' failed: {NO_EDITOR}"),
        ],
    )
    def test_without_an_editor_says_so(self, memoriter: Run, entry: str, editor: str, sentence: str) -> None:
        done = memoriter("edit", entry, EDITOR=editor, VISUAL="")
        said = done.stderr.splitlines()[-1]  # on Windows, the shell says something before
        assert (done.returncode, said[: len(sentence) + 11]) == (1, f"memoriter: {sentence}")
        assert texts(memoriter) == ["I drink tea"]

    def test_refuses_an_empty_text_and_an_unknown_entry(self, memoriter: Run, entry: str) -> None:
        assert memoriter("edit", entry, "--text", " ").returncode == 1
        assert memoriter("edit", "nothing", "--text", "tea").returncode == 1
        assert texts(memoriter) == ["I drink tea"]


class TestStandardInput:
    def test_is_a_statement(self, memoriter: Run) -> None:
        assert memoriter("add", "-", stdin="我喜欢喝茶\n".encode()).returncode == 0
        assert texts(memoriter) == ["我喜欢喝茶"]

    @pytest.mark.parametrize(
        ("command", "limit"),
        [
            ("add -", 4),
            ("save -", 4),
            ("config set search.max_results -", 4),
            ("call entries.add -", 16),
            ("recall --messages -", 16),
            ("capture --messages -", 16),
        ],
    )
    @pytest.mark.parametrize(
        ("data", "sentence"),
        [
            (b"caf\xe9 opens", "Standard input is not UTF-8 text (byte 3). Nothing was stored."),
            (b"tea", "Standard input has more than {limit} MiB. Nothing was stored."),
        ],
        ids=["bytes", "size"],
    )
    def test_that_cannot_be_stored_is_refused(
        self, memoriter: Run, workspace: Path, command: str, limit: int, data: bytes, sentence: str
    ) -> None:
        before = sorted(workspace.rglob("*"))
        if "limit" in sentence:
            data *= (limit << 20) // len(data) + 1
        done = memoriter(*command.split(), stdin=data)
        sentence = sentence.format(limit=limit)
        assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"Error: Invalid value: {sentence}")
        assert (texts(memoriter), sorted(workspace.rglob("*"))) == ([], before)


@pytest.mark.parametrize("command", ["add", "save"])
def test_a_text_that_is_not_utf_8_is_refused(memoriter: Run, workspace: Path, command: str) -> None:
    before = sorted(workspace.rglob("*"))
    done = memoriter(command, "caf\udce9 opens")
    sentence = "Error: Invalid value: The argument is not UTF-8 text (byte 3). Nothing was stored."
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, sentence)
    assert (texts(memoriter), sorted(workspace.rglob("*"))) == ([], before)


class TestFilesThatAreNotIndexed:
    @pytest.fixture(autouse=True)
    def files(self, workspace: Path) -> None:
        names = (
            "a.pdf",
            "b.PDF",
            "memory/c.png",
            "d.mp3",
            "e.py",
            "f.zip",
            "g.md",
            ".hidden.pdf",
            "venv/h.pdf",
        )
        for name in (*names, "memory/tea.txt", "memory/mate.markdown", "memory/cocoa.mdx"):
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(f"About {name}: kept in the cupboard.\n", encoding="utf-8")

    def test_are_counted_by_kind(self, memoriter: Run, workspace: Path) -> None:
        others = "PDF 2, images 1, audio 1, code 1, other 1"
        set_up = memoriter("init", str(workspace)).stdout.splitlines()
        command = f"memoriter init {quote(str(workspace))} --all-notes"
        assert f"Not indexed: notes 1, {others}. To index all notes, run `{command}`." in set_up
        assert memoriter("search", "wombat").stdout.splitlines()[-1] == (
            f"Not indexed in the workspace: notes 1, {others}. To index all notes, run `{command}`."
        )
        assert f"To index all notes, run `{command}`." in " ".join(memoriter("status").stdout.split())
        assert json.loads(memoriter("status", "--json").stdout)["details"]["not_indexed"] == {
            "notes": 1,
            "PDF": 2,
            "images": 1,
            "audio": 1,
            "code": 1,
            "other": 1,
        }
        [found] = [
            finding
            for finding in json.loads(memoriter("doctor", "--json").stdout)["findings"]
            if finding["name"] == "not indexed"
        ]
        assert found == {
            "name": "not indexed",
            "state": "note",
            "text": f"notes 1, {others}",
            "fix": f"To index all notes, run `{command}`.",
        }

    @pytest.mark.parametrize("name", ["tea.txt", "mate.markdown", "cocoa.mdx"])
    def test_are_not_notes_with_other_endings(self, memoriter: Run, name: str) -> None:
        done = memoriter("search", name.partition(".")[0], "--json")
        assert [hit["path"] for hit in json.loads(done.stdout)["results"]][:1] == [f"memory/{name}"]


def test_the_same_sentence_of_several_days_is_one_line_of_an_answer(memoriter: Run, workspace: Path) -> None:
    (workspace / "memory").mkdir(exist_ok=True)
    for day in ("06", "07", "08"):
        text = f"# 2026-02-{day}\n\n- The standup is at ten in the blue room.\n"
        (workspace / f"memory/2026-02-{day}.md").write_text(text, encoding="utf-8")
    (workspace / "memory/2026-02-09.md").write_text("- The standup is at eleven in the blue room.\n", "utf-8")
    found = json.loads(memoriter("search", "standup", "blue", "room", "--json").stdout)["results"]
    assert sorted(hit["snippet"].splitlines()[-1] for hit in found) == [
        "- The standup is at eleven in the blue room.",
        "- The standup is at ten in the blue room.",
    ]


@pytest.mark.parametrize("words", [[], ["search"], ["token", "create"]])
def test_help_is_also_a_command(memoriter: Run, words: list[str]) -> None:
    shown = memoriter("help", *words)
    assert (shown.returncode, shown.stdout) == (0, memoriter(*words, "--help").stdout)


def test_help_of_an_unknown_command_suggests_one(memoriter: Run) -> None:
    done = memoriter("help", "serch")
    assert (done.returncode, "Did you mean 'search'" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["list", "--limt", "3"], "No such option: --limt. Did you mean '--limit'?"),
        (["search", "--explian", "tea"], "No such option: --explian. Did you mean '--explain'?"),
        (["search", "tea", "--limt", "3"], "No such option: --limt. Did you mean '--max-results'?"),
        (["token", "create", "--scope", "read"], "No such option: --scope. Did you mean '--access'?"),
        (["undo", "--zzz"], "No such option: --zzz. Available: --json, --help."),
    ],
)
def test_a_mistyped_option_gets_a_suggestion(memoriter: Run, words: list[str], sentence: str) -> None:
    done = memoriter(*words)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"Error: {sentence}")


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("delete", "forget"),
        ("remember", "add"),
        ("find", "search"),
        ("update", "edit"),
        ("version", "--version"),
    ],
)
def test_the_name_that_another_program_gives_to_a_command_gets_a_suggestion(
    memoriter: Run, word: str, command: str
) -> None:
    sentence = f"Error: No such command {word!r}. Did you mean {command!r}?"
    for words in ([word], ["help", word], [word, "tea"]):
        done = memoriter(*words)
        assert (done.returncode, done.stderr.splitlines()[-1]) == (2, sentence)


def test_install_of_another_program_names_the_command_for_it(memoriter: Run) -> None:
    done = memoriter("install", "emacs")
    sentence = "Other programs use MCP: run `memoriter mcp --print-config json`."
    assert (done.returncode, done.stderr.rstrip().endswith(sentence)) == (2, True)
    assert memoriter("mcp", "--print-config", "json").returncode == 0


def test_every_command_of_the_help_has_a_line_about_it(memoriter: Run) -> None:
    shown = memoriter("help").stdout.partition("\nNotes:\n")[2].partition("\n  Options such as")[0]
    lines = [line for line in shown.splitlines() if line.startswith("  ")]
    assert len(lines) > 40
    assert [line for line in lines if len(line.split()) < 2] == []


def test_call_says_that_its_arguments_are_not_json(memoriter: Run) -> None:
    done = memoriter("call", "memory_search", "notjson")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Invalid value for ARGUMENTS: This is not JSON: Expecting value" in done.stderr


@pytest.mark.parametrize("as_list", [True, False])
def test_summarise_reads_any_file_with_messages(memoriter: Run, tmp_path: Path, as_list: bool) -> None:
    said = [
        {"role": "user", "content": "We ship the boathouse on Friday, please note the blue barometer."},
        {"role": "assistant", "content": "The boathouse ships on Friday."},
    ]
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps(said) if as_list else "\n".join(map(json.dumps, said)), encoding="utf-8")
    done = memoriter("summarise", str(file))
    assert (done.returncode, done.stdout.startswith("Saved: memory/"), done.stderr) == (0, True, "")
    missing = memoriter("summarise", str(tmp_path / "nothing.jsonl"))
    assert (missing.returncode, "is not one of the transcripts" in missing.stderr) == (1, True)
    assert "Nor is it a file with messages: give the path of one." in missing.stderr
