"""Find tool calls and tool results in the records of a conversation, and the tools that fetch text from outside.

Formats: content blocks (Anthropic, OpenClaw), ``tool_calls`` and ``role: tool`` (OpenAI chat), and items whose type
ends in ``_call`` (OpenAI responses). Calls are matched by id, because a result does not always name its tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Record = Mapping[str, object]

#: Calls without a result that are remembered.
MAX_OPEN_CALLS = 64

_NETWORK = re.compile(r"web|fetch|brows|http|url|crawl|scrape|mail|inbox|computer", re.IGNORECASE)
_CALLS = ("tool_use", "toolCall", "server_tool_use", "mcp_tool_use")
_ANSWERING = ("tool", "function", "toolResult")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The use of tools in one record."""

    #: Whether the record names a tool that fetches text from outside.
    outside: bool = False
    #: Ids of its calls of such tools.
    calls: tuple[str, ...] = ()
    #: Ids of the calls whose results it contains, for any tool.
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutsideText:
    """Detects text from outside in a conversation, record by record."""

    #: Whether text from outside was added since a person last spoke.
    tainted: bool = False
    #: Calls of tools that fetch such text, without a result yet.
    calls: tuple[str, ...] = ()

    def after(self, use: ToolUse, *, person: bool, stranger: bool = False) -> OutsideText:
        """Return the state after a record. ``person``: a person speaks in it. ``stranger``: not the owner."""
        added = stranger or use.outside or not set(self.calls).isdisjoint(use.answers)
        calls = [call for call in (*self.calls, *use.calls) if call not in use.answers]
        return OutsideText((self.tainted and not person) or added, tuple(calls[-MAX_OPEN_CALLS:]))


def is_tool_record(record: Record) -> bool:
    """Return whether a record without role and content is about tools."""
    kind = record.get("type")
    return "tool_calls" in record or (isinstance(kind, str) and kind.endswith(("_call", "_call_output")))


def tool_use_of(body: Record) -> ToolUse:
    """Return the use of tools in the body of a record."""
    called, answered = list(_find_calls(body)), list(_find_results(body))
    return ToolUse(
        outside=any(_NETWORK.search(name) for name, _ in (*called, *answered)),
        calls=tuple(call for name, call in called if call and _NETWORK.search(name)),
        answers=tuple(call for _, call in answered if call),
    )


def _find_calls(body: Record) -> Iterator[tuple[str, str]]:
    """Yield the tool name and the id of each call."""
    for block in (body, *_dicts(body.get("content"))):
        kind = _string(block, "type")
        if kind in _CALLS or kind.endswith("_call"):
            named = (kind, *(_string(block, key) for key in ("name", "server_name", "server_label")))
            yield " ".join(named), _string(block, "call_id") or _string(block, "id")
    for call in (*_dicts(body.get("tool_calls")), *_dicts([body.get("function_call")])):
        inner = (call, *_dicts([call.get("function")]), *_dicts([call.get("custom")]))
        yield " ".join(_string(one, "name") for one in inner), _string(call, "id")


def _find_results(body: Record) -> Iterator[tuple[str, str]]:
    """Yield the tool name, if there is one, and the call id of each result."""
    for block in _dicts(body.get("content")):
        kind = _string(block, "type")
        if kind.endswith(
            "tool_result"
        ):  # for Anthropic's server tools, the type contains the name of the tool
            yield kind, _string(block, "tool_use_id")
    if body.get("role") in _ANSWERING or "toolName" in body:
        name = _string(body, "toolName") or _string(body, "name")
        yield name, _string(body, "tool_call_id") or _string(body, "toolCallId")
    if _string(body, "customType").startswith("openclaw.nested-tool"):
        # OpenClaw's agent calls most tools through a wrapper tool. Only the details name the inner tool.
        for inner in _dicts([body.get("details")]):
            yield _string(inner, "toolName"), _string(inner, "toolCallId")
    if _string(body, "type").endswith("_call_output"):
        yield _string(body, "type"), _string(body, "call_id")


def _dicts(value: object) -> list[Record]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _string(record: Record, key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""
