"""The tools that a record of a conversation calls or answers for, and which of them bring in text from outside.

Forms: blocks of the content (Anthropic, OpenClaw), ``tool_calls`` and ``role: tool`` (OpenAI's chat), items whose type
ends in ``_call`` (OpenAI's responses). A call is known by its id, because an answer need not name its tool. Whose words
follow from that is `growth`'s duty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Record = Mapping[str, object]

MAX_OPEN_CALLS = 64  #: calls that may wait for their answer at once

_NETWORK = re.compile(r"web|fetch|brows|http|url|crawl|scrape|mail|inbox|computer", re.IGNORECASE)
_CALLS = ("tool_use", "toolCall", "server_tool_use", "mcp_tool_use")
_ANSWERING = ("tool", "function", "toolResult")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What one record has to do with tools from outside."""

    outside: bool = False  #: it names one
    calls: tuple[str, ...] = ()  #: ids of its calls of such tools
    answers: tuple[str, ...] = ()  #: ids of the calls that it answers, of whatever tool


@dataclass(frozen=True, slots=True)
class OutsideText:
    """Where a conversation stands: a fold over its records."""

    tainted: bool = False  #: text from outside came in since a person last spoke
    calls: tuple[str, ...] = ()  #: of tools that bring in such text, not answered yet

    def after(self, use: ToolUse, *, person: bool, stranger: bool = False) -> OutsideText:
        """Where it stands after a record; ``person``: in which a person spoke; ``stranger``: who is not the owner."""
        brought = stranger or use.outside or not set(self.calls).isdisjoint(use.answers)
        calls = [call for call in (*self.calls, *use.calls) if call not in use.answers]
        return OutsideText((self.tainted and not person) or brought, tuple(calls[-MAX_OPEN_CALLS:]))


def is_tool_record(record: Record) -> bool:
    """Whether a record is about tools, though nobody speaks in it."""
    kind = record.get("type")
    return "tool_calls" in record or (isinstance(kind, str) and kind.endswith(("_call", "_call_output")))


def tool_use_of(body: Record) -> ToolUse:
    """What a record's body has to do with tools from outside."""
    called, answered = list(_called(body)), list(_answered(body))
    return ToolUse(
        outside=any(_NETWORK.search(name) for name, _ in (*called, *answered)),
        calls=tuple(call for name, call in called if call and _NETWORK.search(name)),
        answers=tuple(call for _, call in answered if call),
    )


def _called(body: Record) -> Iterator[tuple[str, str]]:
    """Each call: the words that name its tool, and its id."""
    for block in (body, *_dicts(body.get("content"))):
        kind = _string(block, "type")
        if kind in _CALLS or kind.endswith("_call"):
            named = (kind, *(_string(block, key) for key in ("name", "server_name", "server_label")))
            yield " ".join(named), _string(block, "call_id") or _string(block, "id")
    for call in (*_dicts(body.get("tool_calls")), *_dicts([body.get("function_call")])):
        inner = (call, *_dicts([call.get("function")]), *_dicts([call.get("custom")]))
        yield " ".join(_string(one, "name") for one in inner), _string(call, "id")


def _answered(body: Record) -> Iterator[tuple[str, str]]:
    """Each answer: its tool, where it names one, and the id of the call."""
    for block in _dicts(body.get("content")):
        kind = _string(block, "type")
        if kind.endswith("tool_result"):  # Anthropic's own tools give the result's type their name
            yield kind, _string(block, "tool_use_id")
    if body.get("role") in _ANSWERING or "toolName" in body:
        name = _string(body, "toolName") or _string(body, "name")
        yield name, _string(body, "tool_call_id") or _string(body, "toolCallId")
    if _string(body, "customType").startswith("openclaw.nested-tool"):
        # OpenClaw's agent calls most tools through another one, which alone is named in the call and its answer.
        for inner in _dicts([body.get("details")]):
            yield _string(inner, "toolName"), _string(inner, "toolCallId")
    if _string(body, "type").endswith("_call_output"):
        yield _string(body, "type"), _string(body, "call_id")


def _dicts(value: object) -> list[Record]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _string(record: Record, key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""
