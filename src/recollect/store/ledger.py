"""The recall ledger: what entered which prompt, when, and why. It holds references and reasons, not the texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from recollect.errors import NotFound
from recollect.records import Considered, Part, Recall
from recollect.store.database import Database

KEPT_QUERY_CHARS = 500


class Ledger:
    """The ledger of one ``memory.db``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, recall: Recall, used: Sequence[str]) -> None:
        """Note a recall, and count the entries that entered."""
        head = (recall.id, recall.at, recall.door, recall.session, recall.query[:KEPT_QUERY_CHARS])
        rows = [
            (recall.id, place, one.kind, one.ref, one.entered, one.reason, one.score, _packed(one.parts))
            for place, one in enumerate(recall.considered)
        ]
        with self._database.write() as connection:
            size = (recall.characters, recall.tokens)
            connection.execute("insert into recalls values(?, ?, ?, ?, ?, ?, ?)", (*head, *size))
            connection.executemany("insert into recalled values(?, ?, ?, ?, ?, ?, ?, ?)", rows)
            connection.executemany(
                "update entries set access_count = access_count + 1, last_accessed_at = ? where id = ?",
                [(recall.at, entry_id) for entry_id in used],
            )

    def get(self, recall_id: str) -> Recall:
        """A recall by its id, or by the beginning of it."""
        head = "id, at, door, session, query, characters, tokens"
        with self._database.snapshot() as connection:
            found: Any = connection.execute(
                f"select {head} from recalls where substr(id, 1, length(?1)) = ?1 limit 2",  # noqa: S608
                (recall_id,),
            ).fetchall()
            if not recall_id or len(found) != 1:
                raise NotFound(f"there is no recall {recall_id!r}")
            rows: Any = connection.execute(
                "select kind, ref, entered, reason, score, parts from recalled where recall_id = ? order by position",
                (found[0][0],),
            )
            id_, at, door, session, query, characters, tokens = found[0]
            considered = tuple(_considered(*row) for row in rows)
            return Recall(id_, at, door, session, query, characters, tokens, considered)

    def of_entry(self, entry_id: str) -> list[tuple[str, float]]:
        """The recalls by which an entry has entered a prompt: id and time, newest first."""
        statement = (
            "select r.id, r.at from recalled c join recalls r on r.id = c.recall_id"
            " where c.ref = ? and c.entered order by r.at desc"
        )
        with self._database.read() as connection:
            rows: Any = connection.execute(statement, (entry_id,))
            return [(str(row[0]), float(row[1])) for row in rows]


def _packed(parts: Sequence[Part]) -> str:
    return json.dumps([asdict(part) for part in parts], ensure_ascii=False)


def _considered(kind: str, ref: str, entered: int, reason: str, score: float, parts: str) -> Considered:
    found = tuple(Part(**part) for part in json.loads(parts))
    return Considered(kind, ref, bool(entered), reason, score, found)
