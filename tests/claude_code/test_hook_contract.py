"""The contract of hooks: one valid answer on standard output, in time, and exit status 0."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_claude_code import SESSION, ClaudeCode, Ran, Run, is_valid_output, wait_until
from hypothesis import given, settings
from hypothesis import strategies as st

from memoriter.agent import Agent
from memoriter.config import Settings
from memoriter.errors import MemoriterError
from memoriter.files import platform
from memoriter.hosts import HookRequest, find_host

EXAMPLES = 600 if os.environ.get("MEMORITER_SOAK") else 20
EVENTS = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "PreCompact"]
LATE = "timed out after {} s; no memory was injected"
LATE_SESSION = "timed out after 0.05 s; the session is processed in the background"
OTHER_EVENTS = ["PreToolUse", "SubagentStop", "Notification", "", "stop", "../Stop"]

words = st.text(max_size=40) | st.sampled_from(
    ["/", "/dev/zero", "/proc/self/mem", "\0", "..", "~unknown-user", "\ud800"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
NAMES = ["session_id", "transcript_path", "cwd", "hook_event_name", "prompt", "source", "stop_hook_active"]
objects = st.dictionaries(st.sampled_from(NAMES) | words, values | words, max_size=8)


@pytest.fixture(scope="module")
def anything(tmp_path_factory: pytest.TempPathFactory, forked: Run) -> Callable[..., Ran]:
    """Run hooks with any arguments and any input, all with one home."""
    claude = ClaudeCode(tmp_path_factory.mktemp("anything"))
    return lambda arguments, data: forked(
        ["hook", *arguments, "--deadline", "10"], data, claude.environment, claude.project
    )


def is_answer(ran: Ran, event: str = "") -> bool:
    return ran.code == 0 and is_valid_output(event, ran.output)


@settings(max_examples=EXAMPLES, deadline=None)
@given(event=st.sampled_from(EVENTS + OTHER_EVENTS), said=objects | values)
def test_any_json_is_answered(anything: Callable[..., Ran], event: str, said: object) -> None:
    data = json.dumps(said).encode("utf-8", "surrogatepass")
    assert is_answer(anything(["claude-code", event], data), event)


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(data=st.binary(max_size=200), more=st.lists(words.filter(lambda word: "\0" not in word), max_size=3))
def test_any_bytes_and_any_arguments_are_answered(
    anything: Callable[..., Ran], data: bytes, more: list[str]
) -> None:
    usable = [word for word in more if word not in ("-h", "--help") and word.isprintable()]
    assert is_answer(anything(usable, data))


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"[" * 200_000, b'{"prompt": "\xff"}', b"\x00", b'{"a": ' * 50_000],
    ids=["empty", "truncated", "list", "null", "deep", "invalid utf-8", "nul", "deep objects"],
)
def test_input_that_is_not_an_event_gets_an_empty_answer(anything: Callable[..., Ran], data: bytes) -> None:
    ran = anything(["claude-code", "UserPromptSubmit"], data)
    assert (ran.code, ran.output) == (0, b"{}\n")


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_is_answered(claude: ClaudeCode, event: str) -> None:
    _is_answered(claude, event)


@pytest.mark.parametrize("event", ["SessionStart", "SessionEnd"])  # one with text for the prompt, one without
def test_events_are_answered_by_the_real_process(real_claude: ClaudeCode, event: str) -> None:
    _is_answered(real_claude, event)


def _is_answered(claude: ClaudeCode, event: str) -> None:
    claude.say("I prefer tabs in Go code.")
    more = {"SessionStart": {"source": "startup"}, "UserPromptSubmit": {"prompt": "Tabs or spaces in Go?"}}
    answered = claude.hook(event, "--deadline", "20", "--wait", **more.get(event, {}))
    output = answered.answer.get("hookSpecificOutput", {})
    assert output.get("hookEventName", event) == event
    assert (event == "SessionStart") == bool(answered.context)
    assert answered.stderr == ""
    assert claude.waiting() == []


@pytest.mark.parametrize("data", [b"{", b"{}"])
def test_pre_compact_prints_nothing(claude: ClaudeCode, data: bytes) -> None:
    """Claude Code would pass it to the model as instructions for the summary."""
    for more in ([], ["--wait"], ["--deadline", "0.05"]):
        ran = claude.run(
            ["hook", "claude-code", "PreCompact", *more], data, claude.environment, claude.project
        )
        assert (ran.code, ran.output) == (0, b"")


def test_a_session_without_a_transcript_logs_nothing(claude: ClaudeCode) -> None:
    """`claude mcp list` ends such a session."""
    assert claude.hook("SessionEnd", "--deadline", "20", reason="other").stderr == ""
    assert claude.hook("SessionEnd", "--deadline", "20", transcript_path="").stderr != ""
    assert claude.log().count("there is no transcript to process") == 1


def test_wrong_usage_does_not_stop_the_host(claude: ClaudeCode) -> None:
    """Claude Code treats exit status 2 as a veto."""
    done = subprocess.run(
        [sys.executable, "-m", "memoriter", "--bogus", "hook", "other-host", "Stop", "--what"],
        input=b"{}",
        capture_output=True,
        env=claude.environment,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"{}\n")
    assert b"Unknown host 'other-host'. Available: claude-code, claude-desktop, codex, " in done.stderr


def test_unknown_options_are_logged_and_the_hook_still_answers(claude: ClaudeCode) -> None:
    arguments = ["--bogus", "hook", "claude-code", "Stop", "--help", "--workspace"]
    ran = claude.run(arguments, b"{}", claude.environment, claude.project)
    assert (ran.code, ran.output) == (0, b"{}\n")
    mistake = "ignored unknown arguments: --bogus, --help, --workspace"
    assert mistake in ran.error.decode().splitlines()[0]


@pytest.mark.parametrize(
    "options",
    [["--workspace"], ["--log-level", "debug"], ["--workspace", "/my", "notes"]],
    ids=["a missing value", "an unknown option", "a path without quotes"],
)
def test_a_wrong_command_line_in_which_a_host_calls_a_hook_does_not_stop_the_host(
    claude: ClaudeCode, options: list[str]
) -> None:
    """Claude Code shows the message of exit status 1 to the user, and goes on."""
    arguments = [*options, "hook", "claude-code", "Stop"]
    ran = claude.run(arguments, b"{}", claude.environment, claude.project)
    assert (ran.code, ran.output) == (1, b"")
    assert ran.error.decode().splitlines()[-1].startswith("Error: No such ")


def test_help_is_printed(claude: ClaudeCode) -> None:
    top = claude.run(["--help"], b"", claude.environment, claude.project)
    hook = claude.run(["hook", "--help"], b"", claude.environment, claude.project)
    assert (top.code, b"\n  hook " in top.output) == (0, True)
    assert (hook.code, b"--deadline" in hook.output) == (0, True)


def test_a_program_that_runs_the_app_gets_the_same_hook(real_claude: ClaudeCode, tmp_path: Path) -> None:
    real_claude.say("I prefer tabs in Go code.")
    other = ClaudeCode(tmp_path / "other")
    script = "from memoriter.cli.app import app; app()"
    places = ["--home", str(other.home), "--workspace", str(other.workspace)]
    called = ["hook", "claude-code", "Stop", "--wait", "--deadline", "20"]
    done = subprocess.run(
        [sys.executable, "-c", script, *places, *called],
        input=json.dumps(real_claude.event("Stop")).encode(),
        capture_output=True,
        env=real_claude.environment,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}\n", b"")
    assert (real_claude.home.exists(), other.entries()) == (False, ["I prefer tabs in Go code."])


def test_without_fork_a_thread_does_the_work(real_claude: ClaudeCode) -> None:
    real_claude.say("I prefer tabs in Go code.")
    script = "import os, sys; vars(os).pop('fork', None); from memoriter.cli import main; main()"

    def run(*arguments: str, said: bytes | None = None) -> tuple[int, bytes]:
        data = json.dumps(real_claude.event("Stop")).encode() if said is None else said
        done = subprocess.run(
            [sys.executable, "-c", script, "hook", "claude-code", "Stop", *arguments],
            input=data,
            capture_output=True,
            env=real_claude.environment,
            check=False,
        )
        return done.returncode, done.stdout

    assert run("--wait", "--deadline", "20") == (0, b"{}\n")
    assert real_claude.entries() == ["I prefer tabs in Go code."]
    assert run("--deadline", "0.05") == (0, b"{}\n")
    assert len(real_claude.waiting()) == 1, "a late hook has queued its session"
    assert run(said=b"[") == (0, b"{}\n")


def test_hooks_that_name_a_workspace_use_the_server_that_was_set_later(tmp_path: Path) -> None:
    opened = []

    def open_agent(settings: Settings) -> Agent:
        opened.append((settings.origin("workspace"), settings.workspace.is_relative_to(tmp_path / "home")))
        raise MemoriterError("no server here")

    environ = {
        "MEMORITER_HOME": str(tmp_path / "home"),
        "MEMORITER_STORE__URL": "postgresql://db.invalid/memory",
    }
    arguments = ["hook", "claude-code", "SessionStart", "--workspace", str(tmp_path / "notes")]
    data = json.dumps(
        {"hook_event_name": "SessionStart", "session_id": SESSION, "cwd": str(tmp_path)}
    ).encode()
    answer = find_host("claude-code").answer_in_process(
        HookRequest(arguments, data, 20.0, environ, open_agent)
    )
    assert (opened, answer.errors) == ([("store.url", True)], "memoriter: no server here")


# ---- deadlines ------------------------------------------------------------------------------------------------


@pytest.mark.posix("a forked process that continues the work")
def test_a_session_is_processed_even_if_the_hook_misses_its_deadline(real_claude: ClaudeCode) -> None:
    real_claude.say("I prefer tabs in Go code.")
    answered = real_claude.hook("SessionEnd", "--deadline", "0.05")
    assert answered.answer == {}
    assert answered.stderr == f"memoriter: {LATE_SESSION}\n"
    wait_until(
        lambda: f"WARNING memoriter.hooks: claude-code SessionEnd: {LATE_SESSION}\n" in real_claude.log()
    )
    wait_until(lambda: list((real_claude.home / "agents" / "main" / "hooks").glob("*.json")))
    wait_until(lambda: not real_claude.waiting())
    assert real_claude.entries() == ["I prefer tabs in Go code."]


def test_wait_includes_work_that_misses_the_deadline(real_claude: ClaudeCode) -> None:
    real_claude.say("I prefer tabs in Go code.")
    assert real_claude.hook("Stop", "--deadline", "0.05", "--wait").answer == {}
    assert (real_claude.waiting(), real_claude.entries()) == ([], ["I prefer tabs in Go code."])


def test_a_host_that_never_closes_standard_input_gets_an_answer_in_time(claude: ClaudeCode) -> None:
    command = [sys.executable, "-m", "memoriter", "hook", "claude-code", "Stop", "--deadline", "0.3"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=claude.environment
    ) as hook:
        assert hook.stdout is not None
        assert hook.stdout.read() == b"{}\n"
        assert hook.wait() == 0
        assert hook.stdin is not None
        hook.stdin.close()


@pytest.mark.posix("a forked process")
@pytest.mark.skipif(not Path("/proc").exists(), reason="children are found in /proc")
@pytest.mark.parametrize("what", ["the child crashes", "the host ends the hook"])
def test_a_crash_or_a_signal_gets_an_answer(claude: ClaudeCode, what: str) -> None:
    command = [
        sys.executable,
        "-m",
        "memoriter",
        "hook",
        "claude-code",
        "UserPromptSubmit",
        "--deadline",
        "30",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=claude.environment
    ) as hook:
        children = Path(f"/proc/{hook.pid}/task/{hook.pid}/children")
        wait_until(children.read_text)
        child = int(children.read_text().split()[0])
        if what == "the child crashes":
            os.kill(child, signal.SIGSEGV)
        else:
            wait_until(lambda: _catches(hook.pid, signal.SIGTERM))
            hook.terminate()
        assert hook.stdout is not None
        assert hook.stdout.read() == b"{}\n"
        assert hook.wait() == 0
    reason = "ended without an answer" if what == "the child crashes" else "ended the hook (signal 15)"
    assert claude.log().count(reason) == 1
    wait_until(lambda: not Path(f"/proc/{child}").exists() or "Z" in _state(child))


def _catches(pid: int, number: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return bool(caught >> (number - 1) & 1)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return "Z"


def test_a_busy_store_does_not_delay_the_prompt(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code.")
    claude.process()
    with _locked(claude):
        answered = claude.hook("UserPromptSubmit", "--deadline", "1.5", prompt="Do I prefer tabs?")
    assert answered.answer == {}
    # Without a forked process, the warning of the log is printed too.
    assert answered.stderr.splitlines()[0] == f"memoriter: {LATE.format(1.5)}"
    assert answered.seconds < 10
    assert claude.log().endswith(
        f"WARNING memoriter.hooks: claude-code UserPromptSubmit: {LATE.format(1.5)}\n"
    )


class _locked:
    """Lock the store of entries as a busy writer does."""

    def __init__(self, claude: ClaudeCode) -> None:
        self.connection = sqlite3.connect(claude.home / "agents" / "main" / "memory.db", isolation_level=None)

    def __enter__(self) -> None:
        self.connection.execute("begin immediate")

    def __exit__(self, *_: object) -> None:
        self.connection.execute("rollback")
        self.connection.close()


# ---- no memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("plugins: {slots: {memory: none}}", "memory is switched off"),
        ("memory: {max_injected_chars: many}", "max_injected_chars"),
        ("][", "config.yaml"),
        ("plugins: {slots: {memory: unknown-plugin}}", "unknown-plugin"),
    ],
    ids=["disabled", "wrong value", "invalid yaml", "unknown plugin"],
)
def test_without_memory_the_answer_is_empty_and_the_reason_is_logged(
    claude: ClaudeCode, config: str, reason: str
) -> None:
    claude.say("I prefer tabs in Go code.")
    claude.home.mkdir(exist_ok=True)
    (claude.home / "config.yaml").write_text(config)
    for event in ("UserPromptSubmit", "Stop"):
        answered = claude.hook(event, "--deadline", "20", prompt="Tabs?")
        assert answered.answer == {}
        assert reason in answered.stderr
    assert claude.log().count(reason) >= 2
    assert claude.waiting() == []
    assert not (claude.home / "agents" / "main" / "memory.db").exists()


def test_with_a_broken_store_the_answer_is_empty_and_the_session_stays_queued(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code.")
    store = claude.home / "agents" / "main" / "memory.db"
    store.parent.mkdir(parents=True)
    store.write_bytes(b"not a database, and not to be overwritten" * 100)
    assert claude.hook("UserPromptSubmit", "--deadline", "20", prompt="Tabs in Go?").answer == {}
    assert claude.process().answer == {}
    assert len(claude.waiting()) == 1
    assert "memory.db" in claude.log()
    store.unlink()
    claude.process(session="another")
    assert claude.entries() == ["I prefer tabs in Go code."]


def test_a_session_started_by_a_hook_is_ignored(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code.")
    claude.environment["MEMORITER_INSIDE_HOOK"] = "1"
    answered = [claude.process(event, prompt="Tabs?", source="startup") for event in EVENTS]
    assert [answer.answer for answer in answered] == [{}] * 5
    del claude.environment["MEMORITER_INSIDE_HOOK"]
    assert claude.entries() == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_the_log_is_one_sentence_on_standard_error(claude: ClaudeCode) -> None:
    claude.home.mkdir()
    (claude.home / "hooks.log").symlink_to("/dev/full")
    answered = claude.hook("Nonsense")
    assert (answered.answer, answered.stderr.count("\n")) == ({}, 1)
    assert "Logging error" not in answered.stderr


def test_files_written_by_hooks_are_readable_only_by_their_owner(real_claude: ClaudeCode) -> None:
    real_claude.say("I prefer tabs in Go code.")
    before = os.umask(0)
    try:
        real_claude.process()
    finally:
        os.umask(before)
    if sys.platform == "win32":
        assert platform.is_private(real_claude.home)
        return
    modes = {
        str(path.relative_to(real_claude.home)): path.stat().st_mode & 0o077
        for path in real_claude.home.rglob("*")
    }
    assert {name: mode for name, mode in modes.items() if mode} == {}
    assert SESSION not in "".join(modes)
