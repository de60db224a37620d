"""No call of Anthropic's memory tool leaves its folder or loses an edit of another."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from anthropic_tool import EXAMPLES, HEAD, error_of, open_tool, tool_error
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoriter import Memory
from memoriter.errors import WriteError
from memoriter.extensions.anthropic.agent_folder import AgentFolder

if TYPE_CHECKING:
    from memoriter.extensions.anthropic.memory_tool import MemoriterMemoryTool


def exchange_files(one: Path, other: Path) -> None:
    """Swap two names in one step, as an attacker would."""
    names = os.fsencode(one), os.fsencode(other)
    ctypes.CDLL(None).renameat2(-100, names[0], -100, names[1], 2)  # AT_FDCWD, RENAME_EXCHANGE


# ---- the jail ----------------------------------------------------------------------------------------------------

hostile = st.one_of(
    st.text(max_size=30),
    st.lists(
        st.sampled_from(
            [
                "..",
                ".",
                "memories",
                "/",
                "a.md",
                "~",
                "%2e%2e",
                "..\\",
                "C:",
                "\x00",
                ".git",
                "link",
                "file-link.md",
                " ",
            ]
        ),
        max_size=6,
    ).map("/".join),
).map(lambda tail: f"/memories/{tail}")


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=hostile, other=hostile)
def test_no_path_leads_out_of_the_folder(
    memory: Memory, workspace: Path, tmp_path: Path, path: str, other: str
) -> None:
    outside = tmp_path / "outside"
    shutil.rmtree(outside, ignore_errors=True)
    outside.mkdir()
    (outside / "a.md").write_text(f"{HEAD}secret zebra\n")
    folder = workspace / "memory"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "file-link.md").symlink_to(outside / "a.md")
    (workspace / "MEMORY.md").write_text(f"{HEAD}mine\n")
    before = _everything(tmp_path, folder)
    tool = open_tool(memory)
    for command in (
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "str_replace", "path": path, "old_str": "zebra", "new_str": "x"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"},
        {"command": "rename", "old_path": path, "new_path": other},
        {"command": "delete", "path": path},
    ):
        with contextlib.suppress(tool_error()):
            assert "zebra" not in str(tool.call(command))
    assert _everything(tmp_path, folder) == before


def _everything(root: Path, but: Path) -> dict[str, bytes]:
    files = [one for one in root.rglob("*") if one.is_file() and not one.is_relative_to(but)]
    return {str(one): one.read_bytes() for one in files if "state" not in one.parts}


@pytest.mark.parametrize(
    "path",
    ["/memories2/a.md", "memories/a.md", "/etc/passwd", "", "/memories/../MEMORY.md", "/memories/a\x00.md"],
)
def test_a_path_outside_the_folder_is_rejected_in_one_sentence(tool: MemoriterMemoryTool, path: str) -> None:
    for command in ("view", "delete"):
        sentence = error_of(tool, command=command, path=path)
        assert "\n" not in sentence
        assert sentence


@pytest.mark.skipif(sys.platform != "linux", reason="folders can be held open by path on Linux alone")
def test_a_folder_that_becomes_a_link_during_a_write_leaks_nothing(
    tool: MemoriterMemoryTool, workspace: Path, tmp_path: Path
) -> None:
    outside, inner, other = tmp_path / "outside", workspace / "memory/inner", workspace / ".other"
    outside.mkdir()
    inner.mkdir(parents=True)
    other.symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            exchange_files(inner, other)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(150):
            with contextlib.suppress(tool_error()):
                tool.call({"command": "create", "path": f"/memories/inner/{number}.md", "file_text": "x"})
    finally:
        stop.set()
        thread.join()
    assert list(outside.iterdir()) == []


def test_concurrent_edits_of_one_note_lose_nothing(tool: MemoriterMemoryTool, workspace: Path) -> None:
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": ""})

    def insert(worker: int) -> None:
        for number in range(8):
            text = f"{worker}-{number}"
            tool.call({"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": text})

    threads = [threading.Thread(target=insert, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (workspace / "memory/a.md").read_text().removeprefix(HEAD).split()
    assert sorted(lines) == sorted(f"{worker}-{number}" for worker in range(3) for number in range(8))


def test_a_concurrent_edit_by_a_person_is_not_overwritten(memory: Memory, workspace: Path) -> None:
    shelf = AgentFolder.of(memory)
    shelf.create("a.md", "one\n")
    file = workspace / "memory/a.md"

    def change(text: str) -> str:
        if "two" not in text:
            file.write_text(f"{HEAD}one\ntwo\n")  # a person saves between reading and writing
        return text + "three\n"

    assert shelf.edit("a.md", change) == "one\ntwo\nthree\n"
    file.write_text("mine now\n")
    with pytest.raises(WriteError, match="contains notes of the owner"):
        shelf.edit("a.md", change)
    assert file.read_text() == "mine now\n"
