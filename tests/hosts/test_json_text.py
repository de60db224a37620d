"""JSON is edited as text: everything that its owner wrote stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter.errors import ConfigError
from memoriter.extensions.clients import json_text

COMMENTED = """// Zed settings
{
  "theme": "One", /* mine */
  "context_servers": {
    // keep
    "other": {"command": "x",},
  },
}
"""


def test_comments_and_trailing_commas_stay() -> None:
    added = json_text.add(COMMENTED, ["context_servers", "memoriter"], {"command": "m"})
    assert added == COMMENTED.replace(
        '{"command": "x",},\n', '{"command": "x",},\n    "memoriter": {\n      "command": "m"\n    }\n'
    )
    assert json_text.remove(added, ["context_servers", "memoriter"]).count("\n") == COMMENTED.count("\n")


@pytest.mark.parametrize("text", ["", "{}\n", '\ufeff{\r\n  "a": 1\r\n}\r\n', '{\n\t"a": {"b": [1, 2]}\n}'])
def test_a_member_and_an_element_are_added_and_removed(text: str) -> None:
    before = json.loads(text.removeprefix("\ufeff") or "{}")
    added = json_text.add(text, ["mcpServers", "memoriter"], {"command": "m"})
    added = json_text.add(added, ["hooks", "Stop"], {"command": "memoriter hook"}, to_list=True)
    ours = {"mcpServers": {"memoriter": {"command": "m"}}, "hooks": {"Stop": [{"command": "memoriter hook"}]}}
    assert json.loads(added.removeprefix("\ufeff")) == {**before, **ours}
    assert added.count("\r") == (added.count("\n") if "\r" in text else 0)
    gone = json_text.remove(added, ["mcpServers", "memoriter"])
    gone = json_text.remove(gone, ["hooks", "Stop"], lambda element: "memoriter" in element)
    assert json.loads(gone.removeprefix("\ufeff")) == before


@pytest.mark.parametrize("text", ["[]", "{", '{"a": }', '{"a" 1}', '{"mcpServers": []}', "{} x", "{" * 200])
def test_a_damaged_file_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        json_text.add(text, ["mcpServers", "memoriter"], {})


_KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_KEYS, _VALUES, max_size=4), st.sampled_from([None, 2, "\t"]))
def test_any_object_keeps_its_values(values: dict[str, object], indent: int | str | None) -> None:
    text = json.dumps(values, indent=indent)
    added = json_text.add(text, ["Memoriter", "servers", "own"], 1)
    assert json.loads(added) == {**values, "Memoriter": {"servers": {"own": 1}}}
    assert json.loads(json_text.remove(added, ["Memoriter", "servers", "own"])) == values


SERVERS = """{
  "servers": {
    // builds
    "build": {"command": "b"}, // mine
    "memoriter": {"command": "m"}, /* ours */
    // looks things up
    "search": {"command": "s"} // mine too
  }
}
"""


def test_a_comment_stays_beside_its_value() -> None:
    path = ["servers", "memoriter"]
    without = SERVERS.replace('    "memoriter": {"command": "m"}, /* ours */\n', "")
    added = json_text.add(without, path, "m")
    assert added == without.replace("// mine too\n", '// mine too\n    "memoriter": "m"\n').replace(
        '"s"}', '"s"},'
    )
    assert json_text.remove(added, path) == without
    assert json_text.remove(SERVERS, path) == SERVERS.replace('"memoriter": {"command": "m"}, ', "")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"a": 1, "m": 2}', '{"a": 1}'),
        ('{"m": 2, "a": 1}', '{"a": 1}'),
        ('{"a": 1, "m": 2, "b": 3}', '{"a": 1, "b": 3}'),
        ('{\n  "a": 1,\n  "m": 2,\n}', '{\n  "a": 1,\n}'),
        ('{"o": {"m": 2}}', "{}"),
        ('{"o": { /* servers */ "m": 2}}', '{"o": { /* servers */}}'),
        ('{"a": "," /* , */ , // ,\n"m": 2}', '{"a": "," /* , */  // ,\n}'),
    ],
)
def test_what_is_beside_a_removed_value_stays(text: str, left: str) -> None:
    path = ["o", "m"] if '"o"' in text else ["m"]
    assert json_text.remove(text, path) == left


@pytest.mark.parametrize("text", ["{\n  // none yet\n}\n", '{"servers": { /* none yet */ }}'])
def test_a_comment_in_an_empty_object_stays(text: str) -> None:
    added = json_text.add(text, ["servers", "memoriter"], "m")
    assert "none yet" in added
    assert "none yet" in json_text.remove(added, ["servers", "memoriter"])
    assert json_text.value_at(added, ["servers", "memoriter"]) == '"m"'


def test_of_two_members_with_one_name_the_last_one_counts() -> None:
    """Editors read it as `JSON.parse` does."""
    assert json_text.add('{"a": {"b": 1}, "a": {}}', ["a", "m"], 2).endswith('"a": {\n  "m": 2\n}}')
    assert json_text.value_at('{"a": 1, "a": 2}', ["a"]) == "2"


def test_a_comment_ends_with_any_line_break() -> None:
    assert json_text.value_at('{ // one\r"a": 1}', ["a"]) == "1"


@pytest.mark.parametrize("key", ["\\x", "C:\\dir", "\\u00"])
def test_a_key_with_a_wrong_escape_is_refused_like_any_other_damage(key: str) -> None:
    with pytest.raises(ConfigError, match=r"line 2"):
        json_text.read(f'{{\n"{key}": 1}}')


def test_a_control_character_in_a_key_is_a_part_of_it() -> None:
    assert json_text.value_at('{"a\tb": 1}', ["a\tb"]) == "1"
