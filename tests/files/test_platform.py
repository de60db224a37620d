"""Differences between systems. Those of macOS and Windows that need no such system are tested here with stand-ins."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoriter.errors import PathRefused
from memoriter.extensions.clients.parts import JsonHooks
from memoriter.extensions.clients.table import copilot_hooks
from memoriter.files import platform
from memoriter.files.paths import path_parts


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes the layer believe that it runs on another system."""
    return lambda system: monkeypatch.setattr(sys, "platform", system)


# ---- files ----------------------------------------------------------------------------------------------------


@pytest.mark.posix("fcntl")
def test_on_macos_a_file_is_flushed_out_of_the_cache_of_the_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: Callable[[str], None]
) -> None:
    import fcntl

    calls = list[object]()

    def control(descriptor: int, command: int) -> None:
        calls.append(command)
        if len(calls) > 1:
            raise OSError(errno.ENOTSUP, "a network disk")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", lambda _: calls.append("fsync"))
    (tmp_path / "file").touch()
    on("darwin")
    platform.sync_path(tmp_path / "file")
    assert calls == [51]
    platform.sync_path(tmp_path / "file")
    assert calls == [51, 51, "fsync"]


def test_a_rename_never_replaces_a_file(tmp_path: Path) -> None:
    old, new, other = tmp_path / "old", tmp_path / "new", tmp_path / "other"
    old.write_text("old")
    other.write_text("other")
    with pytest.raises(FileExistsError):
        platform.rename_without_replacing(old, other)
    platform.rename_without_replacing(old, new)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"new": "old", "other": "other"}


@pytest.mark.posix("link counts on Windows")
def test_a_renamed_file_never_has_both_names(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")
    # The process ends as if it were killed as soon as it removes a name.
    code = (
        "import os, sys; from memoriter.files import platform;"
        "sys.addaudithook(lambda event, _: os._exit(9) if event == 'os.remove' else None);"
        "platform.rename_without_replacing(*sys.argv[1:])"
    )
    subprocess.run([sys.executable, "-c", code, str(old), str(new)], check=False)
    assert [file.name for file in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize(("code", "renamed"), [(0, False), (errno.EEXIST, False), (errno.ENOTSUP, True)])
def test_on_macos_a_file_is_renamed_exclusively_where_the_disk_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: Callable[[str], None], code: int, renamed: bool
) -> None:
    import ctypes

    calls = list[tuple[bytes, bytes, int]]()

    class Library:
        def renamex_np(self, *arguments: Any) -> int:
            calls.append(arguments)  # type: ignore[arg-type]
            return -1 if code else 0

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Library())
    monkeypatch.setattr(ctypes, "get_errno", lambda: code)
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    on("darwin")
    if code == errno.EEXIST:
        with pytest.raises(FileExistsError):
            platform.rename_without_replacing(old, new)
    else:
        platform.rename_without_replacing(old, new)
    assert calls == [(os.fsencode(old), os.fsencode(new), 4)]
    assert new.exists() is renamed


def test_a_file_that_another_program_holds_open_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [PermissionError(13, "in use"), PermissionError(13, "in use")]

    def call() -> str:
        if failures:
            raise failures.pop()
        return "done"

    monkeypatch.setattr(platform, "CAN_REPLACE_OPEN_FILES", False)
    assert platform.sharing(call) == "done"
    failures.append(PermissionError(13, "in use"))
    monkeypatch.setattr(platform, "CAN_REPLACE_OPEN_FILES", True)
    with pytest.raises(PermissionError):
        platform.sharing(call)


# ---- names ----------------------------------------------------------------------------------------------------


def test_names_that_macos_and_windows_do_not_distinguish_are_the_same_path() -> None:
    assert platform.same_path("/Users/Zoë/Notes", "/users/Zoe\u0308/notes")
    assert not platform.same_path("/Users/Zoë", "/Users/Zoe")


@pytest.mark.parametrize("name", ["con.md", "AUX", "nul.tar.gz", "com1.md", "lpt9", "COM².md", "conin$"])
def test_names_of_devices_are_refused_where_they_are_devices(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "HAS_RESERVED_NAMES", True)
    with pytest.raises(PathRefused, match="this system cannot have a file named"):
        path_parts(f"memory/{name}")
    assert path_parts("memory/console.md") == ("memory", "console.md")
    monkeypatch.setattr(platform, "HAS_RESERVED_NAMES", False)
    assert path_parts(f"memory/{name}") == ("memory", name)


# ---- commands of hooks -------------------------------------------------------------------------------------------


def read_as_sh(command: str) -> list[str]:
    """Split a command as Git Bash does."""
    return shlex.split(command)


def read_as_cmd(command: str) -> list[str]:
    """Split a command as cmd and the C library do. Outside quotes, a slash ends the name of the program."""
    words, word, quoted, started = list[str](), "", False, False
    for char in command:
        if char == '"':
            quoted, started = not quoted, True
        elif char == " " and not quoted:
            if started:
                words.append(word)
            word, started = "", False
        else:
            assert quoted or char not in "&|<>^%", command
            assert quoted or words or char != "/", command
            word, started = word + char, True
    assert not quoted
    return [*words, word] if started else words


