"""`pull` and `push` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Run


def test_a_folder_and_the_memory_are_kept_in_step(
    memoriter: Run, note, tmp_path_factory, workspace: Path
) -> None:
    folder = tmp_path_factory.mktemp("mine") / "notes"
    note("memory/a.md", "A")
    assert memoriter("pull", str(folder)).stdout == "memory/a.md: pulled\n0 notes unchanged.\n"

    (folder / "memory/a.md").write_text("folder", encoding="utf-8")
    note("memory/a.md", "memory")
    (folder / "memory/b.md").write_bytes(b"\xff")
    pushed = memoriter("push", str(folder), "--json")
    assert pushed.returncode == 1
    copy = "memory/a.conflict-034a0062.md"
    assert json.loads(pushed.stdout) == {
        "folder": str(folder),
        "notes": [{"path": "memory/a.md", "action": "conflict", "copy": copy}],
        "same": 0,
        "problems": [
            {
                "path": "memory/b.md",
                "reason": f"{folder / 'memory/b.md'} is not UTF-8 (byte 0). It was not changed.",
            }
        ],
    }
    assert (workspace / copy).read_text(encoding="utf-8") == "folder"
    inside = memoriter("pull", str(workspace))
    assert inside.returncode == 1
    assert "Choose a folder outside of it." in inside.stderr
