"""The lists that the API of supermemory returns: memories, and documents with their text.

A model wrote the memories, so they have the trust `agent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memoriter.extensions.importing import Source
from memoriter.extensions.importing.writing import Found, ProgramImporter

#: Fields of a memory or a document that no other program has.
MARKS = ("isLatest", "containerTags", "isStatic")


def _recognises(source: Source) -> bool:
    """Return whether a record has a field of supermemory."""
    return any(mark in record for record in source.members("memories", "documents") for mark in MARKS)


def _read(source: Source) -> Found:
    """Return what is in force: neither forgotten nor replaced by a newer version."""
    found = [record for record in source.members("memories", "documents") if _text(record)]
    kept = [one for one in found if one.get("isLatest", True) and not one.get("isForgotten")]
    left = len(found) - len(kept)
    remarks = (f"Replaced and forgotten memories were left out: {left}.",) if left else ()
    return Found(map(_record, kept), remarks=remarks)


SUPERMEMORY = ProgramImporter("supermemory", _recognises, _read)


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
