"""Records of Claude Code's transcripts: ``{"type": "user" | "assistant", "message": …}``."""

from __future__ import annotations

from collections.abc import Mapping

#: Marks of what Claude Code wrote in the name of a person, or a sub-agent said to its agent.
_MARKS = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")


def message_of(record: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the message of a record."""
    message = record.get("message")
    if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
        return None
    return {**message, "role": ""} if _is_bookkeeping(record) else message


def _is_bookkeeping(record: Mapping[str, object]) -> bool:
    origin = record.get("origin")  # of a user's message: a person, a finished task, another program
    is_program = isinstance(origin, dict) and origin.get("kind") not in (None, "human")
    return (is_program and record["type"] == "user") or any(record.get(mark) is True for mark in _MARKS)
