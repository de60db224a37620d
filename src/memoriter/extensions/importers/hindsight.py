"""The memories of Hindsight: the archive of a bank, or a page of its API.

A model wrote the facts, so they have the trust `agent`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from memoriter.errors import SourceError
from memoriter.extensions.importing import Source, seconds
from memoriter.extensions.importing.writing import Found, ProgramImporter

MANIFEST = "manifest.json"
#: The times of a fact: when it was said, before when it happened.
TIMES = ("mentioned_at", "date", "occurred_start", "event_date", "created_at")
#: The types of entries for its types of facts.
TYPES = {"world": "fact", "experience": "project_context"}


def _recognises(source: Source) -> bool:
    """Return whether this is the archive of a bank, or a page of memories."""
    if source.start.startswith(b"PK\x03\x04"):
        manifest = _members(source, lambda name: name == MANIFEST)
        return any("source_bank_id" in found for found in manifest if isinstance(found, dict))
    return any("fact_type" in one and "text" in one for one in source.members("items"))


def _read(source: Source) -> Found:
    """Return the facts and observations that Hindsight holds to be valid."""
    found = list(_facts(source))
    valid = [fact for fact in found if fact.get("state", "valid") == "valid" and fact.get("text")]
    left = len(found) - len(valid)
    remarks = (f"Facts that are no longer valid were left out: {left}.",) if left else ()
    return Found(map(_record, valid), remarks=remarks)


HINDSIGHT = ProgramImporter("hindsight", _recognises, _read)


def _facts(source: Source) -> Iterator[Mapping[str, Any]]:
    if not source.start.startswith(b"PK\x03\x04"):
        yield from source.members("items")
        return
    for found in _members(source, lambda name: name.startswith("documents/") or name == "observations.json"):
        facts = found.get("facts") if isinstance(found, dict) else found
        for fact in facts if isinstance(facts, list) else ():
            yield {"document": found.get("id"), **fact} if isinstance(found, dict) else fact


def _record(fact: Mapping[str, Any]) -> dict[str, Any]:
    times = (seconds(fact.get(name)) for name in TIMES)
    return {
        "id": f"hindsight:{fact.get('id') or fact.get('source_id') or fact['text']}",
        "text": fact["text"],
        "type": TYPES.get(str(fact.get("fact_type")), "fact"),
        "tags": [str(tag) for tag in fact.get("tags") or ()],
        "created_at": next(filter(None, times), None),
        "session": fact.get("document_id") or fact.get("document"),
    }


def _members(source: Source, is_wanted: Any) -> list[Any]:
    """Return JSON files of an archive."""
    try:
        return [json.loads(text) for text in source.zipped(is_wanted)]
    except ValueError as error:
        raise SourceError(f"{source.place} cannot be read: {error}. Nothing was imported.") from error
