"""Records of the transcripts of Codex, Copilot CLI and Gemini CLI."""

from __future__ import annotations

from collections.abc import Mapping

Record = Mapping[str, object]

#: Fields of messages that Copilot CLI wrote itself.
_COPILOT_MARKS = ("source", "isAutopilotContinuation", "parentToolCallId")


def of_codex(record: Record) -> Record | None:
    """Return the message of ``{"type": "response_item", "payload": …}``."""
    payload = record.get("payload")
    return payload if record.get("type") == "response_item" and isinstance(payload, dict) else None


def of_copilot_cli(record: Record) -> Record | None:
    """Return the message of ``{"type": "user.message" | "assistant.message", "data": …}``."""
    data = record.get("data")
    if record.get("type") not in ("user.message", "assistant.message") or not isinstance(data, dict):
        return None
    if record.get("agentId") or any(data.get(mark) for mark in _COPILOT_MARKS):
        return {}
    role = str(record["type"]).partition(".")[0]
    return {**data, "role": role, "toolCalls": data.get("toolRequests")}


def of_gemini_cli(record: Record) -> Record | None:
    """Return the message of ``{"type": "user" | "gemini", "content": …}``."""
    if record.get("type") not in ("user", "gemini") or "content" not in record or "message" in record:
        return None
    return {**record, "role": "user" if record["type"] == "user" else "assistant"}
