"""Any arguments, valid or not, get an answer in the shape of the operation and never cause an internal error."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memoriter.entries.drafts import Draft
from memoriter.errors import WriteError
from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox

TEXTS = st.sampled_from(
    [
        "",
        "heron",
        "苍鹭 茶",
        "' or 1=1 --",
        "../x",
        "\0",
        "\ud800",
        "*",
        "%_",
        "e" * 3000,
        "NaN",
        "[" * 9000,
        "1e999",
    ]
)
NUMBERS = st.sampled_from(
    [0, 1, 2, -1, 0.5, 1e12, 10**400, float("inf"), float("nan"), 2**63, 253_402_300_799]
) | st.integers(0, 600)
JUNK = st.none() | st.booleans() | NUMBERS | TEXTS | st.lists(TEXTS | NUMBERS, max_size=3)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "x"])}, optional={"content": TEXTS | JUNK}
)


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[object]:
    """Values of the type that the schema of an argument names."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "array":
        items = schema["items"]
        return st.lists(MESSAGE if items["type"] == "object" else fitting(items), max_size=3)
    return {"string": TEXTS, "boolean": st.booleans()}.get(schema["type"], NUMBERS)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, object]]:
    tool = OPERATIONS[draw(st.sampled_from(sorted(set(OPERATIONS) - {"memory.sync"})))]
    schema = tool.schema()
    sent = [name for name in schema["properties"] if name in schema["required"] or draw(st.booleans())]
    return tool.name, {name: draw(fitting(schema["properties"][name]) | JUNK) for name in sent}


@pytest.fixture
def toolbox(note, open_memory) -> Toolbox:
    note("MEMORY.md", "# Facts\n\nThe heron nests in the marsh.\n")
    memory = open_memory()
    memory.entries.add("The heron is my favourite bird 苍鹭", tags=("birds",))
    return Toolbox(memory, tools=OPERATIONS)


@functools.cache
def validator_of(name: str) -> Draft202012Validator:
    return Draft202012Validator(OPERATIONS[name].output_schema())


@given(asked=calls())
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_arguments_cause_an_internal_error(toolbox: Toolbox, asked: tuple[str, dict[str, object]]) -> None:
    name, arguments = asked
    outcome, result = toolbox.outcome(name, arguments)
    assert outcome not in ("broken", "unknown"), result
    validator_of(name).validate(result)
    json.dumps(result, allow_nan=False)
    assert len(result.get("error", "")) < 600


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("created_at", float("inf")),
        ("valid_from", 1e300),
        ("expires_at", "soon"),
        ("session", 7),
        ("seq", 1.5),
        ("importance", float("nan")),
    ],
)
def test_an_import_with_an_impossible_field_is_rejected(toolbox: Toolbox, field: str, value: object) -> None:
    data = toolbox.call("entries.export")["data"]
    head, line = data.splitlines()
    record = json.loads(line)
    record["entry"] |= {"id": "00000000-0000-4000-8000-000000000000", field: value}
    result = toolbox.call("entries.import", {"data": f"{head}\n{json.dumps(record)}\n"})
    assert result["error"].startswith("Nothing was imported. ")
    assert toolbox.call("entries.list")["total"] == 1


def test_a_name_with_a_lone_surrogate_is_an_unknown_argument(toolbox: Toolbox) -> None:
    outcome, result = toolbox.outcome("memory.search", '{"que\\ud800ry": "tea"}')
    assert outcome == "invalid"
    assert result["error"].startswith("memory.search has no argument 'que?ry'.")


def calls_of(function: Callable[[], object]) -> int:
    """Count the calls of Python functions that a function needs."""
    count = 0

    def count_call(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(count_call)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        (
            "memory_search",
            {f"k{number}": 1 for number in range(30_000)},
            "memory_search has no argument 'k0', 'k1', 'k2' and 29,997 others. Its arguments are: query,",
        ),
        (
            "memory_search",
            {"query": "a b " * 500_000},
            "`query` must be a string of at most 10,000 characters.",
        ),
        (
            "memory_recall",
            {"query": "a b " * 500_000},
            "`query` must be a string of at most 10,000 characters.",
        ),
        ("memory_store", {"text": "a b " * 500_000}, "An entry has at most"),
    ],
)
def test_a_call_that_is_too_large_is_refused_before_any_work(
    open_memory: Any, name: str, arguments: dict[str, object], says: str
) -> None:
    toolbox = Toolbox(open_memory(), access="write")
    toolbox.call(name, {"query": "a", "text": "I prefer tea."})  # opens what it needs
    results = []
    calls = calls_of(lambda: results.append(toolbox.call(name, arguments)))
    assert results[0]["error"].startswith(says)
    assert calls < 5_000


class Unread(str):
    """A text that nothing may cut or fold."""

    def __getitem__(self, _: object) -> str:
        raise AssertionError("the text was read")

    def lower(self) -> str:
        raise AssertionError("the text was read")


def test_a_text_that_is_too_long_for_an_entry_is_refused_unread(open_memory: Any) -> None:
    with pytest.raises(WriteError, match="at most 2000"):
        Draft(Unread("a b " * 600)).clean()
    with pytest.raises(WriteError, match="at most 2000"):
        open_memory().entries.add(Unread("a b " * 600))
