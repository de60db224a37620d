"""Several processes on one home: gateways, the command line and a watcher. Some are killed."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from gateways import TIMEOUT_S, ask, poll
from interrupts import Interrupt
from typer.testing import CliRunner

from memoriter import Memory
from memoriter.cli.app import app
from memoriter.errors import MemoriterError, NotFound
from memoriter.extensions.serving.server import find_running, listen
from memoriter.files import platform

SOAK = bool(os.environ.get("MEMORITER_SOAK"))
KILLS = 60 if SOAK else 2
ROUNDS = 60 if SOAK else 3
QUICK = {"MEMORITER_EMBEDDING__PROVIDER": "none", "MEMORITER_WATCH__DEBOUNCE_S": "0.1"}


def places(workspace: Path, home: Path) -> list[str]:
    return ["--workspace", str(workspace), "--home", str(home)]


def command(workspace: Path, home: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "memoriter", *places(workspace, home), *arguments]


@contextmanager
def started(
    workspace: Path, home: Path, *arguments: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run a process until the end of the block. Yield it with the first line of JSON that it prints."""
    errors = (home.parent / f"{'-'.join(arguments[:1])}-{os.urandom(2).hex()}.log").open("w+")
    interrupt = Interrupt()
    process = subprocess.Popen(
        interrupt.command([*places(workspace, home), *arguments, "--json"]),
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env={**os.environ, **QUICK},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        errors.seek(0)
        assert line, errors.read()
        yield process, json.loads(line)
        interrupt.send(process)
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == 0
        errors.seek(0)
        log_text = errors.read()
        assert "lock" not in log_text
        assert '"level": "error"' not in log_text
    finally:
        process.kill()
        process.wait()
        errors.close()


def killed(tmp_path: Path, kills: int, *more: str) -> tuple[set[str], set[str]]:
    """Return what killed gateways acknowledged, and what is stored afterwards."""
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "memory").mkdir(parents=True)
    script = [sys.executable, str(Path(__file__).with_name("killed_gateways.py"))]
    completed = subprocess.run(
        [*script, str(home), str(workspace), str(kills), "7", *more],
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stderr == ""
    with Memory.open(workspace, home=home, overrides={"embedding.provider": "none"}) as memory:
        stored = {entry.text.lower() for entry in memory.entries.list()}
    acknowledged = {line.removeprefix("Remember that ").lower() for line in completed.stdout.splitlines()}
    return acknowledged, stored


@pytest.mark.posix("forked gateways that are killed")
@pytest.mark.timeout(1800)
def test_acknowledged_captures_survive_a_killed_gateway(tmp_path: Path) -> None:
    acknowledged, stored = killed(tmp_path, KILLS)
    assert len(acknowledged) >= 5 * KILLS
    assert acknowledged - stored == set()


@pytest.mark.posix("forked gateways that are killed")
def test_a_gateway_that_acknowledges_before_it_writes_loses_captures(tmp_path: Path) -> None:
    """The control for the test above: it shows that these kills can cause a loss."""
    acknowledged, stored = killed(tmp_path, 2, "early")
    assert acknowledged - stored != set()


@pytest.mark.integration
def test_two_gateways_the_command_line_and_a_watcher_share_a_home(tmp_path: Path) -> None:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("# Memory\n\nThe gateway test began.\n")
    failures: list[str] = []

    def busy(address: str, token: str, which: int) -> None:
        with httpx.Client(
            base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=TIMEOUT_S
        ) as client:
            for number in range(ROUNDS):
                text = f"Fact {which}-{number}: {'abcdefgh'[which] * 5}{number} is kept in box {number * 7 + which}."
                for operation, arguments in (
                    ("memory_store", {"text": text}),
                    ("memory_save", {"content": f"Note {which}-{number} was written."}),
                    ("memory.search", {"query": f"note {which}"}),
                    ("recall", {"query": f"what is kept in box {number}?"}),
                    ("memory.sync", {}),
                ):
                    answer = client.post(f"/v1/agents/main/{operation}", json=arguments)
                    if answer.status_code != 200 or answer.json().get("degraded"):
                        failures.append(f"{operation}: {answer.status_code} {answer.text}")

    with (
        started(workspace, home, "serve", "--port", "0") as (_, one),
        started(workspace, home, "serve", "--port", "0") as (_, two),
        started(workspace, home, "watch"),
    ):
        token = str(one["token"])
        assert "token" not in two
        threads = [
            threading.Thread(target=busy, args=(place["address"], token, which))
            for which, place in enumerate((one, one, two, two))
        ]
        for thread in threads:
            thread.start()
        for number in range(3):
            completed = subprocess.run(
                command(workspace, home, "save", f"The command line wrote {number}.", "--json"),
                capture_output=True,
                text=True,
                env={**os.environ, **QUICK},
                check=False,
            )
            if completed.returncode or completed.stderr:
                failures.append(completed.stderr)
        for thread in threads:
            thread.join()
        assert failures == []
        with httpx.Client(
            base_url=str(two["address"]), headers={"Authorization": f"Bearer {token}"}, timeout=TIMEOUT_S
        ) as client:
            assert ask(client, "entries.list", limit=1)["total"] == 4 * ROUNDS
            ask(client, "memory.sync")
            written = "".join(path.read_text() for path in workspace.rglob("*.md"))
            for which in range(4):
                for number in range(ROUNDS):
                    assert written.count(f"Note {which}-{number} was written.") == 1
            poll(lambda: ask(client, "memory.status")["details"].get("behind", 0) in (0, None))
            found = ask(client, "memory.search", query="The command line wrote 2", maxResults=1)["results"]
            assert "The command line wrote 2" in found[0]["snippet"]


def test_serve_prints_its_address_and_open_and_token_work_meanwhile(tmp_path: Path) -> None:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "memory").mkdir(parents=True)
    before = os.umask(0)
    try:
        with started(workspace, home, "serve", "--port", "0") as (process, details):
            owner = httpx.Client(
                base_url=details["address"],
                headers={"Authorization": f"Bearer {details['token']}"},
                timeout=TIMEOUT_S,
            )
            assert [agent["name"] for agent in owner.get("/v1/agents").json()] == ["main"]
            ask(owner, "memory_store", text="I prefer green tea in the morning.")

            def run(*arguments: str) -> Any:
                completed = CliRunner().invoke(app, command(workspace, home, *arguments, "--json")[3:])
                assert completed.exit_code == 0, completed.output
                return json.loads(completed.stdout)

            link = run("open")["link"]
            assert [httpx.get(link, timeout=TIMEOUT_S).status_code for _ in range(2)] == [200, 403]
            created = run("token", "create", "--access", "read", "--name", "laptop")
            reader = httpx.Client(
                base_url=details["address"],
                headers={"Authorization": f"Bearer {created['token']}"},
                timeout=TIMEOUT_S,
            )
            assert ask(reader, "memory.stats")["disabled"] is False
            assert [row["access"] for row in run("token", "list")["tokens"]] == ["admin", "read"]
            assert run("token", "revoke", created["id"]) == {"revoked": created["id"]}
            assert reader.post("/v1/agents/main/memory.stats").status_code == 401
            owner.close()
            reader.close()
            if sys.platform == "win32":
                assert platform.is_private(home)
            else:
                modes = {
                    path.relative_to(home): stat.S_IMODE(path.stat().st_mode) for path in home.rglob("*")
                }
                assert {str(path) for path, mode in modes.items() if mode & 0o077} == set()
            assert process.poll() is None
    finally:
        os.umask(before)
    with pytest.raises(NotFound, match=r"No gateway is running\. Start one with `memoriter serve`"):
        find_running(home)


