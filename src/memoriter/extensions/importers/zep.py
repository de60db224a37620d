"""What the API of Zep returns, and Graphiti's edges: facts of a graph become entries, messages become sessions.

A model wrote the facts, so they have the trust `agent`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memoriter.extensions.importing import Conversation, Said, Source, seconds
from memoriter.extensions.importing.writing import Found, ProgramImporter

LISTS = ("items", "edges", "facts", "messages")


def _recognises(source: Source) -> bool:
    """Return whether a record is an edge of a graph, or a message of a thread."""
    return any(_is_fact(one) or _is_message(one) for one in source.members(*LISTS))


def _read(source: Source) -> Found:
    """Return the facts that are true today, and the messages of threads."""
    found = source.members(*LISTS)
    facts = [one for one in found if _is_fact(one)]
    kept = [one for one in facts if not one.get("invalid_at") and not one.get("expired_at")]
    left = len(facts) - len(kept)
    remarks = (f"Facts that are no longer true were left out: {left}.",) if left else ()
    return Found(map(_record, kept), _threads(found), remarks=remarks)


ZEP = ProgramImporter("zep", _recognises, _read)


def _is_fact(one: Mapping[str, Any]) -> bool:
    return bool(one.get("fact")) and "uuid" in one


def _is_message(one: Mapping[str, Any]) -> bool:
    return {"uuid", "role", "content"} <= one.keys()


def _record(fact: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": str(fact["uuid"]),
        "text": fact["fact"],
        "tags": [name for end in ("source", "target") if (name := fact.get(f"{end}_node_name"))],
        "created_at": fact.get("valid_at") or fact.get("created_at"),
    }


def _threads(found: list[Mapping[str, Any]]) -> Iterator[Conversation]:
    said = dict[str, list[Said]]()
    for one in found:
        if _is_message(one) and one["role"] in ("user", "assistant") and one["content"]:
            message = Said(str(one["uuid"]), one["role"], str(one["content"]), seconds(one.get("created_at")))
            said.setdefault(str(one.get("thread_uuid") or "thread"), []).append(message)
    for thread, messages in said.items():
        yield Conversation(thread, "", tuple(sorted(messages, key=lambda message: message.at)))
