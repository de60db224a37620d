"""What newcomers try in their first ten minutes with the installed wheel: folders, files, commands, mistakes.

Each test is a walk of one person with an empty home. Sentences are compared in part, so that what they tell is tested.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest
from document_files import make_pdf, make_word
from installation import Installation, quoted
from own_life import LIFE, UNKNOWN

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3000)]


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files into a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_the_installation_is_small(environment: Path) -> None:
    """The size in bytes depends on the builds of others; `python -m lab.bench first` prints it."""
    [site] = environment.parent.glob("lib/python*/site-packages")
    names = {found.name for found in importlib.metadata.distributions(path=[str(site)])} - {
        "pip",
        "setuptools",
    }
    assert "memoriter" in names
    assert len(names) <= 42, sorted(names)


def test_every_command_says_which_folder_it_uses(installed: Installation) -> None:
    home = installed.home
    write(home / "proj", {"memory/p.md": "# p\n\nThe yak is hairy.\n"})
    other = write(home / "B", {"MEMORY.md": "# Memory\n", "memory/x.md": "# x\n\nThe zebra is striped.\n"})
    third = write(home / "third", {"t.md": "# t\n\nThe toucan is loud.\n"})
    installed.run("memoriter init ~/proj")
    for command in ("memoriter search zebra", "memoriter index"):
        said = installed.says(command, other)
        assert (
            "The workspace is ~/proj. The current folder has notes but is not set up: run `memoriter init .`."
            in said
        )
    assert "striped" in installed.says("memoriter init . && memoriter search zebra", other)
    assert "The workspace is ~/proj." in installed.says("memoriter search yak")
    assert "~/proj (no name" in installed.says("memoriter workspace list")
    installed.run("memoriter workspace add bee ~/B")
    assert "striped" in installed.says("memoriter search zebra --workspace bee")
    installed.run("memoriter workspace use bee")
    assert "striped" in installed.says("memoriter search zebra")
    [hint] = re.findall(r"run `(memoriter init [^`]+ --all-notes)`", installed.says("memoriter init ~/third"))
    assert str(third) in hint
    installed.run(hint)
    assert "toucan is loud" in installed.says("memoriter search toucan", third)
    assert "pass --yes" in installed.says("memoriter init ~/typo/deep", status=1)
    assert not (home / "typo").exists()


def test_files_that_are_not_indexed_are_named_and_the_advice_works(installed: Installation) -> None:
    names = (
        "memory/tea.txt",
        "memory/mate.markdown",
        "memory/cocoa.mdx",
        "other.md",
        "a.png",
        "b.mp3",
        "c.py",
    )
    write(installed.notes, {name: f"About {name}: kept in the cupboard.\n" for name in names})
    house = (
        "The house has four floors, a garden, a cellar for bicycles and a laundry room with two machines. "
        * 8
    )
    pages = [house, f"The deposit is three months of rent. {house}", ""]
    (installed.notes / "memory/lease.pdf").write_bytes(make_pdf(pages))
    (installed.notes / "memory/boiler.docx").write_bytes(make_word())
    (installed.notes / "memory/scan.pdf").write_bytes(make_pdf(["", ""]))
    set_up = installed.says("memoriter init", installed.notes)
    counted = "notes 1, PDF 2, Word 1, images 1, audio 1, code 1"
    assert f"Not indexed: {counted}." in set_up
    for command in ("memoriter doctor", "memoriter status", "memoriter search wombat"):
        said = installed.says(command, installed.notes)
        assert "To read PDF and Word files, run `pip install" in said, command
        assert "--all-notes`." in said
    for word in ("tea", "mate", "cocoa"):
        assert f"memory/{word}." in installed.says(f"memoriter search {word}", installed.notes)
    [advice] = re.findall(r"To read PDF and Word files, run `([^`]+)`, then `memoriter index`", set_up)
    try:
        installed.run(f"{advice} --quiet --disable-pip-version-check")
        indexed = installed.says("memoriter index", installed.notes)
        assert "memory/scan.pdf: None of the 2 pages has text. They are probably scanned images." in indexed
        assert "memory/lease.pdf: page 3 without text, probably scanned" in indexed
        # The resident process started before the packages were installed.
        assert "memory/lease.pdf#page=2" in installed.says(
            "memoriter search deposit three months", installed.notes
        )
        assert "memory/boiler.docx" in installed.says(
            "memoriter search when was the boiler installed", installed.notes
        )
        assert "scan.pdf" in installed.says("memoriter doctor", installed.notes)
    finally:
        installed.run("pip uninstall --quiet --yes pypdf python-docx lxml")


def test_init_does_not_wait_and_can_be_interrupted(installed: Installation) -> None:
    notes = 600  # a fast machine embeds a thousand chunks a second
    line = "On day {day} the heron of {note} stood in the water and waited for a fish that came late."
    texts = {
        f"memory/{note}.md": "\n\n".join(line.format(day=day, note=note) for day in range(60))
        for note in range(notes)
    }
    texts["memory/7.md"] += "\n\nThe kingfisher nests under the bridge."
    write(installed.notes, texts)
    with subprocess.Popen(
        [installed.bin / "memoriter", "init", "--wait"],
        cwd=installed.notes,
        env=installed.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if "Embedding" in line)
        process.send_signal(signal.SIGINT)
        said = list(process.stderr)[-1]
    assert process.returncode == 130
    assert re.fullmatch(
        rf"memoriter: Interrupted\. {notes + 1} files can be searched by keyword, \d+ of \d+ chunks by meaning\. "
        r"To go on, run `memoriter index`\.\n",
        said,
    )
    said = installed.says("memoriter init", installed.notes)
    assert re.search(
        r"Searchable now by keyword\. Search by meaning follows in about \d+ (second|minute)s?;", said
    )
    assert "memory/7.md" in installed.says("memoriter search kingfisher nests", installed.notes)


def test_the_commands_that_people_look_for_exist(installed: Installation) -> None:
    write(installed.notes, {"memory/x.md": "# x\n\nThe zebra is striped.\n"})
    installed.run("memoriter init", installed.notes)
    assert "Search notes" in installed.says("memoriter help search")
    installed.run("echo 'I moved to Munich last month' | memoriter add -")
    [entry] = json.loads(installed.run("memoriter list --json"))["entries"]
    installed.run(f"memoriter edit {entry['id']} --text 'I moved to Hamburg last month'")
    installed.run(f"EDITOR='sed -i s/Hamburg/Bremen/' memoriter edit {entry['id']}")
    assert "I moved to Bremen last month" in installed.says("memoriter list")
    assert "memoriter collection add NAME" in installed.says("memoriter import notes/memory/x.md", status=2)
    said = [{"role": "user", "content": "We ship the boathouse on Friday."}]
    (installed.home / "chat.json").write_text(json.dumps(said), encoding="utf-8")
    assert "Saved: memory/" in installed.says("memoriter summarise chat.json")
    installed.run("memoriter install cursor")
    assert "memoriter" in (installed.home / ".cursor/mcp.json").read_text("utf-8")
    kettle = json.loads(installed.run("memoriter add 'The kettle is blue' --json"))["entry"]["id"]
    installed.run("memoriter add 'The teapot is red'")
    installed.run(f"memoriter forget {kettle} --now --yes")
    assert "The teapot is red" in installed.says("memoriter undo")
    assert "Bremen" in installed.says("memoriter undo")  # the erased entry does not stop it
    installed.run('python -c \'import memoriter; assert {"Memory", "AsyncMemory"} <= set(dir(memoriter))\'')
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
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(link, timeout=60).close()
        address = link.partition("/open")[0]
        with (
            browser.open(f"{address}/docs", timeout=60) as page,
            browser.open(f"{address}/openapi.json") as document,
        ):
            shown = page.read().decode()
            assert all(path in shown for path in json.load(document)["paths"])
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)


@pytest.mark.parametrize(
    ("command", "status", "sentence"),
    [
        ("memoriter search zebra --limt 3", 2, "Did you mean '--max-results'?"),
        ("memoriter token create --scope read", 2, "Did you mean '--access'?"),
        ("memoriter serch zebra", 2, "Did you mean 'search'"),
        ("memoriter call memory_search notjson", 2, "This is not JSON"),
        ("memoriter install nothing", 2, "Available: claude-code"),
        ("memoriter import nothing.json", 2, "nothing.json"),
        ("memoriter search ''", 2, "The query is empty."),
        (
            "printf 'ok \\xff' | memoriter add -",
            2,
            "Standard input is not UTF-8 text (byte 3). Nothing was stored.",
        ),
        (
            "printf 'ok \\xff' | memoriter save -",
            2,
            "Standard input is not UTF-8 text (byte 3). Nothing was stored.",
        ),
        (
            "head -c 40000000 /dev/zero | memoriter add -",
            2,
            "Standard input has more than 4 MiB. Nothing was stored.",
        ),
        (
            "yes | head -c 40000000 | memoriter save -",
            2,
            "Standard input has more than 4 MiB. Nothing was stored.",
        ),
        ("memoriter init /proc/nothing", 1, "/proc/nothing"),
    ],
)
def test_bad_input_gets_one_sentence(
    installed: Installation, command: str, status: int, sentence: str
) -> None:
    write(installed.notes, {"memory/x.md": "# x\n\nThe zebra is striped.\n"})
    installed.run("MEMORITER_EMBEDDING__PROVIDER=none memoriter init", installed.notes)
    assert sentence in installed.says(command, status=status)
    assert json.loads(installed.run("memoriter list --json"))["entries"] == []


def test_sixty_questions_about_ones_own_life(installed: Installation) -> None:
    """The limits are what was measured, less one: 55 first, 46 recalled, and nothing for what is not known."""
    program = f"""
import json, memoriter
life, unknown = {LIFE!r}, {UNKNOWN!r}
with memoriter.open("notes") as memory:
    for text, _, _ in life:
        memory.remember(text)
    asked = [(text, question) for text, *questions in life for question in questions]
    first = [q for text, q in asked if [hit.snippet for hit in memory.search(q)][:1] == [text]]
    recalled = [q for text, q in asked if text in [line.text for line in memory.recall(q).lines]]
    noise = [q for q in unknown if memory.recall(q).lines]
print(json.dumps([len(asked), len(first), len(recalled), noise]))
"""
    asked, first, recalled, noise = json.loads(installed.run(f"python -c {quoted(program)}"))
    assert asked == 60
    assert first >= 54
    assert recalled >= 45
    assert noise == []
