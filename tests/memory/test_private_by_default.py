"""With default settings nothing leaves the machine, and every file of the home belongs to its owner alone."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

#: Uses the parts of a memory in a process without a umask, and prints what it asks of the network.
SCRIPT = """
import json, os, sys
os.umask(0)
asked = []
NAMES = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request")
sys.addaudithook(lambda name, _: asked.append(name) if name in NAMES else None)
from memoriter import Memory
from memoriter.records import Turn

workspace, home, *more = sys.argv[1:]
said = [Turn("user", "I prefer tea to coffee in the morning.", 1), Turn("assistant", "Noted.", 2)]
messages = [{"role": turn.role, "content": turn.text} for turn in said]
with Memory.open(workspace, home=home) as memory:
    entry = memory.remember("The heron lands at noon.").entry
    memory.save("The gate opens at nine.", title="Gate", category="places")
    memory.capture(said, session="s1", record=True)
    memory.summarise(messages, "s1")
    memory.flush(messages, "s1", window=1000, tokens=1000)
    memory.sync()
    found = [memory.search("when does the bird arrive?").hits, memory.recall("Do I drink tea?").text]
    memory.forget(entry.id)
    memory.erase(entry.id)
    memory.maintain()
    status = memory.status(deep=True)
if more:
    import socket
    socket.getaddrinfo("localhost", 80)
print(json.dumps({"asked": asked, "found": [bool(one) for one in found], "provider": status.provider}))
"""


def use(folder: Path, *more: str) -> dict[str, Any]:
    """Run the script on the home and the workspace in a folder; return what it prints."""
    (folder / "notes").mkdir()
    command = [sys.executable, "-c", SCRIPT, str(folder / "notes"), str(folder / "home"), *more]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    printed: dict[str, Any] = json.loads(ended.stdout)
    return printed


def test_nothing_is_asked_of_the_network_by_default(tmp_path: Path) -> None:
    assert use(tmp_path) == {"asked": [], "found": [True, True], "provider": "local"}


def test_control_a_lookup_of_an_address_is_noticed(tmp_path: Path) -> None:
    assert use(tmp_path, "look up")["asked"] == ["socket.getaddrinfo"]


@pytest.mark.skipif(sys.platform == "win32", reason="files have no modes")
def test_every_file_is_private_even_without_a_umask(tmp_path: Path) -> None:
    use(tmp_path)
    made = [path for root in ("home", "notes") for path in (tmp_path / root).rglob("*")]
    modes = {(path.is_dir(), oct(stat.S_IMODE(path.stat().st_mode))) for path in made}
    assert modes == {(True, "0o700"), (False, "0o600")}, [
        str(path) for path in made if path.stat().st_mode & 0o77
    ]
