"""The view of one caller, its tools and results in the form of the protocol, and the limit on their size.

Clients truncate or reject a result above about 25,000 tokens. The server shortens the longest parts before that and
says so in the result.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import mcp_types as types

from memoriter.agent import Agent
from memoriter.agent.plugins import NOTE_TOOLS
from memoriter.errors import PathRefused
from memoriter.extension import offers
from memoriter.memory import Memory
from memoriter.tools.tool import Access, Outcome, Result, Schema, Tool, grants
from memoriter.tools.toolbox import TOOLS, Toolbox

#: Listed while the memory cannot be opened. Each reports the reason, and works once the problem is fixed.
TOOLS_WITHOUT_MEMORY = NOTE_TOOLS

granted_access: ContextVar[Access] = ContextVar("memoriter_mcp_access", default="write")
"""The access of the caller of this request. The gateway sets it from the token, the command line once at the start."""

session_key: ContextVar[str | None] = ContextVar("memoriter_mcp_session", default=None)
"""The key of the caller's session, to which `memory.scope` applies. None is the owner's own session."""


@dataclass(frozen=True, slots=True)
class View:
    """The tools and texts of an agent that one caller may use."""

    agent: Agent
    table: Mapping[str, Tool]
    access: Access
    session_key: str | None

    @classmethod
    def of(cls, agent: Agent, table: Mapping[str, Tool]) -> View:
        """Return the view of the caller of this request."""
        return cls(agent, table, granted_access.get(), session_key.get())

    @property
    def _active(self) -> tuple[str, ...]:
        without_memory = self.agent.error and not self.agent.off
        return self.agent.tools or (TOOLS_WITHOUT_MEMORY if without_memory else ())

    @property
    def tools(self) -> dict[str, Tool]:
        """Return the tools that this caller may call, by name. Those for one client are last."""
        return self._allowed_tools(self._active)

    def _allowed_tools(self, names: Collection[str]) -> dict[str, Tool]:
        tools = {name: self.table[name] for name in names if name in self.table}
        for offer in offers("mcp_tools").values():
            tools |= offer.load()(tools)
        return {name: tool for name, tool in tools.items() if grants(self.access, tool.access)}

    @property
    def toolbox(self) -> Toolbox:
        """Return the tools with the memory.

        Without a memory it contains all tools, because a client may call one that it listed earlier. Each reports why
        there is no memory.
        """
        tools = self._allowed_tools(TOOLS) if self.agent.error else self.tools
        return Toolbox(lambda: self.agent.memory, session=self.session_key, tools=tools, access=self.access)

    def instructions(self) -> str:
        """Return the section of the system prompt for these tools. Empty while memory is disabled."""
        with_hints = {name: tool for name, tool in self.tools.items() if tool.hints}
        return Toolbox(lambda: self.agent.memory, session=self.session_key, tools=with_hints).prompt()

    @property
    def has_notes(self) -> bool:
        """Return whether this agent reads notes."""
        return "memory_get" in self._active

    @property
    def has_entries(self) -> bool:
        """Return whether this agent sees entries."""
        return bool({"memory_search", "memory_recall", "memory"} & set(self._active))

    def memory(self) -> Memory:
        """Return the memory. Raise if it is disabled, or if this session may not use it."""
        memory = self.agent.memory
        if not memory.allows(self.session_key):
            raise PathRefused("This session may not use this memory.")
        return memory


MAX_RESULT_BYTES = 60_000
"""Maximum size of a result as JSON: at most 25,000 tokens, since a token has 2.4 bytes or more in both languages."""

#: Arguments whose name, type and values say what they are. The list of tools leaves out their descriptions.
PLAIN_ARGUMENTS = frozenset(
    (
        *("action", "category", "from", "id", "limit", "lines", "maxResults", "memoryId"),
        *("minImportance", "minScore", "query", "tags", "title", "type"),
    )
)
#: A value of this size is removed as a whole instead of being shortened.
SMALL_BYTES = 64


def describe_tool(tool: Tool) -> types.Tool:
    """Return a tool as clients list it.

    The list costs tokens in every conversation, so it has no output schemas: they are three times as long as everything
    else. Only tools for one client have them.
    """
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=_short_schema(tool.schema()),
        output_schema=tool.output_schema() if tool.client else None,
        annotations=types.ToolAnnotations.model_validate(_hints(tool)),
    )


def _hints(tool: Tool) -> dict[str, bool]:
    """Return the annotations that differ from what clients assume. The others say nothing about a tool that reads."""
    if tool.read_only:
        return {"readOnlyHint": True, "openWorldHint": False}
    # The same statement is stored once.
    return {"destructiveHint": tool.destructive, "idempotentHint": True, "openWorldHint": False}


def _matters(name: str, key: str, value: object) -> bool:
    if key == "default":
        return value not in ("", [])
    return key != "description" or name not in PLAIN_ARGUMENTS


def _short_schema(schema: Schema) -> Schema:
    """Return the schema of arguments without what a model does not need: unknown names are rejected anyway."""
    properties = {
        name: {key: value for key, value in described.items() if _matters(name, key, value)}
        for name, described in schema["properties"].items()
    }
    shown = {"type": "object", "properties": properties, "required": schema["required"]}
    return shown if schema["required"] else {"type": "object", "properties": properties}


def call_result(tool: Tool, outcome: Outcome, result: Result) -> types.CallToolResult:
    """Return the result of a call, as structured content and as text. The text of a failure is its message."""
    known = tool.output_schema()["properties"]
    assert isinstance(known, Mapping)
    content = limit_size(
        {name: value for name, value in result.items() if name in known or name != "disabled"}
    )
    failed = outcome != "ok"
    text = str(result.get("error") or outcome) if failed else _json(content)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=content, is_error=failed
    )


def limit_size(result: Result, max_bytes: int = MAX_RESULT_BYTES) -> Result:
    """Shorten the longest parts until the result is small enough. ``cut`` then says what is missing."""
    if _size(result) <= max_bytes:
        return result
    short, cut = copy.deepcopy(result), set[str]()
    while (excess := _size({**short, "cut": _cut_message(result, short, cut)}) - max_bytes) > 0:
        cut.add(max(short, key=lambda name: _size(short[name])))
        if not _shorten(short, excess):
            break
    return {**short, "cut": _cut_message(result, short, cut)}


def _shorten(container: Any, excess: int) -> bool:
    """Remove about this many bytes from the longest list, object or text inside, and keep the shape of the data.

    Return False if there is nothing to remove.
    """
    while container:
        keys = container if isinstance(container, dict) else range(len(container))
        key = max(keys, key=lambda key: _size(container[key]))
        value = container[key]
        if isinstance(value, str):
            container[key] = value[: max(0, int(len(value) * (1 - excess / _size(value))) - 1)]
            return value != ""
        if isinstance(value, list) and len(value) > 1:
            while len(value) > 1 and excess > 0:
                excess -= _size(value.pop()) + 2
            return True
        if not isinstance(value, list | dict):
            return False
        if isinstance(value, dict) and all(_size(item) <= SMALL_BYTES for item in value.values()):
            while value and excess > 0:  # many small values: remove the last ones
                name, item = value.popitem()
                excess -= _size(name) + _size(item) + 4
            return True
        container = value  # one item that is long in itself
    return False


def _cut_message(whole: Result, short: Result, cut: Collection[str]) -> str:
    parts = (
        f"{len(short[name])} of {len(whole[name])} {name}"
        if isinstance(whole[name], list | dict) and len(short[name]) < len(whole[name])
        else f"a part of {name}"
        for name in sorted(cut)
    )
    return f"The result was too long. This is {', '.join(parts)}. Ask for less at a time."


def _size(value: object) -> int:
    return len(_json(value).encode("utf-8", "surrogatepass"))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
