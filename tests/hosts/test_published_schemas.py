"""What editors accept in their settings, and that what we write is of that form.

Each schema restates what the maker of the editor publishes: of VS Code the JSON schema in its `mcpConfiguration.ts`, of
Zed `ContextServerSettingsContent` in its `settings_content`, of the others the fields in their documentation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from memoriter.config import load
from memoriter.hosts import InstallRequest, find_host

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
VARIABLES = {"type": "object", "additionalProperties": {"type": ["string", "number", "null"]}}


def program(*required: str, **fields: object) -> dict[str, object]:
    """Return the schema of a server that is a program; it has no other fields."""
    properties = {"command": TEXT, "args": TEXTS, "env": VARIABLES, **fields}
    closed = {"type": "object", "additionalProperties": False}
    return {**closed, "required": ["command", *required], "properties": properties}


def named(member: str, server: dict[str, object], **more: object) -> dict[str, object]:
    """Return the schema of a file with servers by their names."""
    return {
        "type": "object",
        "required": [member],
        "properties": {member: {"type": "object", "additionalProperties": server}},
        **more,
    }


#: The file of each editor, and its schema. Only VS Code says that its file has no other members.
PUBLISHED = {
    "claude-desktop": ("claude_desktop_config.json", named("mcpServers", program())),
    "cursor": ("mcp.json", named("mcpServers", program(type={"const": "stdio"}, cwd=TEXT, envFile=TEXT))),
    "vscode": (
        "mcp.json",
        named(
            "servers",
            program(type={"enum": ["stdio"]}, cwd=TEXT, envFile=TEXT, dev={"type": "object"}),
            unevaluatedProperties=False,
        ),
    ),
    "windsurf": (
        "mcp_config.json",
        named("mcpServers", program(disabled={"type": "boolean"}, disabledTools=TEXTS)),
    ),
    "zed": (
        "settings.json",
        named(
            "context_servers",
            program(enabled={"type": "boolean"}, remote={"type": "boolean"}, timeout={"type": "integer"}),
        ),
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_an_editor_gets_is_of_the_form_that_its_maker_publishes(tmp_path: Path, name: str) -> None:
    file_name, schema = PUBLISHED[name]
    file, (servers,) = tmp_path / "host" / file_name, schema["properties"]
    file.parent.mkdir()
    file.write_text(json.dumps({servers: {"build": {"command": "b"}}}), "utf-8")
    settings = load(arguments={"home": tmp_path / "memory", "workspace": tmp_path / "notes"}, environ={})
    find_host(name).install(InstallRequest(settings, {"workspace": "/my notes"}, home=file.parent))

    written: Any = json.loads(file.read_text("utf-8"))
    validator = Draft202012Validator(schema)
    validator.validate(written)
    assert list(written[servers]) == ["build", "memoriter"]
    for damage in ({"command": ["memoriter"]}, {"args": "mcp"}, {"arguments": ["mcp"]}):
        with pytest.raises(ValidationError):
            validator.validate({servers: {"memoriter": {**written[servers]["memoriter"], **damage}}})
