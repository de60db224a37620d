"""Conversations in the exports of ChatGPT and Claude.

ChatGPT exports a tree of messages for each conversation: an edited question or a new answer starts another branch.
Only the branch that the person saw last is imported. Claude exports a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from memoriter.importing import SealedTranscript

#: Kinds of content that a person or the model wrote. Others are code runs, search results and thoughts.
WRITTEN = frozenset({"text", "multimodal_text"})


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation."""

    id: str
    role: Literal["user", "assistant"]
    text: str
    #: Seconds since the epoch.
    at: float


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation, as it is written to a transcript."""

    id: str
    title: str
    messages: tuple[Said, ...]

    def transcript(self) -> SealedTranscript:
        """Return the conversation as a transcript. The same conversation always gives the same bytes."""
        times = [message.at for message in self.messages if message.at]
        header = {
            "type": "session",
            "id": self.id,
            "title": self.title,
            "timestamp": _iso(min(times, default=0)),
        }
        lines = [
            {
                "type": "message",
                "id": message.id,
                "timestamp": _iso(message.at),
                "sessionId": self.id,
                "message": {"role": message.role, "content": message.text},
            }
            for message in self.messages
        ]
        return SealedTranscript([header, *lines], int(max(times, default=0) * 1e9))


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def seconds(value: object) -> float:
    """Return seconds since the epoch from a number or an ISO text; 0 if there is no time."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        at = float(value) / (1000 if value > 1e11 else 1)
    else:
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            return 0.0
        at = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    return at if 0 <= at < 253_402_300_799 else 0.0


# ---- ChatGPT --------------------------------------------------------------------------------------------------


def is_chatgpt(records: object) -> bool:
    """Return whether this is ChatGPT's `conversations.json`."""
    return _all_have(records, "mapping")


def read_chatgpt(record: Mapping[str, Any]) -> Conversation | None:
    """Return one conversation of ChatGPT; None if nothing was said in it."""
    found = tuple(_chatgpt_messages(record))
    id_ = record.get("conversation_id") or record.get("id")
    return Conversation(str(id_), str(record.get("title") or ""), found) if found and id_ else None


def _chatgpt_messages(record: Mapping[str, Any]) -> Iterator[Said]:
    for node in _branch(record):
        message = node.get("message")
        if not isinstance(message, dict) or not _is_shown(message):
            continue
        role = (message.get("author") or {}).get("role")
        text = _text_of(message.get("content"))
        if role in ("user", "assistant") and text:
            at = seconds(message.get("create_time") or record.get("create_time"))
            yield Said(str(message.get("id") or node.get("id")), role, text, at)


def _branch(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the messages from the root to the one that the person saw last."""
    nodes = {key: node for key, node in (record.get("mapping") or {}).items() if isinstance(node, dict)}
    at, branch, seen = record.get("current_node"), list[Mapping[str, Any]](), set[object]()
    if at not in nodes:  # older exports do not name it: the newest message without an answer
        leaves = [key for key, node in nodes.items() if not node.get("children")]
        at = max(leaves, key=lambda key: _time_of(nodes[key]), default=None)
    while isinstance(at, str) and at in nodes and at not in seen:
        seen.add(at)
        branch.append(nodes[at])
        at = nodes[at].get("parent")
    return branch[::-1]


def _time_of(node: Mapping[str, Any]) -> float:
    return seconds((node.get("message") or {}).get("create_time"))


def _is_shown(message: Mapping[str, Any]) -> bool:
    """Return whether a person saw the message: not a call of a tool, and not hidden."""
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    return not hidden and message.get("recipient") in (None, "all")


def _text_of(content: object) -> str:
    """Return the words of a message. Pictures and files are left out."""
    if not isinstance(content, dict) or content.get("content_type", "text") not in WRITTEN:
        return ""
    return "\n".join(part for part in content.get("parts") or () if isinstance(part, str)).strip()


# ---- Claude ---------------------------------------------------------------------------------------------------


def is_claude(records: object) -> bool:
    """Return whether this is Claude's `conversations.json`."""
    return _all_have(records, "chat_messages")


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


def _all_have(records: object, name: str) -> bool:
    return (
        isinstance(records, list)
        and bool(records)
        and all(isinstance(r, dict) and name in r for r in records)
    )
