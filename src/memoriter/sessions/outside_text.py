"""Follow text from outside through a conversation: which tools bring it in, and which words may come from it.

The output of a tool comes from outside unless the tool is known to be local. Tool calls are found in content blocks
(Anthropic), ``tool_calls`` and ``role: tool`` (OpenAI chat), and items whose type ends in ``_call`` (OpenAI
responses). A result is matched with its call by id, because a result does not always name its tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from memoriter.files import globs
from memoriter.records import LOCAL_TOOLS
from memoriter.sessions import commands

Record = Mapping[str, object]

#: Calls without a result that are remembered.
MAX_OPEN_CALLS = 64
#: Characters of a tool's result that is searched for what the tool wrote.
MAX_RESULT = 20_000

_CALLS = ("tool_use", "toolCall", "server_tool_use", "mcp_tool_use")
_ANSWERING = ("tool", "function", "toolResult")
#: Tools that run commands. They are local only if their commands are.
_SHELLS = re.compile(
    r"(?:.*[._-])?(?:ba|z|power)?sh(?:ell)?|exec(?:_command)?|process|terminal|cmd|run_?(?:terminal_?)?(?:command|cmd)|execute_?(?:command|bash)"
    r"|(?:local|run)_?shell(?:_?(?:call|command))?|bash_?output",
    re.IGNORECASE,
)


class ToolCall(NamedTuple):
    """A call of a tool, or the result of one."""

    #: Empty if the record does not name the tool.
    name: str
    id: str
    #: Whether its arguments show local commands and no others.
    local_command: bool = False
    #: Whether the result contains text that our own tools mark as untrusted.
    untrusted: bool = False
    #: The entry or the note that the tool wrote, if the result is that of one of our own tools.
    written: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The use of tools in one record."""

    calls: tuple[ToolCall, ...] = ()
    answers: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class TrustRules:
    """The tools whose output does not come from outside, and the names under which the owner speaks."""

    local_tools: tuple[str, ...] = LOCAL_TOOLS
    owner_names: tuple[str, ...] = ()

    def is_local(self, call: ToolCall) -> bool:
        """Return whether a call brings in no text from outside."""
        if not call.name or not any(globs.matches(one, call.name) for one in self.local_tools):
            return False
        return call.local_command or not _SHELLS.fullmatch(call.name)

    def is_owner(self, speaker: str) -> bool:
        """Return whether a message with this name is the owner's. Without a name it is."""
        name = speaker.strip().casefold()
        return name in ("", "user", "owner", "human", "me") or name in map(str.casefold, self.owner_names)


@dataclass(frozen=True, slots=True)
class OutsideText:
    """Detects text from outside in a conversation, record by record."""

    #: Whether the session contains text from outside. It does to its end: an agent may use it at any time.
    tainted: bool = False
    #: Calls of local tools without a result yet.
    calls: tuple[str, ...] = ()
    rules: TrustRules = field(default_factory=TrustRules)

    def after(self, use: ToolUse, *, added: bool = False) -> OutsideText:
        """Return the state after a record. ``added``: it contains text from outside."""
        local = list(self.calls)
        for call in use.calls:
            if self.rules.is_local(call):
                local += [call.id] if call.id else []
            else:
                added = True
        for answer in use.answers:
            added = added or answer.untrusted
            if answer.id in local:
                local.remove(answer.id)
            elif not self.rules.is_local(answer):
                added = True
        return replace(self, tainted=self.tainted or added, calls=tuple(local[-MAX_OPEN_CALLS:]))


# ---- tool calls in a record -------------------------------------------------------------------------------------


def is_tool_record(record: Record) -> bool:
    """Return whether a record without role and content is about tools."""
    kind = record.get("type")
    return "tool_calls" in record or (isinstance(kind, str) and kind.endswith(("_call", "_call_output")))


def tool_use_of(body: Record) -> ToolUse:
    """Return the use of tools in the body of a record."""
    return ToolUse(tuple(_find_calls(body)), tuple(_find_results(body)))


def _find_calls(body: Record) -> Iterator[ToolCall]:
    for block in (body, *dicts(body.get("content"))):
        kind = _string(block, "type")
        if kind in _CALLS or kind.endswith("_call"):
            server = _string(block, "server_name") or _string(block, "server_label")
            name = _string(block, "name") or kind
            call_id = _string(block, "call_id") or _string(block, "id")
            yield _call(f"{server}__{name}" if server else name, call_id, block)
    for call in (
        *dicts(body.get("tool_calls")),
        *dicts(body.get("toolCalls")),
        *dicts([body.get("function_call")]),
    ):
        inner = (call, *dicts([call.get("function")]), *dicts([call.get("custom")]))
        name = next((found for part in inner if (found := _string(part, "name"))), "")
        yield _call(name, _string(call, "id"), *inner)


def _call(name: str, call_id: str, *blocks: Record) -> ToolCall:
    values = (
        block[key]
        for block in blocks
        for key in ("input", "arguments", "args", "parameters", "action", "command")
        if block.get(key)
    )
    arguments = list(values)
    local = bool(_SHELLS.fullmatch(name)) and bool(arguments) and all(map(commands.is_local, arguments))
    return ToolCall(name, call_id, local)


def _find_results(body: Record) -> Iterator[ToolCall]:
    for block in dicts(body.get("content")):
        kind = _string(block, "type")
        if kind.endswith("tool_result"):
            # For Anthropic's server tools, the type contains the name of the tool.
            name = "" if kind == "tool_result" else kind
            yield _result(name, _string(block, "tool_use_id"), block.get("content"))
    if body.get("role") in _ANSWERING or "toolName" in body:
        name = _string(body, "toolName") or _string(body, "name")
        answered = _string(body, "tool_call_id") or _string(body, "toolCallId")
        yield _result(name, answered, body.get("content"))
    if _string(body, "type").endswith("_call_output"):
        yield _result("", _string(body, "call_id"), body.get("output"))


#: A hit of `memory_search` and other tools of ours whose words are a stranger's, or an agent's after a stranger's.
_MARK = re.compile(r'\\?"trust\\?"\s{0,4}:\s{0,4}\\?"(?:untrusted|relayed)')


def _result(name: str, call_id: str, content: object) -> ToolCall:
    found = [content, *(block.get("text") for block in dicts(content))]
    texts = [text for text in found if isinstance(text, str)]
    marked = any(_MARK.search(text) for text in texts)
    return ToolCall(
        name, call_id, untrusted=marked, written=tuple(ref for text in texts for ref in _refs(text))
    )


def _refs(text: str) -> Iterator[str]:
    """Yield the id of the entry or the path of the note that a result of `memory_store` or `memory_save` names.

    The result of another tool may look the same. Its references only ever lower the trust of what agents wrote.
    """
    if "{" not in text or len(text) > MAX_RESULT:
        return
    try:
        result, _ = json.JSONDecoder().raw_decode(text, text.index("{"))  # hosts write lines around it
    except (ValueError, RecursionError):
        return
    for entry in dicts([result.get("memory")]) if "action" in result else ():
        yield _string(entry, "id")
    if result.get("saved") is True:
        yield _string(result, "path")


def dicts(value: object) -> list[Record]:
    """Return the objects in a list; none if it is not a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _string(record: Record, key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""
