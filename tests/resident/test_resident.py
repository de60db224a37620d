"""The resident process, with real processes: it answers hooks and commands, and everything works without it."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import memoriter
from memoriter.resident import client

pytestmark = pytest.mark.posix("terminals, signals and Unix sockets; test_loopback.py is for all systems")

Run = Callable[..., subprocess.CompletedProcess[bytes]]

#: Processes are waited for, not timed: a busy machine may need minutes. Only a test that hangs takes as long as this.
PATIENCE_S = 600

NOTE = "# Backups\n\n- Backups run at 02:00 every night.\n- The database is PostgreSQL 16.\n"
NOTICE = (
    "memoriter: A background process now keeps the memory open, so that the next search answers fast. It ends after 30 "
    "idle minutes. To stop it, run `memoriter resident stop`.\n"
)


class Home:
    """A home with a workspace, and the command line as its owner uses it."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.path, self.workspace, self.project = folder / "home", folder / "workspace", folder / "project"
        self._run = run
        (self.workspace / "memory").mkdir(parents=True)
        self.project.mkdir()
        (self.workspace / "memory" / "backups.md").write_text(NOTE)
        self.environment = {
            **os.environ,
            "MEMORITER_HOME": str(self.path),
            "MEMORITER_WORKSPACE": str(self.workspace),
            "MEMORITER_EMBEDDING__PROVIDER": "none",
            "MEMORITER_SEARCH__RERANK": "false",
            client.WAIT: str(PATIENCE_S),
        }
        del self.environment["MEMORITER_RESIDENT__ENABLED"]

    def run(
        self, *arguments: str, data: bytes = b"", cwd: Path | None = None, **variables: str
    ) -> tuple[int, str, str]:
        """Run a command; return its status, output and errors."""
        done = self._run(list(arguments), {**self.environment, **variables}, data, cwd or self.project)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def search(self, query: str = "when do backups run", **more: Any) -> list[str]:
        """Return the places that a search finds."""
        status, output, errors = self.run("search", query, "--json", **more)
        assert (status, errors.removeprefix(NOTICE)) == (0, "")
        return [f"{hit['path']}:{hit['startLine']}" for hit in json.loads(output)["results"]]

    def hook(self, event: str = "UserPromptSubmit", *options: str, **fields: str) -> tuple[str, str]:
        """Call a hook; return the text for the prompt and the errors."""
        data = json.dumps({"session_id": "s1", "cwd": str(self.project), **fields}).encode()
        options = options or ("--deadline", str(PATIENCE_S))
        status, output, errors = self.run("hook", "claude-code", event, *options, data=data)
        assert status == 0
        return json.loads(output).get("hookSpecificOutput", {}).get("additionalContext", ""), errors

    def resident(self) -> dict[str, Any]:
        """Return what the process says about itself."""
        status, output, _ = self.run("resident", "status", "--json")
        assert status == 0
        found: dict[str, Any] = json.loads(output)
        return found

    @property
    def folder(self) -> Path:
        return self.path / "resident"

    def files(self) -> list[str]:
        """Return the files in the folder of the process."""
        return sorted(path.name for path in self.folder.iterdir())

    def is_served(self, **more: Any) -> bool:
        """Return whether the process answers a search."""
        before = self.resident()
        found = self.search(**more)
        after = self.resident()
        assert found == ["memory/backups.md:1"]
        return bool(after["running"] and after["answered"] - before.get("answered", 0) == 1)


@pytest.fixture
def home(tmp_path: Path, run_forked: Run) -> Iterator[Home]:
    home = Home(tmp_path, run_forked)
    yield home
    with suppress(client.Unavailable):
        connection = client.Connection(str(home.path), start=False, timeout_s=PATIENCE_S)
        pid = connection.ask({"operation": "stop"})["pid"]
        wait_for_end(int(str(pid)))


