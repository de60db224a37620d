"""The memories of Hindsight: the archive of a bank, or a page of its API.

A model wrote the facts, so they have the trust `agent`.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from memoriter.errors import SourceError
from memoriter.extensions.importing import MAX_TEXT_BYTES, Source, seconds
from memoriter.extensions.importing.writing import import_records

if TYPE_CHECKING:
    from memoriter.hosts import ImportReport
    from memoriter.memory import Memory

MANIFEST = "manifest.json"
#: The times of a fact: when it was said, before when it happened.
TIMES = ("mentioned_at", "date", "occurred_start", "event_date", "created_at")
#: The types of entries for its types of facts.
TYPES = {"world": "fact", "experience": "project_context"}


class HindsightImporter:
    """Imports facts and observations as entries."""

    program = "hindsight"

    def recognises(self, source: Source) -> bool:
        """Return whether this is the archive of a bank, or a page of memories."""
        if source.start.startswith(b"PK\x03\x04"):
            manifest = _members(source, lambda name: name == MANIFEST)
            return any("source_bank_id" in found for found in manifest if isinstance(found, dict))
        return any("fact_type" in one and "text" in one for one in source.members("items"))

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Import the facts that Hindsight holds to be valid."""
        found = list(_facts(source))
        valid = [fact for fact in found if fact.get("state", "valid") == "valid" and fact.get("text")]
        left = len(found) - len(valid)
        remarks = (f"Facts that are no longer valid were left out: {left}.",) if left else ()
        records = [_record(fact) for fact in valid]
        return import_records(memory, self.program, source, records, remarks=remarks, dry_run=dry_run)


HINDSIGHT = HindsightImporter()


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
    found, left = list[Any](), MAX_TEXT_BYTES
    try:
        with zipfile.ZipFile(source.place) as archive:
            for name in sorted(filter(is_wanted, archive.namelist())):
                with archive.open(name) as file:
                    data = file.read(left + 1)
                left -= len(data)
                if left < 0:
                    raise SourceError(f"{source.place} expands to too many bytes. Nothing was imported.")
                found.append(json.loads(data))
    except (zipfile.BadZipFile, ValueError, RuntimeError, OSError) as error:
        raise SourceError(f"{source.place} cannot be read: {error}. Nothing was imported.") from error
    return found
