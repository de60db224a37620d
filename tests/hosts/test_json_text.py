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