def wait_for_end(pid: int) -> None:
    """Wait until a process that is not our child has ended."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        select.select([descriptor], [], [])
        os.close(descriptor)


# ---- serving ---------------------------------------------------------------------------------------------------


def test_commands_and_hooks_get_the_same_answers_from_one_process(home: Home) -> None:
    off = {"MEMORITER_RESIDENT__ENABLED": "false"}
    queries = (
        ["search", "when do backups run", "--explain"],
        ["search", "数据库", "--json"],
        ["get", "nothing.md"],
    )
    alone = [home.run(*query, **off) for query in queries]
    assert not home.folder.exists()
    assert home.search() == ["memory/backups.md:1"]
    assert [home.run(*query) for query in queries] == alone
    pid = home.resident()["pid"]
    closed = f"{sys.executable} -m memoriter get memory/backups.md | true"
    done = subprocess.run(["bash", "-c", closed], env=home.environment, capture_output=True, check=True)
    assert done.stderr == b""  # a reader such as `head` may close the pipe
    text, errors = home.hook(prompt="when do backups run?")
    assert "Backups run at 02:00" in text
    assert errors == ""
    after = home.resident()
    assert (after["pid"], after["running"], after["enabled"], after["idleMinutes"]) == (pid, True, True, 30)
    folder, entry = home.folder.stat(), (home.folder / "socket").stat()
    assert (stat.S_IMODE(folder.st_mode), stat.S_IMODE(entry.st_mode)) == (0o700, 0o600)
    assert home.run("resident", "stop")[1] == f"Stopped process {pid}.\n"
    wait_for_end(pid)
    assert home.files() == ["announced"]
    assert home.run("resident", "status")[1] == "Not running; the next hook or search starts it.\n"


def test_the_first_command_of_a_home_says_once_that_a_process_stays(home: Home) -> None:
    assert home.hook(prompt="when do backups run?")[1] == ""  # hosts do not show it
    first = home.run("get", "memory/backups.md", MEMORITER_RESIDENT__IDLE_MINUTES="45")[2]
    assert first.splitlines(keepends=True)[-1] == NOTICE.replace("30", "45")
    assert [NOTICE[:40] in home.run("search", "backups")[2] for _ in range(2)] == [False, False]
    pid = home.resident()["pid"]
    home.run("resident", "stop")
    wait_for_end(pid)
    assert home.run("search", "backups")[2] == ""


def test_words_of_a_command_are_not_taken_for_a_hook(home: Home) -> None:
    (home.workspace / "memory" / "hooks.md").write_text("The hook claude-code reads each prompt.\n")
    status, output, _ = home.run("search", "hook", "claude-code", data=b'{"prompt": "x"}')
    assert (status, "The hook claude-code reads each prompt." in output) == (0, True)
    assert home.resident()["answered"] == 1


def test_a_command_is_printed_for_the_terminal_of_its_caller(home: Home) -> None:
    colour = "\x1b[1;36m"
    home.environment.pop("NO_COLOR", None)
    for variables, coloured in (({"NO_COLOR": "1"}, False), ({}, True), ({"NO_COLOR": "1"}, False)):
        output, terminal = os.openpty()
        command = [sys.executable, "-m", "memoriter", "search", "when do backups run"]
        environment = {**home.environment, "TERM": "xterm-256color", **variables}
        with subprocess.Popen(
            command, cwd=home.project, env=environment, stdin=subprocess.DEVNULL, stdout=terminal
        ) as process:
            os.close(terminal)
            text = b""
            with suppress(OSError):  # the terminal is closed
                while piece := os.read(output, 4096):
                    text += piece
        os.close(output)
        assert (process.returncode, colour in text.decode()) == (0, coloured)
    assert home.resident()["answered"] == 3


def test_a_session_that_ends_is_processed_after_the_answer(home: Home) -> None:
    transcript = home.project / "s1.jsonl"
    turn = {
        "type": "user",
        "sessionId": "s1",
        "message": {"role": "user", "content": "I prefer tabs over spaces."},
    }
    transcript.write_text(json.dumps(turn) + "\n")
    assert home.hook("Stop", transcript_path=str(transcript)) == ("", "")
    pid = home.resident()["pid"]
    home.run("resident", "stop")
    wait_for_end(pid)  # it finishes its work first
    assert "tabs over spaces" in home.run("list", MEMORITER_RESIDENT__ENABLED="false")[1]


def test_the_process_uses_the_folder_and_the_settings_of_its_caller(home: Home, tmp_path: Path) -> None:
    del home.environment["MEMORITER_WORKSPACE"]
    (tmp_path / "other" / "memory").mkdir(parents=True)
    (tmp_path / "other" / "memory" / "tea.md").write_text("# Tea\n\nBackups of tea are in the cellar.\n")
    assert home.search(cwd=home.workspace) == ["memory/backups.md:1"]
    assert home.search("where is the tea", cwd=tmp_path / "other") == ["memory/tea.md:1"]
    status, _, errors = home.run("search", "x", cwd=home.workspace, MEMORITER_SEARCH__MAX_RESULTS="many")
    assert (status, "search.max_results" in errors) == (1, True)
    assert home.is_served(cwd=home.workspace, MEMORITER_SEARCH__MIN_SCORE="0.05")
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "CLAUDE_CONFIG_DIR"):  # the last two belong to extensions
        assert not home.is_served(cwd=home.workspace, **{name: "another"})
    assert not home.is_served(cwd=home.workspace, TZ="Asia/Shanghai")


def test_clients_that_start_at_the_same_time_share_one_process(home: Home) -> None:
    command = [sys.executable, "-m", "memoriter", "search", "when do backups run", "--json"]
    clients = [
        subprocess.Popen(command, env=home.environment, cwd=home.project, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    outputs = [process.communicate()[0] for process in clients]
    assert len(set(outputs)) == 1
    assert json.loads(outputs[0])["results"][0]["path"] == "memory/backups.md"
    assert home.resident()["answered"] == 3


def test_a_home_with_a_long_path_is_served(tmp_path: Path, run_forked: Run) -> None:
    home = Home(tmp_path / ("a long name " * 12).strip(), run_forked)
    assert home.search() == ["memory/backups.md:1"]
    pid = home.resident()["pid"]
    home.run("resident", "stop")
    wait_for_end(pid)


# ---- ending ----------------------------------------------------------------------------------------------------


def test_an_idle_process_ends_and_leaves_nothing(home: Home) -> None:
    assert home.search() == ["memory/backups.md:1"]
    pid = home.resident()["pid"]
    assert home.search(MEMORITER_RESIDENT__IDLE_MINUTES="0.0001") == ["memory/backups.md:1"]
    wait_for_end(pid)
    assert home.files() == ["announced"]


def test_an_idle_process_computes_missing_vectors_before_it_ends(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = {"MEMORITER_EMBEDDING__PROVIDER": "local", "MEMORITER_RESIDENT__IDLE_MINUTES": "0.001"}
    monkeypatch.delenv("MEMORITER_RESIDENT__ENABLED", raising=False)
    for name, value in {**home.environment, **local}.items():
        monkeypatch.setenv(name, value)
    with memoriter.open(home.workspace, home=home.path) as memory:
        assert memory.sync(vectors_s=0).pending == 1
    request = {"operation": "index", "arguments": {}}
    wait_for_end(int(str(client.Connection(str(home.path)).ask(request, {})["pid"])))
    with memoriter.open(home.workspace, home=home.path) as memory:
        assert (memory.status().embedded, memory.status().chunks) == (1, 1)


def test_an_idle_process_tidies_the_entries_of_its_memories_before_it_ends(home: Home) -> None:
    file = home.project / "statements.json"
    statements = {"I live in Berlin": "2025-01-01T00:00:00Z", "I live in Munich": "2026-01-01T00:00:00Z"}
    file.write_text(json.dumps([{"memory": text, "created_at": at} for text, at in statements.items()]))
    assert home.run("import", str(file))[0] == 0
    home.search()
    pid = home.resident()["pid"]
    home.search(MEMORITER_RESIDENT__IDLE_MINUTES="0.02")
    wait_for_end(pid)
    (run,) = json.loads(home.run("tidy", "history", "--json")[1])["runs"]
    assert [(event["kind"], event["before"]["text"]) for event in run["events"]] == [
        ("supersede", "I live in Berlin")
    ]


def test_a_process_whose_package_was_replaced_makes_room_for_a_new_one(home: Home, tmp_path: Path) -> None:
    source = Path(memoriter.__file__).parent
    package = tmp_path / "installed" / "memoriter"
    shutil.copytree(
        source, package, ignore=shutil.ignore_patterns("*.onnx", "static", "__pycache__", "plugins")
    )
    environment = {**home.environment, "PYTHONPATH": str(package.parent)}

    def search() -> object:
        command = [sys.executable, "-P", "-m", "memoriter", "search", "when do backups run", "--json"]
        done = subprocess.run(command, env=environment, cwd=home.project, capture_output=True, check=True)
        return json.loads(done.stdout)["results"][0]["path"]

    def pid() -> int:
        """Return the process that serves this installation. A caller of one that is ending does the work itself."""
        command = [sys.executable, "-P", "-m", "memoriter", "resident", "status", "--json"]
        for _ in range(5):
            assert search() == "memory/backups.md"
            done = subprocess.run(command, env=environment, cwd=home.project, capture_output=True, check=True)
            if (status := json.loads(done.stdout))["running"]:
                return int(status["pid"])
        raise AssertionError("no process serves this installation")

    first = pid()
    assert not home.resident()["running"]  # this installation does not use it
    assert home.search() == ["memory/backups.md:1"]
    os.utime(package / "build.py", (1, 1))
    second = pid()
    assert second != first
    wait_for_end(first)
    os.kill(second, signal.SIGTERM)
    wait_for_end(second)


def test_switching_it_off_ends_it_until_the_settings_change(home: Home) -> None:
    assert home.search() == ["memory/backups.md:1"]
    pid = home.resident()["pid"]
    config = home.path / "config.yaml"
    config.write_text("resident:\n  enabled: false\n")
    assert home.search() == ["memory/backups.md:1"]
    wait_for_end(pid)
    assert home.search() == ["memory/backups.md:1"]
    assert home.files() == ["announced", "off"]
    assert home.run("resident", "status")[1] == f"Switched off by {config}.\n".capitalize()
    config.write_text("resident:\n  enabled: true\n")
    assert home.is_served()


# ---- failing ---------------------------------------------------------------------------------------------------


def listen(home: Home) -> socket.socket:
    """Bind a socket in the place of the process."""
    home.folder.mkdir(parents=True, mode=0o700)
    listener = socket.socket(socket.AF_UNIX)
    os.chdir(home.folder)
    listener.bind("socket")
    listener.listen()
    return listener


@pytest.mark.parametrize("identity", [client.identity(), "another version"])
def test_a_process_that_ends_during_a_request_or_is_another_version_is_not_needed(
    home: Home, identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.project)
    listener = listen(home)
    received = list[bytes]()

    def serve() -> None:
        for _ in range(2):
            stream, _ = listener.accept()
            with stream:
                stream.sendall(json.dumps({"ready": True, "identity": identity}).encode() + b"\n")
                received.append(stream.recv(1 << 20))

    thread = threading.Thread(target=serve)
    thread.start()
    assert home.search() == ["memory/backups.md:1"]
    text, _ = home.hook(prompt="when do backups run?")
    thread.join()
    listener.close()
    assert "Backups run at 02:00" in text
    assert [bool(request) for request in received] == [identity == client.identity()] * 2


def test_a_socket_without_a_process_is_replaced(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.project)
    listen(home).close()
    assert home.search() == ["memory/backups.md:1"]
    assert home.resident()["running"]


def test_a_process_that_was_killed_is_replaced(home: Home) -> None:
    home.search()
    pid = home.resident()["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)
    assert home.search() == ["memory/backups.md:1"]
    assert home.resident()["pid"] != pid


def test_a_hook_answers_in_time_while_the_process_hangs_and_the_next_client_starts_another(
    home: Home,
) -> None:
    home.search()
    pid = home.resident()["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        late = "memoriter: timed out after 0.2 s; no memory was injected\n"
        assert home.hook("UserPromptSubmit", "--deadline", "0.2", prompt="when do backups run?") == ("", late)
        assert (home.path / "hooks.log").read_text().endswith(late.removeprefix("memoriter: "))
        os.utime(home.folder / "socket", (1, 1))  # it has been hanging for long
        assert home.hook("UserPromptSubmit", "--deadline", "0.2", prompt="when do backups run?") == ("", late)
        assert home.search() == ["memory/backups.md:1"]
        assert home.resident()["pid"] != pid
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_command_does_not_wait_long_for_a_process_that_has_run_for_long_and_hangs(home: Home) -> None:
    home.search()
    pid = home.resident()["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        os.utime(home.folder / "socket", (1, 1))
        home.environment["MEMORITER_RESIDENT_WAIT_S"] = "3600"  # for a process that starts
        assert home.search() == ["memory/backups.md:1"]
        assert home.search() == ["memory/backups.md:1"]
        assert home.resident()["pid"] != pid
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_folder_that_others_can_enter_is_not_used(home: Home) -> None:
    home.folder.mkdir(parents=True)
    home.folder.chmod(0o755)
    assert home.search() == ["memory/backups.md:1"]
    assert list(home.folder.iterdir()) == []
    status, output, _ = home.run("doctor", "--json")
    found = {finding["name"]: finding["state"] for finding in json.loads(output)["findings"]}
    assert found["resident process"] == "note", (status, output)


def test_a_home_in_which_no_socket_can_be_created_is_searched_directly(home: Home) -> None:
    home.path.mkdir()
    home.folder.write_text("not a folder")
    assert home.search() == ["memory/backups.md:1"]
    text, _ = home.hook(prompt="when do backups run?")
    assert "Backups run at 02:00" in text
