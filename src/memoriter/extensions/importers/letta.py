"""Agents of Letta: the blocks and messages of an agent file (`.af`), and the Markdown of a memory folder.

The agent wrote the blocks, so they have the trust `agent`.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from memoriter.extensions.importing import Conversation, Said, Source, seconds
from memoriter.extensions.importing.writing import Found, ProgramImporter

#: A field of a block that the agent has not learned yet: "Last name: ?".
_UNKNOWN = re.compile(r":\s*\?\s*$")
_DESCRIBED = re.compile(r"\A---\n(?:(?!---\n).*\n){0,50}?description:\s*\S")


def _recognises(source: Source) -> bool:
    """Return whether this is an agent file, or a folder with `system/` and descriptions as Letta Code keeps it."""
    if source.is_folder:
        system = (text for file, text in source.notes.items() if file.parent.name == "system")
        return any(map(_DESCRIBED.match, system))
    return any(map(_is_agent_file, source.records))


def _read(source: Source) -> Found:
    """Return each line of a block as a statement, messages, and the files of a memory folder as notes."""
    files = [] if source.is_folder else [found for found in source.records if _is_agent_file(found)]
    lines = (line for found in files for line in _lines(found))
    talks = (talk for found in files for talk in _conversations(found))
    return Found(lines, talks, source.notes)


LETTA = ProgramImporter("letta", _recognises, _read)


def _is_agent_file(found: Any) -> bool:
    """Return whether this is an agent file: with lists of agents and blocks, or the older form of one agent."""
    return isinstance(found, dict) and (
        isinstance(found.get("core_memory"), list) or {"agents", "blocks"} <= found.keys()
    )


def _lines(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for block in found.get("blocks") or found.get("core_memory") or ():
        label = str(block.get("label") or "block")
        for line in str(block.get("value") or "").splitlines():
            text = line.strip().removeprefix("- ").strip()
            if any(map(str.isalnum, text)) and not _UNKNOWN.search(text):
                at = seconds(block.get("updated_at")) or None
                yield {"id": f"letta:{label}:{text}", "text": text, "tags": [label], "created_at": at}


def _conversations(found: Mapping[str, Any]) -> Iterator[Conversation]:
    for agent in found.get("agents") or [found]:
        messages = [_said(message) for message in agent.get("messages") or () if isinstance(message, dict)]
        kept = tuple(one for one in messages if one.role in ("user", "assistant") and one.text)
        if kept:
            name = str(agent.get("name") or agent.get("id") or "agent")
            yield Conversation(name, name, kept)


def _said(message: Mapping[str, Any]) -> Said:
    content = message.get("content", message.get("text"))
    parts = content if isinstance(content, list) else [{"text": content}]
    text = "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))
    if text.startswith("{"):  # older versions wrap what a user says
        with contextlib.suppress(ValueError, AttributeError):
            text = str(json.loads(text).get("message") or "")
    at = seconds(message.get("created_at"))
    return Said(str(message.get("id") or at), message.get("role", ""), text.strip(), at)
