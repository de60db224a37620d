"""The folder of EverOS: atomic facts become entries; episodes, profiles and knowledge become notes.

A model wrote all of them, so they have the trust `agent`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memoriter.extensions.importing import Source, seconds
from memoriter.extensions.importing.writing import Found, ProgramImporter
from memoriter.extensions.passport.formats import concept

FACTS = "atomic_fact_daily"
#: Types in the front matter of its files.
TYPES = (FACTS, "episode_daily", "user_profile", "foresight_daily", "agent_case_daily", "agent_skill")
_ENTRY = re.compile(r"<!-- entry:(\S+) -->\n(.*?)\n<!-- /entry:\1 -->", re.DOTALL)
_FIELD = re.compile(r"^\*\*(\w+)\*\*: (.*)$", re.MULTILINE)
_FACT = re.compile(r"^### Fact\n(.+)", re.MULTILINE | re.DOTALL)


def _recognises(source: Source) -> bool:
    """Return whether a folder has a file of EverOS."""
    heads = (found[0] for text in source.notes.values() if (found := concept(text)))
    return any(head.get("type") in TYPES and "track" in head for head in heads)


def _read(source: Source) -> Found:
    """Return the facts, and the other files as notes."""
    concepts = {file: found for file, text in source.notes.items() if (found := concept(text))}
    facts = [found for found in concepts.values() if found[0].get("type") == FACTS]
    others = [file for file, (head, _) in concepts.items() if head.get("type") != FACTS]
    return Found([record for head, body in facts for record in _facts(head, body)], notes=others)


EVEROS = ProgramImporter("everos", _recognises, _read)


def _facts(head: Mapping[str, Any], body: str) -> Iterator[dict[str, Any]]:
    """Yield the facts of a day, without those that EverOS has replaced."""
    user, replaced = str(head.get("user_id") or ""), head.get("deprecated_entries") or {}
    for found in _ENTRY.finditer(body):
        fields, fact = dict(_FIELD.findall(found[2])), _FACT.search(found[2])
        if fact and found[1] not in replaced:
            yield {
                "id": f"everos:{user}:{found[1]}",
                "text": fact[1],
                "created_at": seconds(fields.get("timestamp")),
                "session": fields.get("session_id"),
                "user_id": user,
            }
