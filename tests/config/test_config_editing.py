"""Settings files are edited by `config set`: one value changes, and everything else stays byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter.config import load
from memoriter.errors import ConfigError
from memoriter.extensions.settings.editing import complete_key, save_value, set_value, unset_value
from memoriter.files.platform import is_private

FILE = """\
# My settings
workspace: ~/notes   # the vault

search:
  # how many
  max_results: 6
  min_score: 0.2  # low

files:
  extra_paths:
    - ~/journal
    - ~/docs
# the end
"""


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("search.max_results", 9, "max_results: 6", "max_results: 9"),
        ("workspace", "~/other notes", "workspace: ~/notes   #", "workspace: ~/other notes   #"),
        ("search.rerank", False, "0.2  # low\n", "0.2  # low\n  rerank: false\n"),
        ("memory.citations", "off", "# the end\n", "# the end\n"),
        ("agent", "work", "    - ~/docs\n", "    - ~/docs\nagent: work\n"),
        (
            "files.extra_paths",
            ["~/a"],
            "extra_paths:\n    - ~/journal\n    - ~/docs\n",
            "extra_paths: [~/a]\n",
        ),
    ],
)
def test_one_value_changes_and_the_comments_stay(key: str, value: object, old: str, new: str) -> None:
    edited = set_value(FILE, key, value)
    if key == "memory.citations":
        assert edited == FILE.replace("    - ~/docs\n", "    - ~/docs\nmemory:\n  citations: 'off'\n")
    else:
        assert edited == FILE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "search:\n  max_results: 3\n"),
        ("# only a comment", "# only a comment\nsearch:\n  max_results: 3\n"),
        ("search:\n", "search:\n  max_results: 3\n"),
        ("search:\nagent: x\n", "search:\n  max_results: 3\nagent: x\n"),
        ("search:\n  maxResults: 5\n", "search:\n  maxResults: 3\n"),
        ("search.max_results: 5", "search.max_results: 3"),
        ("search:\n  max_results:\n", "search:\n  max_results: 3\n"),
        ("search: {max_results: 5}\n", "search: {max_results: 3}\n"),
        ("agent: x", "agent: x\nsearch:\n  max_results: 3\n"),
    ],
)
def test_a_value_is_set_in_any_file(text: str, expected: str) -> None:
    assert set_value(text, "search.max_results", 3) == expected


def test_a_flow_section_that_lacks_the_key_is_left_to_the_owner() -> None:
    with pytest.raises(ConfigError, match="Edit it by hand"):
        set_value("search: {min_score: 0.2}\n", "search.max_results", 3)


@given(
    st.lists(
        st.sampled_from(
            [
                ("search.max_results", 4),
                ("search.min_score", 0.5),
                ("agent", "a"),
                ("files.patterns", ["**/*.md", "*.txt"]),
                ("memory.qmd.limits.timeout_ms", 900),
                ("logging.level", "debug"),
            ]
        ),
        max_size=8,
    )
)
def test_any_sequence_of_changes_gives_the_last_values(changes: list[tuple[str, object]]) -> None:
    text = FILE
    for key, value in changes:
        text = set_value(text, key, value)
    for line in FILE.splitlines():
        if "#" in line:
            assert line.partition("#")[2] in text
    for key, value in dict(changes).items():
        assert set_value(text, key, value) == text


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        (FILE, "search.max_results", FILE.replace("  max_results: 6\n", "")),
        (FILE, "workspace", FILE.replace("workspace: ~/notes   # the vault\n", "")),
        (
            FILE,
            "files.extra_paths",
            FILE.replace("files:\n  extra_paths:\n    - ~/journal\n    - ~/docs\n", ""),
        ),
        ("memory:\n  qmd:\n    limits:\n      timeout_ms: 9\n", "memory.qmd.limits.timeout_ms", ""),
        ("search:\n  maxResults: 5\nagent: x", "search.max_results", "agent: x"),
        ("search.max_results: 5\nagent: x\n", "search.max_results", "agent: x\n"),
        (
            "search: {max_results: 5, min_score: 0.2}  # few\n",
            "search.max_results",
            "search: {min_score: 0.2}  # few\n",
        ),
        ("agent: |\n  x\nsearch:\n  min_score: 0.2\n", "agent", "search:\n  min_score: 0.2\n"),
    ],
)
def test_a_setting_is_removed_and_the_comments_stay(
    tmp_path: Path, text: str, key: str, expected: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text, "utf-8")
    assert [unset_value(file, key), unset_value(file, key)] == [True, False]
    assert file.read_text("utf-8") == expected


def test_any_setting_that_was_set_is_removed_again(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(FILE, "utf-8")
    before = load(config=file, environ={}, arguments={"home": tmp_path}).describe()
    for key, value in (("agent", "a"), ("search.rerank", "false"), ("memory.qmd.limits.timeout_ms", "900")):
        save_value(file, key, value)
        assert unset_value(file, key)
        assert file.read_text("utf-8") == FILE
    assert load(config=file, environ={}, arguments={"home": tmp_path}).describe() == before


def test_an_invalid_value_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(FILE, "utf-8")
    with pytest.raises(ConfigError, match=r"search\.max_results = 'many'.*must be a whole number"):
        save_value(file, "search.max_results", "many")
    assert file.read_text("utf-8") == FILE


def test_a_text_is_kept_as_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    save_value(file, "embedding.model", "1.10")
    settings = load(config=file, environ={}, arguments={"home": tmp_path})
    assert (settings.embedding.model, is_private(file)) == ("1.10", True)


def test_a_wrong_name_gets_the_nearest_one() -> None:
    assert complete_key("search.maxResults") == "search.max_results"
    with pytest.raises(ConfigError, match=r"Did you mean 'search\.max_results'"):
        complete_key("search.max_result")
    with pytest.raises(ConfigError, match="is a section"):
        complete_key("search")
