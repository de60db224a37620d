"""Real processes over one home: gateways, a command line, a watcher; killed, and side by side."""

from __future__ import annotations

import json
import os
import signal
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
from gateways import PATIENCE_S, ask, poll
from typer.testing import CliRunner

from memoriter import Memory
from memoriter.cli.app import app
from memoriter.errors import MemoriterError, NotFound
from memoriter.server.http.serve import find_running, listen

SOAK = bool(os.environ.get("MEMORITER_SOAK"))
KILLS = 60 if SOAK else 2
ROUNDS = 60 if SOAK else 3
QUICK = {"MEMORITER_EMBEDDING__PROVIDER": "none", "MEMORITER_WATCH__DEBOUNCE_S": "0.1"}


def command(workspace: Path, home: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "memoriter", "--workspace", str(workspace), "--home", str(home), *arguments]


@contextmanager
def started(
    workspace: Path, home: Path, *arguments: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A process that runs until the end of the block, and the first line of JSON that it prints."""
    errors = (home.parent / f"{'-'.join(arguments[:1])}-{os.urandom(2).hex()}.log").open("w+")
    process = subprocess.Popen(
        command(workspace, home, *arguments, "--json"),
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
        process.send_signal(signal.SIGINT)
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        errors.seek(0)
        said = errors.read()
        assert "lock" not in said
        assert '"level": "error"' not in said
    finally:
        process.kill()
        process.wait()
        errors.close()


def killed(tmp_path: Path, kills: int, *more: str) -> tuple[set[str], set[str]]:
    """What was acknowledged by gateways that were killed, and what is there afterwards."""
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "memory").mkdir(parents=True)
    script = [sys.executable, str(Path(__file__).with_name("killed_gateways.py"))]
    done = subprocess.run(
        [*script, str(home), str(workspace), str(kills), "7", *more],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    with Memory.open(workspace, home=home, overrides={"embedding.provider": "none"}) as memory:
        kept = {entry.text.lower() for entry in memory.entries.list()}
    acknowledged = {line.removeprefix("Remember that ").lower() for line in done.stdout.splitlines()}
    return acknowledged, kept


@pytest.mark.timeout(1800)
def test_acknowledged_captures_survive_the_kill_of_their_gateway(tmp_path: Path) -> None:
    acknowledged, kept = killed(tmp_path, KILLS)
    assert len(acknowledged) >= 5 * KILLS
    assert acknowledged - kept == set()


@pytest.mark.timeout(600)
def test_the_control_that_acknowledges_before_it_writes_loses_some(tmp_path: Path) -> None:
    """The same kills do harm where an acknowledgement is early, so the test above can fail."""
    acknowledged, kept = killed(tmp_path, 2, "early")
    assert acknowledged - kept != set()


@pytest.mark.timeout(600)
def test_two_gateways_a_command_line_and_a_watcher_share_a_home(tmp_path: Path) -> None:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("# Memory\n\nThe gateway test began.\n")
    failures: list[str] = []

    def busy(address: str, token: str, which: int) -> None:
        with httpx.Client(
            base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60
        ) as client:
            for number in range(ROUNDS):
                said = f"Fact {which}-{number}: {'abcdefgh'[which] * 5}{number} is kept in box {number * 7 + which}."
                for operation, arguments in (
                    ("memory_store", {"text": said}),
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
            done = subprocess.run(
                command(workspace, home, "save", f"The command line wrote {number}.", "--json"),
                capture_output=True,
                text=True,
                env={**os.environ, **QUICK},
                check=False,
            )
            if done.returncode or done.stderr:
                failures.append(done.stderr)
        for thread in threads:
            thread.join()
        assert failures == []
        with httpx.Client(
            base_url=str(two["address"]), headers={"Authorization": f"Bearer {token}"}
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


def test_serve_says_where_and_open_and_token_work_beside_it(tmp_path: Path) -> None:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "memory").mkdir(parents=True)
    before = os.umask(0)
    try:
        with started(workspace, home, "serve", "--port", "0") as (process, told):
            owner = httpx.Client(
                base_url=told["address"], headers={"Authorization": f"Bearer {told['token']}"}
            )
            assert [agent["name"] for agent in owner.get("/v1/agents").json()] == ["main"]
            ask(owner, "memory_store", text="I prefer green tea in the morning.")

            def run(*arguments: str) -> Any:
                done = CliRunner().invoke(app, command(workspace, home, *arguments, "--json")[3:])
                assert done.exit_code == 0, done.output
                return json.loads(done.stdout)

            link = run("open")["link"]
            assert [httpx.get(link).status_code for _ in range(2)] == [200, 403]
            made = run("token", "create", "--access", "read", "--name", "laptop")
            reader = httpx.Client(
                base_url=told["address"], headers={"Authorization": f"Bearer {made['token']}"}
            )
            assert ask(reader, "memory.stats")["disabled"] is False
            assert [row["access"] for row in run("token", "list")] == ["admin", "read"]
            assert run("token", "revoke", made["id"]) == {"revoked": made["id"]}
            assert reader.post("/v1/agents/main/memory.stats").status_code == 401
            modes = {path.relative_to(home): stat.S_IMODE(path.stat().st_mode) for path in home.rglob("*")}
            assert {str(path) for path, mode in modes.items() if mode & 0o077} == set()
            owner.close()
            reader.close()
            assert process.poll() is None
    finally:
        os.umask(before)
    with pytest.raises(NotFound, match=r"No gateway is running\. Start one with `memoriter serve`"):
        find_running(home)


def test_a_note_of_a_gateway_that_vanishes_while_one_looks_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "gateway" / "running"
    folder.mkdir(parents=True)
    (folder / "1.json").symlink_to("gone")  # its name is seen, and then there is nothing
    with pytest.raises(NotFound, match="No gateway is running"):
        find_running(tmp_path)


def test_a_port_that_is_taken_is_told_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MemoriterError) as refused:
            listen("127.0.0.1", port)
    assert str(refused.value) == (
        f"Cannot listen on 127.0.0.1:{port}: Address already in use. Use `--port 0` to pick a free port."
    )


def test_a_process_that_has_the_number_of_a_killed_gateway_is_no_gateway(tmp_path: Path) -> None:
    folder = tmp_path / "gateway" / "running"
    folder.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
        noted = {"pid": os.getpid(), "address": address}
        (folder / f"{os.getpid()}.json").write_text(json.dumps(noted))
        assert find_running(tmp_path) == address
    with pytest.raises(NotFound):
        find_running(tmp_path)
