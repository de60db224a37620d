"""Conversations in the exports of Claude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from memoriter.extensions.importing import Conversation, ConversationImporter, Said, seconds


def read_claude(record: Mapping[str, Any]) -> Conversation | None:
    """Return one conversation of Claude; None if nothing was said in it."""
    found = tuple(_claude_messages(record))
    id_ = record.get("uuid")
    return Conversation(str(id_), str(record.get("name") or ""), found) if found and id_ else None


def _claude_messages(record: Mapping[str, Any]) -> Iterator[Said]:
    roles: Mapping[object, Literal["user", "assistant"]] = {"human": "user", "assistant": "assistant"}
    for message in record.get("chat_messages") or ():
        role = roles.get(str(message.get("sender")).lower()) if isinstance(message, dict) else None
        if role is None:
            continue
        blocks = [block for block in message.get("content") or () if isinstance(block, dict)]
        words = [block.get("text") for block in blocks if block.get("type") == "text"]
        text = "\n".join(word for word in words if isinstance(word, str)).strip()
        text = text or str(message.get("text") or "").strip()
        if text:
            at = seconds(message.get("created_at") or record.get("created_at"))
            yield Said(str(message.get("uuid")), role, text, at)


CLAUDE = ConversationImporter("Claude", "chat_messages", read_claude)
