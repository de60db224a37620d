"""Records of the transcripts of Codex, Copilot CLI and Gemini CLI."""

from __future__ import annotations

from collections.abc import Mapping

from memoriter.sessions.outside_text import dicts

Record = Mapping[str, object]

_COPILOT_ROLES = {"user.message": "user", "assistant.message": "assistant", "tool.execution_complete": "tool"}
#: Fields of messages that Copilot CLI wrote itself.
_COPILOT_MARKS = ("source", "isAutopilotContinuation", "parentToolCallId")


def of_codex(record: Record) -> Record | None:
    """Return the message of ``{"type": "response_item", "payload": …}``."""
    payload = record.get("payload")
    return payload if record.get("type") == "response_item" and isinstance(payload, dict) else None


def of_copilot_cli(record: Record) -> Record | None:
    """Return the message or the tool result of ``{"type": …, "data": …}``."""
    data, role = record.get("data"), _COPILOT_ROLES.get(str(record.get("type")))
    if role is None or not isinstance(data, dict):
        return None
    if record.get("agentId") or any(data.get(mark) for mark in _COPILOT_MARKS):
        return {}
    [spoken, *_] = [*dicts([data.get("result")]), data]
    calls = [{**one, "id": one.get("toolCallId")} for one in dicts(data.get("toolRequests"))]
    return {**data, "content": spoken.get("content"), "role": role, "toolCalls": calls}


def of_gemini_cli(record: Record) -> Record | None:
    """Return the message of ``{"type": "user" | "gemini", "content": …}``."""
    if record.get("type") not in ("user", "gemini") or "content" not in record or "message" in record:
        return None
    results = [
        {"type": "tool_result", "tool_use_id": answer.get("id"), "content": response.get("output")}
        for part in dicts(record["content"])
        for answer in dicts([part.get("functionResponse")])
        for response in dicts([answer.get("response")])
    ]
    role = "user" if record["type"] == "user" else "assistant"
    return {**record, "role": role, "content": results or record["content"]}
