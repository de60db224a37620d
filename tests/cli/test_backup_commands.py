"""`backup` and `restore` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Run


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
    listed = json.loads(memoriter("list", "--json", MEMORITER_HOME=str(home), MEMORITER_WORKSPACE="").stdout)
    assert [entry["text"] for entry in listed] == ["I prefer tabs over spaces."]
    assert (notes / "MEMORY.md").read_text("utf-8") == "The heron nests in the marsh.\n"


def test_a_missing_backup_is_one_sentence(memoriter: Run, tmp_path: Path) -> None:
    done = memoriter("restore", str(tmp_path / "none.zip"))
    assert (done.returncode, done.stderr) == (1, f"memoriter: There is no file {tmp_path / 'none.zip'}.\n")