def test_a_running_file_that_disappears_during_the_search_is_ignored(tmp_path: Path) -> None:
    folder = tmp_path / "gateway" / "running"
    folder.mkdir(parents=True)
    (folder / "1.json").symlink_to("gone")  # listed, but it cannot be read
    with pytest.raises(NotFound, match="No gateway is running"):
        find_running(tmp_path)


def test_a_port_in_use_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MemoriterError) as refused:
            listen("127.0.0.1", port)
    reason = os.strerror(errno.EADDRINUSE) if sys.platform != "win32" else refused.value.__cause__.strerror
    assert str(refused.value) == (
        f"Cannot listen on 127.0.0.1:{port}: {reason}. Use `--port 0` to pick a free port."
    )


@pytest.mark.parametrize(("system", "can_follow"), [("linux", True), ("win32", False)])
def test_on_windows_a_port_is_not_shared(
    system: str, can_follow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    with listen("127.0.0.1", 0) as listening:
        # Elsewhere, this lets a gateway use the port of one that has just ended.
        assert bool(listening.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)) == can_follow


def test_a_process_with_the_id_of_a_killed_gateway_is_not_taken_for_a_gateway(tmp_path: Path) -> None:
    folder = tmp_path / "gateway" / "running"
    folder.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
        listed = {"pid": os.getpid(), "address": address}
        (folder / f"{os.getpid()}.json").write_text(json.dumps(listed))
        assert find_running(tmp_path) == address
    with pytest.raises(NotFound):
        find_running(tmp_path)
