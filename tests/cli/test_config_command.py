"""`config get`, `config set` and `config unset` as people use them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import Run

from memoriter.files.platform import is_private


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "state/config.yaml"
    file.parent.mkdir()
    file.write_text("# mine\nsearch:\n  max_results: 6  # a few\n", "utf-8")
    return file


def test_set_writes_one_value_and_says_where(memoriter: Run, config: Path) -> None:
    done = memoriter("config", "set", "search.max_results", "9")
    assert (done.returncode, done.stdout) == (0, f"search.max_results = 9, written to {config}.\n")
    assert config.read_text("utf-8") == "# mine\nsearch:\n  max_results: 9  # a few\n"
    assert memoriter("config", "get", "search.max_results").stdout == "9\n"


def test_set_says_when_something_else_takes_precedence(memoriter: Run, config: Path) -> None:
    done = memoriter("config", "set", "search.max_results", "9", MEMORITER_SEARCH__MAX_RESULTS="3")
    assert done.stdout == (
        f"search.max_results = 9, written to {config}.\n"
        "Note: MEMORITER_SEARCH__MAX_RESULTS takes precedence, so the effective value is 3.\n"
    )
    shown = json.loads(
        memoriter("config", "get", "search.maxResults", "--json", MEMORITER_SEARCH__MAX_RESULTS="3").stdout
    )
    assert shown == {"key": "search.max_results", "value": 3, "origin": "MEMORITER_SEARCH__MAX_RESULTS"}


def test_set_creates_a_private_file_and_hides_a_key(memoriter: Run, tmp_path: Path) -> None:
    done = memoriter("config", "set", "llm.api_key", "-", stdin=b"sk-secret\n")
    file = tmp_path / "state/config.yaml"
    assert (done.returncode, done.stdout) == (0, f"llm.api_key = ***, written to {file}.\n")
    assert file.read_text("utf-8") == "llm:\n  api_key: sk-secret\n"
    # On Windows, files inherit the access list of their folder, except under Wine.
    assert is_private(file.parent if sys.platform == "win32" else file)


def test_values_are_printed_as_a_settings_file_has_them(memoriter: Run, config: Path) -> None:
    values = {
        "files.patterns": '["**/*.md", "**/*.txt"]',
        "search.half_life_days": "null",
        "search.rerank": "false",
        "embedding.provider": "none",
    }
    config.write_text('files: {patterns: ["**/*.md", "**/*.txt"]}\nsearch: {rerank: false}\n', "utf-8")
    shown = [line.split(maxsplit=2) for line in memoriter("config", "show").stdout.splitlines()]
    assert {words[0]: words[2] for words in shown if words[0] in values} == values
    assert {key: memoriter("config", "get", key).stdout.removesuffix("\n") for key in values} == values
    done = memoriter("config", "set", "files.patterns", values["files.patterns"])
    assert done.stdout == f"files.patterns = {values['files.patterns']}, written to {config}.\n"


def test_unset_returns_to_the_default(memoriter: Run, config: Path) -> None:
    done = memoriter("config", "unset", "search.maxResults")
    assert (done.returncode, done.stdout) == (
        0,
        f"Removed search.max_results from {config}. Its value is 6, the default.\n",
    )
    assert config.read_text("utf-8") == "# mine\n"
    again = memoriter("config", "unset", "search.max_results", MEMORITER_SEARCH__MAX_RESULTS="3")
    assert (again.returncode, again.stdout) == (
        0,
        f"{config} does not set search.max_results. Its value is 3, from MEMORITER_SEARCH__MAX_RESULTS.\n",
    )
    assert json.loads(memoriter("config", "unset", "search.max_results", "--json").stdout) == {
        "key": "search.max_results",
        "removed": False,
        "path": str(config),
        "effective": 6,
        "origin": "default",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["set", "search.max_result", "9"],
            "Unknown setting 'search.max_result'. Did you mean 'search.max_results'?",
        ),
        (
            ["unset", "search.max_result"],
            "Unknown setting 'search.max_result'. Did you mean 'search.max_results'?",
        ),
        (["get", "xyzzy"], "Unknown setting 'xyzzy'. `memoriter config show` lists all settings."),
        (["get", "search"], "'search' is a section. Name one of its settings, such as 'search.max_results'."),
        (
            ["set", "search.max_results", "many"],
            "The setting search.max_results = 'many' from {config} is not valid: it must be a whole number.",
        ),
        (
            ["set", "search.max_results", "-1"],
            "The setting search.max_results = -1 from {config} is not valid: it must be at least 1.",
        ),
    ],
)
def test_a_wrong_name_or_value_changes_nothing(
    memoriter: Run, config: Path, arguments: list[str], message: str
) -> None:
    before = config.read_text("utf-8")
    done = memoriter("config", *arguments)
    assert (done.returncode, done.stderr) == (1, f"memoriter: {message.format(config=config)}\n")
    assert config.read_text("utf-8") == before
