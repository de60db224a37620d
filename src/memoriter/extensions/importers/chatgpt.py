"""Conversations in the exports of ChatGPT.

ChatGPT exports a tree of messages for each conversation: an edited question or a new answer starts another branch.
Only the branch that the person saw last is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memoriter.extensions.importing import Conversation, ConversationImporter, Said, seconds

#: Kinds of content that a person or the model wrote. Others are code runs, search results and thoughts.
WRITTEN = frozenset({"text", "multimodal_text"})


def read_chatgpt(record: Mapping[str, Any]) -> Conversation | None:
    """Return one conversation of ChatGPT; None if nothing was said in it."""
    found = tuple(_chatgpt_messages(record))
    said = any(message.role != "tool" for message in found)
    id_ = record.get("conversation_id") or record.get("id")
    return Conversation(str(id_), str(record.get("title") or ""), found) if said and id_ else None


def _saved(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what ChatGPT stored in its memory: the messages to the recipient "bio"."""
    nodes = record.get("mapping")
    for node in nodes.values() if isinstance(nodes, dict) else ():
        message = node.get("message") if isinstance(node, dict) else None
        if not isinstance(message, dict) or message.get("recipient") != "bio":
            continue
        content = message.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
        session = record.get("id") or record.get("conversation_id")
        for line in "\n".join(texts).strip().split("\n"):
            if line.strip():
                found = {"text": line.strip(), "created_at": message.get("create_time"), "session": session}
                yield {**found, "id": f"{message.get('id')}:{line}", "source": "chatgpt"}


def _chatgpt_messages(record: Mapping[str, Any]) -> Iterator[Said]:
    for node in _branch(record):
        message = node.get("message")
        if not isinstance(message, dict) or not _is_shown(message):
            continue
        author = message.get("author") or {}
        role, name = author.get("role"), str(author.get("name") or "tool")
        text = _text_of(message.get("content")) if role != "tool" else f"(result of {name}, not imported)"
        if role in ("user", "assistant", "tool") and text:
            at = seconds(message.get("create_time") or record.get("create_time"))
            id_ = str(message.get("id") or node.get("id"))
            yield Said(id_, role, text, at, tool=name if role == "tool" else "")


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
    """Return whether a person saw the message: not a call of a tool, and not hidden, unless a tool wrote it."""
    if (message.get("author") or {}).get("role") == "tool":
        return True  # its text is not imported, but what the model says afterwards may be words of others
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    return not hidden and message.get("recipient") in (None, "all")


def _text_of(content: object) -> str:
    """Return the words of a message. Pictures and files are left out."""
    if not isinstance(content, dict) or content.get("content_type", "text") not in WRITTEN:
        return ""
    return "\n".join(part for part in content.get("parts") or () if isinstance(part, str)).strip()


CHATGPT = ConversationImporter("ChatGPT", "mapping", read_chatgpt, _saved)