def read_as_powershell(command: str) -> list[str]:
    """Split a command as PowerShell does. A program in quotes is only a text, unless `&` is before it."""
    assert not command.startswith('"'), command
    assert not any(char in command for char in "$`;(){}@#"), command
    if command.startswith('& "'):
        return read_as_cmd(command.removeprefix("& "))
    return read_as_cmd(f'"{command.partition(" ")[0]}" {command.partition(" ")[2]}')


ARGUMENTS = ["--home", "C:\\Users\\Zoë Doe\\.memoriter", "hook", "claude-code", "Stop"]
WORDS = ["--home", "C:/Users/Zoë Doe/.memoriter", "hook", "claude-code", "Stop"]


@pytest.mark.parametrize("read", [read_as_sh, read_as_cmd, read_as_powershell])
def test_on_windows_every_shell_reads_the_same_hook_command(
    read: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch, on: Callable[[str], None]
) -> None:
    program = "C:\\Users\\Zoë Doe\\venv\\Scripts\\memoriter.exe"
    monkeypatch.setattr(shutil, "which", lambda name: "c:\\users\\zoë doe\\venv\\scripts\\memoriter.EXE")
    monkeypatch.setattr(os, "path", __import__("ntpath"))
    on("win32")
    assert read(platform.hook_command([program, *ARGUMENTS])) == ["memoriter", *WORDS]


@pytest.mark.parametrize("read", [read_as_sh, read_as_cmd])
def test_on_windows_a_program_outside_the_search_path_is_called_by_its_path(
    read: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch, on: Callable[[str], None]
) -> None:
    program = "C:\\Users\\Zoë Doe\\venv\\Scripts\\memoriter.exe"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(os, "path", __import__("ntpath"))
    on("win32")
    command = platform.hook_command([program, *ARGUMENTS])
    assert read(command) == [program.replace("\\", "/"), *WORDS]


@pytest.mark.parametrize("found", [None, "C:\\Users\\Zoë Doe\\venv\\Scripts\\memoriter.exe"])
def test_on_windows_hosts_that_start_powershell_get_a_command_for_it(
    found: str | None, monkeypatch: pytest.MonkeyPatch, on: Callable[[str], None]
) -> None:
    program = "C:\\Users\\Zoë Doe\\venv\\Scripts\\memoriter.exe"
    monkeypatch.setattr(shutil, "which", lambda name: found)
    monkeypatch.setattr(os, "path", __import__("ntpath"))
    on("win32")
    command = [program, *ARGUMENTS[:2]]
    copilot = json.loads(copilot_hooks(command))["hooks"]["agentStop"][0]
    settings = json.loads(JsonHooks("hooks.json", "codex", {"Stop": "Stop"}).add("", command))
    codex = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
    called = "memoriter" if found else program.replace("\\", "/")
    words = {
        host: [called, *WORDS[:3], host, "Stop", "--server", "memoriter"] for host in ("codex", "copilot-cli")
    }
    assert read_as_powershell(codex) == words["codex"]
    assert read_as_powershell(copilot["powershell"]) == words["copilot-cli"]
    assert read_as_sh(copilot["bash"]) == words["copilot-cli"]


@pytest.mark.parametrize("read", [read_as_sh, read_as_cmd, read_as_powershell])
def test_on_windows_every_shell_reads_a_command_that_a_person_copies(
    read: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch, on: Callable[[str], None]
) -> None:
    monkeypatch.setattr(os, "path", __import__("ntpath"))
    on("win32")
    notes = "C:\\Users\\Zoë Doe\\notes"
    assert read(platform.command_line(["memoriter", "push", notes])) == [
        "memoriter",
        "push",
        "C:/Users/Zoë Doe/notes",
    ]


# ---- owners and processes ------------------------------------------------------------------------------------------


def test_a_private_folder_is_recognised(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    assert (platform.is_own(folder), platform.is_private(folder)) == (True, False)
    platform.make_private(folder)
    assert (platform.is_own(folder), platform.is_private(folder)) == (True, True)


def test_a_running_process_is_alive() -> None:
    import subprocess

    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert (platform.is_alive(os.getpid()), platform.is_alive(ended.pid)) == (True, False)


def test_on_macos_the_user_of_a_socket_is_read_from_its_credentials(on: Callable[[str], None]) -> None:
    class Stream:
        def __init__(self, user: int) -> None:
            self.user = user

        def getsockopt(self, level: int, option: int, size: int) -> bytes:
            assert (level, option) == (0, 1)  # SOL_LOCAL, LOCAL_PEERCRED
            return struct.pack("2Ih", 0, self.user, 1).ljust(size, b"\0")

    user = os.geteuid() if hasattr(os, "geteuid") else 0
    if not hasattr(os, "geteuid"):
        pytest.skip("not on Windows: users have no number")
    on("darwin")
    same: Any = Stream(user)
    other: Any = Stream(user + 1)
    assert (platform.is_same_user(same), platform.is_same_user(other)) == (True, False)


@pytest.mark.parametrize("system", ["linux", "win32"])
def test_a_call_that_takes_too_long_is_left(system: str, on: Callable[[str], None]) -> None:
    import threading

    if system == "linux" and sys.platform == "win32":
        pytest.skip("not on Windows: it has no alarm")
    never = threading.Event()
    on(system)
    assert platform.within(60, lambda: 1) == 1
    with pytest.raises(ZeroDivisionError):
        platform.within(60, lambda: 1 // 0)
    with pytest.raises(platform.DeadlineMissed):
        platform.within(0.01, lambda: never.wait(60))
    never.set()
