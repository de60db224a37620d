"""The lists that the API of supermemory returns: memories, and documents with their text.

A model wrote the memories, so they have the trust `agent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memoriter.extensions.importing import Source
from memoriter.extensions.importing.writing import import_records

if TYPE_CHECKING:
    from memoriter.hosts import ImportReport
    from memoriter.memory import Memory

#: Fields of a memory or a document that no other program has.
MARKS = ("isLatest", "containerTags", "isStatic")


class SupermemoryImporter:
    """Imports memories and documents as entries."""

    program = "supermemory"

    def recognises(self, source: Source) -> bool:
        """Return whether a record has a field of supermemory."""
        return any(mark in record for record in source.members("memories", "documents") for mark in MARKS)

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Import what is in force: neither forgotten nor replaced by a newer version."""
        found = [record for record in source.members("memories", "documents") if _text(record)]
        kept = [one for one in found if one.get("isLatest", True) and not one.get("isForgotten")]
        left = len(found) - len(kept)
        remarks = (f"Replaced and forgotten memories were left out: {left}.",) if left else ()
        records = [_record(one) for one in kept]
        return import_records(memory, self.program, source, records, remarks=remarks, dry_run=dry_run)


SUPERMEMORY = SupermemoryImporter()


def _text(record: Mapping[str, Any]) -> str:
    return str(record.get("memory") or record.get("content") or record.get("summary") or "")


def _record(one: Mapping[str, Any]) -> dict[str, Any]:
    times = one["system"] if isinstance(one.get("system"), dict) else one
    return {
        "id": f"supermemory:{one.get('id') or _text(one)}",
        "text": _text(one),
        "tags": [str(tag) for tag in one.get("containerTags") or ()],
        "created_at": times.get("createdAt"),
        "updated_at": times.get("updatedAt"),
    }
