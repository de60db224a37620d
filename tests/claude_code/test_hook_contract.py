"""What a host may rely on, whatever happens: one answer on standard output, in its form and in time, and exit 0."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_claude_code import SESSION, ClaudeCode, Ran, Run, is_form, until
from hypothesis import given, settings
from hypothesis import strategies as st

EXAMPLES = 600 if os.environ.get("MEMORITER_SOAK") else 20
EVENTS = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "PreCompact"]
LATE = "timed out after {} s; no memory was injected"
LATE_SESSION = "timed out after 0.05 s; the session is processed in the background"
NOT_OURS = ["PreToolUse", "SubagentStop", "Notification", "", "stop", "../Stop"]

words = st.text(max_size=40) | st.sampled_from(
    ["/", "/dev/zero", "/proc/self/mem", "\0", "..", "~nobody", "\ud800"]
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
    """Runs hooks with any arguments and any input, all over one home."""
    claude = ClaudeCode(tmp_path_factory.mktemp("anything"))
    return lambda arguments, data: forked(
        ["hook", *arguments, "--deadline", "10"], data, claude.environment, claude.project
    )


def is_answer(ran: Ran, event: str = "") -> bool:
    return ran.code == 0 and is_form(event, ran.output)


@settings(max_examples=EXAMPLES, deadline=None)
@given(event=st.sampled_from(EVENTS + NOT_OURS), said=objects | values)
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
    ids=["nothing", "half", "list", "null", "deep", "no utf-8", "nul", "deep objects"],
)
def test_what_is_no_event_gets_an_empty_answer(anything: Callable[..., Ran], data: bytes) -> None:
    ran = anything(["claude-code", "UserPromptSubmit"], data)
    assert (ran.code, ran.output) == (0, b"{}\n")


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_is_answered(claude: ClaudeCode, event: str) -> None:
    _is_answered(claude, event)


@pytest.mark.parametrize(
    "event", ["SessionStart", "SessionEnd"]
)  # one that is told something, one that is heard
def test_events_are_answered_by_the_real_process(real_claude: ClaudeCode, event: str) -> None:
    _is_answered(real_claude, event)


def _is_answered(host: ClaudeCode, event: str) -> None:
    host.say("I prefer tabs in Go code.")
    more = {"SessionStart": {"source": "startup"}, "UserPromptSubmit": {"prompt": "Tabs or spaces in Go?"}}
    answered = host.hook(event, "--deadline", "20", "--wait", **more.get(event, {}))
    told = answered.answer.get("hookSpecificOutput", {})
    assert told.get("hookEventName", event) == event
    assert (event == "SessionStart") == bool(answered.told)
    assert answered.stderr == ""
    assert host.waiting() == []


@pytest.mark.parametrize("data", [b"{", b"{}"])
def test_before_a_compaction_nothing_is_printed(claude: ClaudeCode, data: bytes) -> None:
    """Claude Code would hand it to the model as instructions for the summary."""
    for more in ([], ["--wait"], ["--deadline", "0.05"]):
        ran = claude.run(
            ["hook", "claude-code", "PreCompact", *more], data, claude.environment, claude.project
        )
        assert (ran.code, ran.output) == (0, b"")


def test_a_session_in_which_nothing_was_said_is_no_trouble(claude: ClaudeCode) -> None:
    """`claude mcp list` ends one, without a transcript."""
    assert claude.hook("SessionEnd", "--deadline", "20", reason="other").stderr == ""
    assert claude.hook("SessionEnd", "--deadline", "20", transcript_path="").stderr != ""
    assert claude.log().count("there is no transcript to process") == 1


def test_wrong_usage_does_not_stop_the_host(claude: ClaudeCode) -> None:
    """Exit 2 would: Claude Code takes it for a veto."""
    done = subprocess.run(
        [sys.executable, "-m", "memoriter", "--bogus", "hook", "nobody", "Stop", "--what"],
        input=b"{}",
        capture_output=True,
        env=claude.environment,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"{}\n")
    assert b"Unknown host 'nobody'. Supported: claude-code." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        (
            ["--workspace", "hook", "claude-code", "Stop"],
            "ignored unknown arguments: --workspace without a value",
        ),
        (
            ["--log-level", "debug", "hook", "claude-code", "Stop"],
            "ignored unknown arguments: --log-level, debug",
        ),
        (["--workspace", "/my", "notes", "hook", "claude-code", "Stop"], "ignored unknown arguments: notes"),
        (["--bogus", "hook", "claude-code", "Stop", "--help"], "ignored unknown arguments: --bogus, --help"),
    ],
)
def test_claude_code_is_answered_whatever_stands_beside(
    claude: ClaudeCode, arguments: list[str], mistake: str
) -> None:
    ran = claude.run(arguments, b"{}", claude.environment, claude.project)
    assert (ran.code, ran.output) == (0, b"{}\n")
    assert mistake in ran.error.decode().splitlines()[0]


def test_help_is_still_given(claude: ClaudeCode) -> None:
    whole = claude.run(["--help"], b"", claude.environment, claude.project)
    ours = claude.run(["hook", "--help"], b"", claude.environment, claude.project)
    assert (whole.code, b"\n  hook " in whole.output) == (0, True)
    assert (ours.code, b"--deadline" in ours.output) == (0, True)


def test_a_program_that_runs_the_app_gets_the_same_hook(real_claude: ClaudeCode, tmp_path: Path) -> None:
    real_claude.say("I prefer tabs in Go code.")
    elsewhere = ClaudeCode(tmp_path / "elsewhere")
    script = "from memoriter.cli.app import app; app()"
    places = ["--home", str(elsewhere.home), "--workspace", str(elsewhere.workspace)]
    called = ["hook", "claude-code", "Stop", "--wait", "--deadline", "20"]
    done = subprocess.run(
        [sys.executable, "-c", script, *places, *called],
        input=json.dumps(real_claude.event("Stop")).encode(),
        capture_output=True,
        env=real_claude.environment,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}\n", b"")
    assert (real_claude.home.exists(), elsewhere.learned()) == (False, ["I prefer tabs in Go code."])


def test_where_there_are_no_forks_a_thread_does_it(real_claude: ClaudeCode) -> None:
    real_claude.say("I prefer tabs in Go code.")
    script = "import os, sys; del os.fork; from memoriter.cli import main; main()"

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
    assert real_claude.learned() == ["I prefer tabs in Go code."]
    assert run("--deadline", "0.05") == (0, b"{}\n")
    assert run(said=b"[") == (0, b"{}\n")


# ---- time -----------------------------------------------------------------------------------------------------


def test_what_has_no_answer_in_time_is_heard_all_the_same(real_claude: ClaudeCode) -> None:
    real_claude.say("I prefer tabs in Go code.")
    answered = real_claude.hook("SessionEnd", "--deadline", "0.05")
    assert answered.answer == {}
    assert answered.stderr == f"memoriter: {LATE_SESSION}\n"
    until(lambda: f"WARNING memoriter.hooks: claude-code SessionEnd: {LATE_SESSION}\n" in real_claude.log())
    until(lambda: list((real_claude.home / "agents" / "main" / "hooks").glob("*.json")))
    until(lambda: not real_claude.waiting())
    assert real_claude.learned() == ["I prefer tabs in Go code."]


def test_who_waits_for_all_waits_for_what_is_late_too(real_claude: ClaudeCode) -> None:
    real_claude.say("I prefer tabs in Go code.")
    assert real_claude.hook("Stop", "--deadline", "0.05", "--wait").answer == {}
    assert (real_claude.waiting(), real_claude.learned()) == ([], ["I prefer tabs in Go code."])


def test_a_host_that_never_ends_its_input_is_answered_in_time(claude: ClaudeCode) -> None:
    command = [sys.executable, "-m", "memoriter", "hook", "claude-code", "Stop", "--deadline", "0.3"]
    begun = time.monotonic()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=claude.environment
    ) as hook:
        assert hook.stdout is not None
        assert hook.stdout.read() == b"{}\n"
        assert time.monotonic() - begun < 10
        assert hook.wait() == 0
        assert hook.stdin is not None
        hook.stdin.close()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
@pytest.mark.parametrize("what", ["the child crashes", "the host ends the hook"])
def test_a_crash_or_an_end_is_answered_too(claude: ClaudeCode, what: str) -> None:
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
        until(children.read_text)
        child = int(children.read_text().split()[0])
        if what == "the child crashes":
            os.kill(child, signal.SIGSEGV)
        else:
            until(lambda: _catches(hook.pid, signal.SIGTERM))
            hook.terminate()
        assert hook.stdout is not None
        assert hook.stdout.read() == b"{}\n"
        assert hook.wait() == 0
    reason = "ended without an answer" if what == "the child crashes" else "ended the hook (signal 15)"
    assert claude.log().count(reason) == 1
    until(lambda: not Path(f"/proc/{child}").exists() or "Z" in _state(child))


def _catches(pid: int, number: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return bool(caught >> (number - 1) & 1)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return "Z"


def test_a_busy_store_does_not_hold_up_the_prompt(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code.")
    claude.heard()
    with _locked(claude):
        answered = claude.hook("UserPromptSubmit", "--deadline", "1.5", prompt="Do I prefer tabs?")
    assert answered.answer == {}
    assert answered.stderr == f"memoriter: {LATE.format(1.5)}\n"
    assert answered.seconds < 10
    assert claude.log().endswith(
        f"WARNING memoriter.hooks: claude-code UserPromptSubmit: {LATE.format(1.5)}\n"
    )


class _locked:
    """Hold the store of entries as a busy writer does."""

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
        ("plugins: {slots: {memory: somebody-elses}}", "somebody-elses"),
    ],
    ids=["disabled", "wrong value", "no yaml", "unknown plugin"],
)
def test_without_memory_the_answer_is_empty_and_the_reason_is_told(
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


def test_a_broken_store_gives_an_empty_answer_and_keeps_what_was_said_for_later(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code.")
    store = claude.home / "agents" / "main" / "memory.db"
    store.parent.mkdir(parents=True)
    store.write_bytes(b"this is no database, and nobody may overwrite it" * 100)
    assert claude.hook("UserPromptSubmit", "--deadline", "20", prompt="Tabs in Go?").answer == {}
    assert claude.heard().answer == {}
    assert len(claude.waiting()) == 1
    assert "memory.db" in claude.log()
    store.unlink()
    claude.heard(session="another")
    assert claude.learned() == ["I prefer tabs in Go code."]


def test_a_session_that_a_hook_has_started_is_neither_told_nor_heard(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code.")
    claude.environment["MEMORITER_INSIDE_HOOK"] = "1"
    answered = [claude.heard(event, prompt="Tabs?", source="startup") for event in EVENTS]
    assert [one.answer for one in answered] == [{}] * 5
    del claude.environment["MEMORITER_INSIDE_HOOK"]
    assert claude.learned() == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_log_without_room_is_one_sentence_on_standard_error(claude: ClaudeCode) -> None:
    claude.home.mkdir()
    (claude.home / "hooks.log").symlink_to("/dev/full")
    answered = claude.hook("Nonsense")
    assert (answered.answer, answered.stderr.count("\n")) == ({}, 1)
    assert "Logging error" not in answered.stderr


def test_only_the_owner_can_read_what_hooks_leave_behind(real_claude: ClaudeCode) -> None:
    real_claude.say("I prefer tabs in Go code.")
    before = os.umask(0)
    try:
        real_claude.heard()
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(real_claude.home)): path.stat().st_mode & 0o077
        for path in real_claude.home.rglob("*")
    }
    assert {name: mode for name, mode in modes.items() if mode} == {}
    assert SESSION not in "".join(modes)
