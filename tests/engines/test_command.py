"""The qmd program: every query is one argument, and output of any other form is an error."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from standin import StandIn

from memoriter.errors import EngineError
from memoriter.extensions.qmd import command
from memoriter.extensions.qmd.collections import Collection, collections_of
from memoriter.extensions.qmd.command import (
    Qmd,
    Row,
    UpdateCounts,
    any_of,
    as_argument,
    both_legs,
    locate,
    parse,
)
from memoriter.notes.workspace import Workspace


@pytest.fixture(scope="module")
def printer(tmp_path_factory: pytest.TempPathFactory) -> tuple[StandIn, Qmd]:
    """A fake program that records its arguments, called as the real one."""
    folder = tmp_path_factory.mktemp("printer")
    standin = StandIn.make(folder / "bin")
    (folder / "config").mkdir()
    (folder / "config" / "index.yml").write_text('{"collections": {"memory": {}, "sessions": {}}}')
    return standin, Qmd([str(standin.command)], folder)


HOSTILE = ["--help", "-c", "--index=/etc/passwd", "-n 99 -c all", "--", "-", "; rm -rf ~", "$(id)", "`id`", "a\0b",
           "\ud800", "lex: x\nvec: y", "'\"", "*", "help", "\x1b[2J", "--json --help", "=",
           "数据库 --help"]  # fmt: skip


@given(st.text(max_size=200))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_text_reaches_qmd_as_exactly_one_argument(printer: tuple[StandIn, Qmd], text: str) -> None:
    assert_one_argument(printer, text)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_query_that_looks_like_a_flag_reaches_qmd_as_one_argument(
    printer: tuple[StandIn, Qmd], text: str
) -> None:
    assert_one_argument(printer, text)


def assert_one_argument(printer: tuple[StandIn, Qmd], text: str) -> None:
    standin, qmd = printer
    asked = as_argument(text)
    if not asked:
        return
    qmd.find("search", asked, ["memory"], limit=3, timeout_s=20)
    assert standin.calls()[-1] == ["search", "--json", "-n", "3", "-c", "memory", "--", asked]


@given(st.text())
@example("- -- --- -a")
def test_an_argument_is_one_line_without_leading_hyphens_and_keeps_its_words(text: str) -> None:
    asked = as_argument(text)
    assert not any(word.startswith("-") for word in asked.split())
    assert "\0" not in asked
    assert "\n" not in asked
    asked.encode("utf-8")
    if text.isascii() and "-" not in text and "\0" not in text:
        assert asked.split() == text.split()
    assert as_argument(asked) == asked


def test_a_very_long_query_is_truncated() -> None:
    assert len(as_argument("word " * 10_000)) <= command.MAX_QUERY_CHARS


def test_queries_for_any_word_and_for_both_legs() -> None:
    assert any_of(["backup", "-night"]) == "lex: backup\nlex: night"
    assert both_legs("the backup") == "lex: the backup\nvec: the backup"


def test_each_mode_and_collection_is_a_flag_before_the_query(printer: tuple[StandIn, Qmd]) -> None:
    standin, qmd = printer
    qmd.find("query", "lex: x", ["memory", "sessions"], limit=2, timeout_s=20)
    expected = ["query", "--json", "-n", "2", "--no-rerank", "-c", "memory", "-c", "sessions", "--", "lex: x"]
    assert standin.calls()[-1] == expected


def test_each_agent_has_its_own_environment(tmp_path: Path, standin: StandIn) -> None:
    environ = {"PATH": "/usr/bin", "HOME": "/h", "CI": "1", "OPENAI_API_KEY": "secret", "QMD_FORCE_CPU": "1"}
    Qmd([str(standin.command)], tmp_path, environ).version()
    seen = standin.environments()[-1]
    seen.pop("LC_CTYPE", None)  # added by Python
    assert seen == {
        "PATH": "/usr/bin",
        "HOME": "/h",
        "QMD_FORCE_CPU": "1",
        "QMD_CONFIG_DIR": str(tmp_path / "config"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "NO_COLOR": "1",
    }


# ---- answers ----------------------------------------------------------------------------------------------------

REAL = """[
  {
    "docid": "#ed5001",
    "score": 0.86,
    "file": "qmd://memory-root/MEMORY.md",
    "line": 6,
    "title": "Facts",
    "snippet": "@@ -5,4 @@ (4 before, 1 after)\\nthird\\nfourth line heron\\nfifth\\nsixth"
  }
]
"""
ROW = Row("memory-root", "MEMORY.md", 0.86, 5, ("third", "fourth line heron", "fifth", "sixth"))


@pytest.mark.parametrize(
    "noise", ["", "\n", "ggml_cuda_init: no device\n", "[warn] CUDA\n[1/2] x\n", "[]x\n", "{}\n"]
)
def test_warnings_before_the_json_are_skipped(noise: str) -> None:
    assert parse(noise + REAL) == [ROW]


@pytest.mark.parametrize("empty", ["[]", "[]\n", "", "\n", "No results found.\n"])
def test_no_results_are_a_valid_answer(empty: str) -> None:
    assert parse(empty) == []


def changed(**fields: object) -> str:
    return json.dumps([{**json.loads(REAL)[0], **fields}])


@pytest.mark.parametrize(
    "answer",
    [
        "Usage: qmd search <query>",
        "[",
        REAL + "trailing",
        '{"results": []}',
        '"[]"',
        "[1]",
        "[[]]",
        "[" * 100_000,
        changed(file="/etc/passwd"),
        changed(file="qmd://memory-root"),
        changed(file=None),
        changed(score="high"),
        changed(score=float("nan")),
        changed(score=True).replace("true", '"1"'),
        changed(snippet="no header"),
        changed(snippet=None),
    ],
)
def test_output_of_another_form_is_an_error(answer: str) -> None:
    with pytest.raises(EngineError):
        parse(answer)


@given(st.text())
def test_any_output_is_an_answer_or_an_engine_error(stdout: str) -> None:
    with contextlib.suppress(EngineError):
        parse(stdout)


def test_the_counts_of_all_collections_are_summed(standin: StandIn, tmp_path: Path) -> None:
    qmd = Qmd([str(standin.command)], tmp_path)
    for folder in (qmd.config, qmd.index.parent):
        folder.mkdir(parents=True)
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("a", "b"):
        (notes / f"{name}.md").write_text(name)
    (qmd.config / "index.yml").write_text(json.dumps({"collections": {"memory": {"path": str(notes)}}}))
    assert qmd.update(20) == UpdateCounts(new=2)
    (notes / "a.md").write_text("changed")
    (notes / "b.md").unlink()
    assert qmd.update(20) == UpdateCounts(updated=1, removed=1)


def test_the_error_of_a_failed_command_has_no_stack_trace(standin: StandIn, tmp_path: Path) -> None:
    standin.fault("exit134")
    with pytest.raises(EngineError) as error:
        Qmd([str(standin.command)], tmp_path).update(20)
    assert str(error.value) == "qmd update ended with status 134: Error: SQLITE_CONSTRAINT_PRIMARYKEY."


@pytest.mark.posix("a script with a line for its interpreter")
def test_another_program_named_qmd_is_rejected(tmp_path: Path) -> None:
    other = tmp_path / "qmd"
    other.write_text("#!/bin/sh\necho quick markdown 1.0\n")
    other.chmod(0o755)
    with pytest.raises(EngineError, match="is not qmd"):
        Qmd([str(other)], tmp_path).version()


@pytest.mark.posix("programs without a suffix")
def test_qmd_is_found_on_the_path_as_a_file_or_as_a_script_with_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("qmd", "node", "qmd.js"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert locate("qmd") == (str(tmp_path / "qmd"),)
    assert locate(str(tmp_path / "qmd")) == (str(tmp_path / "qmd"),)
    assert locate(str(tmp_path / "qmd.js")) == (str(tmp_path / "node"), str(tmp_path / "qmd.js"))
    with pytest.raises(EngineError, match="'nothing' is not on the PATH"):
        locate("nothing")
    with pytest.raises(EngineError, match=r"does not exist. Set memory.qmd.command"):
        locate(str(tmp_path / "gone" / "qmd"))


def test_qmd_is_found_by_the_batch_file_that_npm_installs_on_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = tmp_path / ("node.exe" if sys.platform == "win32" else "node")
    node.write_text("")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PATHEXT", ".exe")
    script = tmp_path / "node_modules" / "@tobilu" / "qmd" / "dist" / "cli" / "qmd.js"
    (tmp_path / "qmd.CMD").write_text("")  # through it, a query could run commands
    with pytest.raises(EngineError, match=rf"{re.escape(str(script))} does not exist"):
        locate(str(tmp_path / "qmd.CMD"))
    script.parent.mkdir(parents=True)
    script.write_text("")
    assert locate(str(tmp_path / "qmd.CMD")) == (str(node), str(script))


def test_an_extra_path_has_its_own_name_and_pattern(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    (journal / "one.txt").write_text("heron")
    (journal / "two.md").write_text("stork")
    workspace = Workspace(
        tmp_path / "workspace",
        extra_paths=[journal],
        own_patterns={journal: "**/*.txt"},
        names={journal: "journal"},
    )
    assert collections_of(workspace) == (Collection("journal", journal, "**/*.txt"),)
    assert [found.path for found in workspace.scan().files] == [f"{journal.as_posix()}/one.txt"]
