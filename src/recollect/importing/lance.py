"""What OpenClaw's plugin memory-lancedb keeps, read from its table; the vectors are another model's, and stay there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recollect.errors import SourceError

TABLE = "memories"
MOST = 200_000  #: rows


def rows(folder: Path, agent: str) -> list[dict[str, Any]]:
    """The memories of an agent and those of all agents, as plain JSON, oldest first; raises `SourceError`."""
    try:
        import lancedb
    except ImportError as error:
        raise SourceError(
            "its entries are kept in LanceDB: pip install 'recollect[lancedb]', then import again"
        ) from error
    try:
        table = lancedb.connect(str(folder)).open_table(TABLE)
        names = [name for name in table.schema.names if name != "vector"]
        found = table.search().select(names).limit(MOST).to_list()
    except Exception as error:  # the library raises what it likes
        raise SourceError(f"its entries cannot be read: {error}") from error
    usable = [_record(row) for row in found if _is_of(row, agent)]
    return sorted(usable, key=lambda record: (record["created_at"] or 0, record["id"]))


def _is_of(row: Mapping[str, Any], agent: str) -> bool:
    # The first row of a new table is the plugin's own, to fix its columns.
    named = row.get("id") != "__schema__" and isinstance(row.get("text"), str) and bool(row["text"].strip())
    return named and row.get("agentId") in (None, "", agent)


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    scope = row.get("scope")
    importance = row.get("importance")
    return {
        "id": str(row.get("id") or row["text"]),
        "text": row["text"],
        "category": row.get("category"),
        "importance": float(importance) if isinstance(importance, int | float) else None,
        "created_at": row.get("createdAt"),
        "source": "openclaw",
        "tags": [f"scope:{scope}"] if isinstance(scope, str) and scope else [],
    }
