"""The results of every operation match its output schema."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox

FIRST, SECOND, RECALL = "(the newest entry)", "(the one before it)", "(the newest recall)"
EMPTY = sha256(b"").hexdigest()  # the version of a note without text
GROUP = "agent:main:telegram:group:42"

#: Calls in order. Later calls use what earlier calls have stored.
CALLS: list[tuple[str, dict[str, object]]] = [
    ("memory_save", {"content": "The heron nests in the marsh.", "tags": ["birds"]}),
    ("memory_store", {"text": "I prefer tabs.", "category": "preference"}),
    ("memory_store", {"text": "我喜欢喝绿茶。", "category": "preference"}),
    ("memory_store", {"text": "I prefer tabs."}),
    ("memory_search", {"query": "heron", "minScore": 0}),
    ("memory_search", {"query": "绿茶"}),
    ("memory_get", {"path": "MEMORY.md"}),
    ("memory_stats", {}),
    ("memory_recall", {"query": "tabs"}),
    ("memory", {"action": "list"}),
    ("memory", {"action": "add", "content": "We release on Tuesdays."}),
    ("memory", {"action": "search", "query": "release"}),
    ("memory", {"action": "export"}),
    ("memory", {"action": "import", "data": '[{"memory": "Anna leads the project."}]'}),
    ("memory", {"action": "cleanup"}),
    ("memory", {"action": "stats"}),
    ("memory", {"action": "delete", "id": "no such"}),
    ("recall", {"query": "Which tea do I like? 我喜欢喝什么茶？"}),
    ("recall", {"messages": [{"role": "user", "content": "heron"}], "session": "s1", "tokens": 200}),
    ("capture", {"messages": [{"role": "user", "content": "I prefer dark mode in every editor."}]}),
    ("flush", {"messages": [{"role": "user", "content": "x"}], "window": 100, "tokens": 10}),
    ("summarise", {"messages": [{"role": "user", "content": "Hello"}], "session": "s1"}),
    ("prompt", {"language": "zh"}),
    ("entries.list", {}),
    ("entries.list", {"query": "tabs", "states": [], "limit": 1}),
    ("entries.get", {"id": FIRST}),
    ("entries.facets", {}),
    ("memory.profile", {}),
    ("recalls.list", {}),
    ("recalls.list", {"session": "s1", "limit": 1}),
    ("recalls.get", {"id": RECALL}),
    ("recalls.list", {"words": "tabs"}),
    ("recalls.why", {"sentence": "The heron nests in the marsh."}),
    ("overview.get", {}),
    ("overview.get", {"until": 1, "days": 2}),
    ("health.get", {}),
    ("health.get", {"deep": True}),
    ("entries.add", {"text": "I cycle to work", "importance": 5, "tags": ["way"]}),
    ("entries.edit", {"id": FIRST, "text": "I cycle to work every day", "expiresAt": 0}),
    ("entries.supersede", {"id": FIRST, "text": "I walk to work"}),
    ("entries.add", {"text": "Walking keeps me well", "type": "fact"}),
    ("entries.merge", {"ids": [FIRST, SECOND], "text": "I walk to work to keep well"}),
    ("entries.undo", {}),
    ("entries.undo", {"id": FIRST}),
    ("entries.forget", {"id": FIRST, "dryRun": True}),
    ("entries.forget", {"query": "something"}),
    ("entries.forget", {"session": "unknown"}),
    ("entries.erase", {"session": "unknown"}),
    ("entries.approve", {"ids": []}),
    ("entries.reject", {"ids": []}),
    ("entries.export", {}),
    ("entries.import", {"data": '[{"memory": "Bob leads the other project."}]'}),
    ("notes.tree", {}),
    ("notes.get", {"path": "MEMORY.md"}),
    ("notes.get", {"path": "MEMORY.md", "from": 900}),
    ("notes.chunks", {"path": "MEMORY.md"}),
    ("notes.text", {"path": "MEMORY.md"}),
    ("notes.put", {"path": "memory/herons.md", "text": "# Herons\n"}),
    ("notes.waiting", {}),
    ("notes.approve", {"paths": []}),
    ("about.list", {}),
    ("about.get", {"name": "heron"}),
    ("about.get", {"name": "editor"}),
    (
        "about.change",
        {"places": [{"ref": "memory/herons.md", "line": 1, "text": "# Herons"}], "name": "heron"},
    ),
    ("about.undo", {"files": [{"path": "memory/herons.md", "before": "# Herons\n", "version": EMPTY}]}),
    ("inbox.proposals", {}),
    ("inbox.foresee", {"id": "no such"}),
    ("entries.importers", {}),
    ("changes.list", {}),
    ("changes.list", {"kind": "update", "by": "owner", "limit": 1}),
    ("letter.get", {}),
    ("entries.undo_import", {"entries": [{"id": "0" * 36, "seq": 1}]}),
    ("memory_forget", {"query": "tabs"}),
    ("memory_forget", {"query": "I prefer tabs."}),
    ("memory.search", {"query": "heron"}),
    ("memory.search", {"query": "heron tea", "explain": True, "pathPrefix": "MEM"}),
    ("memory.get", {"path": "MEMORY.md"}),
    ("memory.stats", {}),
    ("memory.profile", {}),
    ("memory.profile", {"project": True}),
    ("memory.status", {}),
    ("memory.status", {"deep": True}),
    ("memory.sync", {}),
    ("memory.sync", {"force": True}),
    ("memory.probe", {}),
    ("settings.list", {}),
    ("settings.set", {"key": "search.max_results", "value": "7"}),
    ("tokens.create", {"name": "phone"}),
    ("tokens.list", {}),
    ("tokens.revoke", {"id": "no such"}),
    ("backups.create", {}),
    ("backups.list", {}),
    ("backups.check", {"name": "no such"}),
    ("backups.read", {"name": "no such"}),
    ("backups.restore", {"name": "no such"}),
    ("backups.remove", {"name": "no such"}),
    ("hosts.list", {}),
    ("notes.remove", {"path": "memory/no such.md", "version": EMPTY}),
    ("notes.restore", {"id": "no such"}),
]


def schema_errors(name: str, result: object) -> list[str]:
    schema = OPERATIONS[name].output_schema()
    Draft202012Validator.check_schema(schema)
    found = Draft202012Validator(schema).iter_errors(result)
    return [f"{name}: {error.json_path}: {error.message}" for error in found]


@pytest.fixture
def toolbox(note, open_memory) -> Toolbox:
    note("MEMORY.md", "# Facts\n\nThe heron nests in the marsh.\n\n湿地里有苍鹭。\n")
    return Toolbox(open_memory(), tools=OPERATIONS)


def test_results_match_the_output_schema(toolbox: Toolbox) -> None:
    wrong, failed = [], []
    for name, given in CALLS:
        result = toolbox.call(name, _filled(given, toolbox))
        wrong += schema_errors(name, result)
        failed += [f"{name}: {result['error']}"] if "error" in result else []
    assert wrong == []
    assert failed == [
        "memory: There is no entry 'no such'.",
        "inbox.foresee: There is no entry 'no such'.",
        "tokens.revoke: Token 'no such' not found. `memoriter token list` lists all tokens.",
        *(
            f"backups.{name}: There is no backup 'no such'."
            for name in ("check", "read", "restore", "remove")
        ),
        "notes.remove: 'memory/no such.md' does not exist.",
        "notes.restore: `id` must be the id of a deleted note.",
    ]


def _filled(given: dict[str, object], toolbox: Toolbox) -> dict[str, object]:
    """Return the arguments with placeholders replaced by ids of entries and recalls."""
    entries = [one["id"] for one in toolbox.call("entries.list", {"limit": 2})["entries"]]
    recalls = [one["id"] for one in toolbox.call("recalls.list", {"limit": 1})["recalls"]]
    meant = dict(zip((FIRST, SECOND), entries, strict=False)) | dict(zip((RECALL,), recalls, strict=False))

    def filled(value: object) -> object:
        if isinstance(value, list):
            return [filled(one) for one in value]
        return meant.get(value, value) if isinstance(value, str) else value

    return {name: filled(value) for name, value in given.items()}


def test_every_operation_is_called() -> None:
    assert set(OPERATIONS) - {name for name, _ in CALLS} == set()


def test_a_failure_matches_the_output_schema(toolbox: Toolbox) -> None:
    for name in OPERATIONS:
        result = toolbox.call(name, {"no such argument": 1})
        assert schema_errors(name, result) == []
        assert result["error"].startswith(f"{name} has no argument 'no such argument'")


def test_the_result_for_a_refused_session_matches_the_output_schema(open_memory) -> None:
    toolbox = Toolbox(open_memory(), session=GROUP, tools=OPERATIONS)
    for name, tool in OPERATIONS.items():
        schema = tool.schema()
        needed = {required: _some(schema["properties"][required]) for required in schema["required"]}
        result = toolbox.call(name, needed)
        assert schema_errors(name, result) == []
        assert ("error" in result) == (not tool.read_only)


def _some(schema: dict[str, Any]) -> object:
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "x", "integer": 1, "number": 1.0, "boolean": True, "array": []}[schema["type"]]


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_and_argument_has_a_description(name: str) -> None:
    tool = OPERATIONS[name]
    assert set(tool.empty) <= set(tool.output_schema()["properties"])
    assert tool.description.endswith(".")
    assert all(schema["description"].endswith(".") for schema in tool.schema()["properties"].values())
