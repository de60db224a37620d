"""Flush before compaction: once for each overflow, also after crashes (C3)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.errors import ChatError, WriteError
from memoriter.files import durable, edits
from memoriter.llm import NoChat
from memoriter.notes.notebook import Notebook
from memoriter.notes.summary import MARGIN_TOKENS, Flush, count_tokens, threshold
from memoriter.records import Turn
from memoriter.testing import ScriptedChat

NOW = datetime(2026, 2, 8, 10, 32, tzinfo=timezone(timedelta(hours=8)))
TALK = [
    Turn("user", "Where do we keep the backups of the orders database?", 1),
    Turn("assistant", "We will keep them in the bucket heron, every night at three.", 2),
]
HEAD = '---\ntrust: "agent"\n---\n\n# 2026-02-08\n'
MORE = [Turn("user", "From now on the backups go to the bucket stork.", 3), Turn("assistant", "Noted.", 4)]


@pytest.fixture
def log(workspace: Path) -> Path:
    return workspace / "memory/2026-02-08-agent.md"


def flush(workspace: Path, tmp_path: Path, chat: object = None, **settings: object) -> Flush:
    """Return a new object each time, as after a restart."""
    return Flush(Notebook(workspace, now=lambda: NOW), chat or NoChat(), tmp_path / "state", **settings)  # type: ignore[arg-type]


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("margin", "window", "tokens"),
    [
        (MARGIN_TOKENS, 200_000, 176_000),
        (14_000, 128_000, 114_000),
        (20_000, 128_000, 108_000),
        (1_000, 8_000, 7_000),
        (MARGIN_TOKENS, 16_000, 8_000),
        (20_000, 8_000, 4_000),
    ],
)
def test_the_threshold_depends_on_the_window(margin: int, window: int, tokens: int) -> None:
    assert threshold(window, margin) == tokens


def test_a_state_folder_that_cannot_be_created_is_an_error_of_this_package(
    workspace: Path, tmp_path: Path, log: Path
) -> None:
    (tmp_path / "state").write_text("a file is in the place of the folder")
    with pytest.raises(WriteError, match=r"flushes cannot be written \(.*exists\)\. Check the disk"):
        flush(workspace, tmp_path).write_if_due(TALK, "s", window=None)
    assert not log.exists()


@pytest.mark.requirement("C3")
def test_one_overflow_is_written_once(workspace: Path, tmp_path: Path, log: Path) -> None:
    assert flush(workspace, tmp_path).write_if_due(TALK, "s", window=128_000, tokens=103_999) is None
    saved = flush(workspace, tmp_path).write_if_due(TALK, "s", window=128_000, tokens=104_000)
    assert saved
    assert (saved.path, saved.start_line, saved.already) == ("memory/2026-02-08-agent.md", 7, False)
    text = log.read_text(encoding="utf-8")
    assert text.startswith(f"{HEAD}\n## 10:32 Where do we keep the backups of the orders\n\n")
    assert "- We will keep them in the bucket heron, every night at three.\n" in text
    for tokens in (110_000, 120_000, 104_000):
        assert (
            flush(workspace, tmp_path).write_if_due(TALK + MORE, "s", window=128_000, tokens=tokens) is None
        )
    assert log.read_text(encoding="utf-8") == text


def test_after_a_compaction_the_next_overflow_is_written_with_what_is_new(
    workspace: Path, tmp_path: Path, log: Path
) -> None:
    made = flush(workspace, tmp_path)
    made.write_if_due(TALK, "s", window=128_000, tokens=110_000)
    assert made.write_if_due(TALK[1:], "s", window=128_000, tokens=20_000) is None
    assert flush(workspace, tmp_path).write_if_due(TALK[1:] + MORE, "s", window=128_000, tokens=110_000)
    text = log.read_text(encoding="utf-8")
    assert text.count("bucket heron") == 1
    assert text.count("<!-- memoriter: flush") == 2
    assert "From now on the backups go to the bucket stork." in text


def test_sessions_have_separate_states(workspace: Path, tmp_path: Path) -> None:
    made = flush(workspace, tmp_path)
    assert made.write_if_due(TALK, "one/../x", window=128_000, tokens=110_000)
    assert made.write_if_due(MORE, "two", window=128_000, tokens=110_000)
    assert made.write_if_due(TALK, "one/../x", window=128_000, tokens=110_000) is None


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("word " * 8_000, 10_004), ("数据库备份" * 2_000, 10_004)],
    ids=["english", "chinese"],
)
def test_tokens_are_counted_in_both_languages(
    workspace: Path, tmp_path: Path, text: str, tokens: int
) -> None:
    talk = [Turn("user", text, 1)]
    assert abs(count_tokens(talk) - tokens) < 10
    decided = [Turn("user", "We decided to keep the backups in heron. 备份放到 heron。", 2)]
    assert flush(workspace, tmp_path, margin_tokens=1_000).write_if_due(talk + decided, "s", window=11_000)
    assert not flush(workspace, tmp_path, margin_tokens=1_000).write_if_due(
        talk + decided, "t", window=12_000
    )


@pytest.mark.parametrize("crash_at", [1, 2, 3])
def test_after_a_crash_the_next_call_leaves_exactly_one_section(
    workspace: Path, tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch, crash_at: int
) -> None:
    """1: before the state is stored, 2: before the log is written, 3: after the log, before the state is updated."""
    calls = 0

    def dying(write: Callable[..., bool]) -> Callable[..., bool]:
        def dies(*arguments: object, **more: object) -> bool:
            nonlocal calls
            calls += 1
            if calls == crash_at:
                raise WriteError("the power is gone")
            return write(*arguments, **more)

        return dies

    with monkeypatch.context() as patched:
        patched.setattr(edits, "update", dying(edits.update))  # the log
        patched.setattr(durable, "write", dying(durable.write))  # the state
        with pytest.raises(WriteError):
            flush(workspace, tmp_path).write_if_due(TALK, "s", window=128_000, tokens=110_000)
    assert calls == crash_at
    assert flush(workspace, tmp_path).write_if_due(TALK, "s", window=128_000, tokens=111_000)
    assert flush(workspace, tmp_path).write_if_due(TALK, "s", window=128_000, tokens=112_000) is None
    assert log.read_text(encoding="utf-8").count("## 10:32") == 1


def test_a_failing_model_is_reported_and_not_needed(workspace: Path, tmp_path: Path, log: Path) -> None:
    chat = ScriptedChat(ChatError("scripted/chat is down"))
    saved = flush(workspace, tmp_path, chat).write_if_due(TALK, "s", window=128_000, tokens=110_000)
    assert saved
    assert saved.note == "Summarised without a language model: scripted/chat is down"
    assert "bucket heron" in log.read_text(encoding="utf-8")


def test_a_configured_model_writes_the_text(workspace: Path, tmp_path: Path, log: Path) -> None:
    chat = ScriptedChat(json.dumps({"title": "备份", "summary": "", "decisions": ["备份放到 heron。"]}))
    saved = flush(workspace, tmp_path, chat).write_if_due(TALK, "s", window=128_000, tokens=110_000)
    assert saved
    assert "## 10:32 备份\n\n### 决定\n\n- 备份放到 heron。\n" in log.read_text(encoding="utf-8")


def test_the_log_of_the_owner_is_not_changed(workspace: Path, tmp_path: Path, log: Path) -> None:
    """The words of an agent must not become words of the owner."""
    own = workspace / "memory/2026-02-08.md"
    own.write_bytes(b"My own notes\r\nof the day")
    flush(workspace, tmp_path).write_if_due(TALK, "s", window=128_000, tokens=110_000)
    assert own.read_bytes() == b"My own notes\r\nof the day"
    assert log.read_text(encoding="utf-8").startswith(HEAD)


def test_an_interrupted_flush_goes_to_the_log_of_its_day(
    workspace: Path, tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = edits.update

    def dies_after_the_log(path: Path, change: edits.Change, **more: float) -> bool:
        done = real(path, change, **more)
        if path == log:
            raise WriteError("the power is gone")
        return done

    monkeypatch.setattr(edits, "update", dies_after_the_log)
    with pytest.raises(WriteError):
        flush(workspace, tmp_path).write_if_due(TALK, "s", window=128_000, tokens=110_000)
    monkeypatch.setattr(edits, "update", real)
    later = flush(workspace, tmp_path)
    later.notebook.now = lambda: NOW + timedelta(days=1)
    saved = later.write_if_due(TALK, "s", window=128_000, tokens=111_000)
    assert saved
    assert (saved.path, saved.already) == ("memory/2026-02-08-agent.md", True)


def test_states_of_old_sessions_are_pruned(
    open_memory: Callable[..., Memory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoriter.notes.summary.MAX_SESSIONS", 3)
    folder = tmp_path / "state" / "agents" / "main" / "flushes"
    talk = [{"role": "user", "content": "We decided to release on Monday."}]
    memory = open_memory(cleanup__ledger_days=30)
    marks = dict[str, Path]()
    for age, session in enumerate(("new", "week", "month", "quarter", "year")):
        memory.flush(talk, session, window=None)
        (mark,) = set(folder.glob("*.json")) - set(marks.values())
        marks[session] = mark
        written = time.time() - (0, 7, 29, 90, 365)[age] * 86_400
        os.utime(mark, (written, written))
    memory.maintain()
    # Only Windows deletes a lock file that is released.
    assert {path.stem for path in folder.iterdir()} == {marks[name].stem for name in ("new", "week", "month")}
    monkeypatch.setattr("memoriter.notes.summary.MAX_SESSIONS", 1)
    memory = open_memory(cleanup__ledger_days=30)
    memory.maintain()
    assert sorted(folder.glob("*.json")) == [marks["new"]]
    assert memory.flush(talk, "new", window=None) is None
