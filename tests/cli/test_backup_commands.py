"""`backup` and `restore` on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import Run

from memoriter.extensions.backup.restoring import restore


def test_a_memory_moves_to_another_home(memoriter: Run, note, tmp_path: Path) -> None:
    note("MEMORY.md", "The heron nests in the marsh.\n")
    memoriter("add", "I prefer tabs over spaces.")
    file = tmp_path / "memory.zip"
    done = memoriter("backup", str(file))
    assert done.stdout.splitlines()[0].endswith(": 1 note and the memory of main. Every file was verified.")
    again = memoriter("backup", str(file))
    assert (again.returncode, again.stderr) == (
        1,
        f"memoriter: {file} exists already. Choose another name, or replace it with --force.\n",
    )
    shown = json.loads(memoriter("backup", str(file), "--force", "--json").stdout)
    assert (shown["path"], shown["files"], shown["notes"], shown["agents"]) == (str(file), 2, 1, ["main"])
    home, notes = tmp_path / "home", tmp_path / "notes"
    places = {"MEMORITER_HOME": str(home), "MEMORITER_WORKSPACE": str(notes)}
    checked = json.loads(memoriter("restore", str(file), "--dry-run", "--json", **places).stdout)
    assert (checked["dryRun"], home.exists()) == (True, False)
    restored = json.loads(memoriter("restore", str(file), "--json", **places).stdout)
    assert restored == {
        "home": str(home),
        "workspace": str(notes),
        "files": 2,
        "notes": 1,
        "agents": ["main"],
        "replaced": None,
        "dryRun": False,
    }
    listed = json.loads(memoriter("list", "--json", MEMORITER_HOME=str(home), MEMORITER_WORKSPACE="").stdout)[
        "entries"
    ]
    assert [entry["text"] for entry in listed] == ["I prefer tabs over spaces."]
    assert (notes / "MEMORY.md").read_text("utf-8") == "The heron nests in the marsh.\n"


def test_a_missing_backup_is_one_sentence(memoriter: Run, tmp_path: Path) -> None:
    done = memoriter("restore", str(tmp_path / "none.zip"))
    assert (done.returncode, done.stderr) == (1, f"memoriter: There is no file {tmp_path / 'none.zip'}.\n")


@pytest.fixture
def interrupted(memoriter: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A backup whose restore was killed after the old memory was moved aside, before the new one was in place."""
    memoriter("add", "I prefer tabs over spaces.")
    file = tmp_path / "memory.zip"
    memoriter("backup", str(file))
    memoriter("add", "The deploy runs on Friday.")
    rename = os.rename

    def killed_at_second(source: Path, target: Path, moves: list[Path] = []) -> None:  # noqa: B006 - counts calls
        moves.append(source)
        if len(moves) == 2:
            raise KeyboardInterrupt
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", killed_at_second)
        with pytest.raises(KeyboardInterrupt):
            restore(file, home=tmp_path / "state", workspace=tmp_path / "workspace", force=True)
    assert not (tmp_path / "state/agents/main").exists()
    return file


@pytest.mark.parametrize(
    "command",
    [
        ("list",),
        ("add", "The heron nests in the marsh."),
        ("search", "tabs"),
        ("config", "set", "search.max_results", "3"),
        ("backup", "other.zip"),
    ],
)
def test_every_command_refuses_a_home_with_an_unfinished_restore(
    interrupted: Path, memoriter: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    done = memoriter(*command)
    refusal = (
        f"memoriter: A restore into {tmp_path / 'state'} was interrupted, so the memory there is not complete. Run "
        "the same `memoriter restore` again, which completes it.\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", refusal)
    assert not (tmp_path / "state/agents/main").exists()


def test_doctor_names_an_unfinished_restore(interrupted: Path, memoriter: Run) -> None:
    done = memoriter("doctor")
    assert done.returncode == 1
    assert "was interrupted" in done.stdout
    assert "setting," not in done.stdout


def test_the_same_restore_completes_an_unfinished_one_once(
    interrupted: Path, memoriter: Run, tmp_path: Path
) -> None:
    home = tmp_path / "state"
    done = json.loads(memoriter("restore", str(interrupted), "--force", "--json").stdout)
    assert done["replaced"] == str(home / "replaced-1")
    listed = json.loads(memoriter("list", "--json").stdout)["entries"]
    assert [entry["text"] for entry in listed] == ["I prefer tabs over spaces."]
    assert (home / "replaced-1/agents/main/memory.db").is_file()
    assert sorted(path.name for path in home.glob("replaced-*")) == ["replaced-1"]


def test_a_restore_keeps_what_others_wrote_while_it_was_interrupted(
    interrupted: Path, memoriter: Run, tmp_path: Path
) -> None:
    home = tmp_path / "state"
    written = home / "agents/main/sessions/late.jsonl"
    written.parent.mkdir(parents=True)
    written.write_text("late\n", "utf-8")
    memoriter("restore", str(interrupted), "--force")
    kept = [path for path in home.rglob("late.jsonl") if path.read_text("utf-8") == "late\n"]
    assert [path.relative_to(home).as_posix() for path in kept] == [
        "replaced-1/agents/main-2/sessions/late.jsonl"
    ]
    listed = json.loads(memoriter("list", "--json").stdout)["entries"]
    assert [entry["text"] for entry in listed] == ["I prefer tabs over spaces."]
