"""Removes every copy of an entry from ``memory.db``: its row, its texts in the history, its traces in the ledger.

What remains is the fact and the time, and a keyed digest that recognises the same text. The bytes are gone because the
database overwrites what it deletes and its log is truncated.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace

from memoriter.records import Entry, EntryEvent, text_hash
from memoriter.store import entry_rows, ledger
from memoriter.store.ledger import Quotes, RecallFilter
from memoriter.store.protocol import Connection, Transactions, value

NO_QUOTES = Quotes()

# An entry and the version merged from it say the same, and so do two entries with one digest: forget them together.
# The last lines cover a change that was undone: its entry is gone, but its text is still in the history. A run of tidy
# is one change of many entries, so the older entry must name the newer one.
_RELATIVES = """
    with family(id) as (select value from json_each(?))
        select e.id from entries e join family f on e.superseded_by = f.id
            and exists(select 1 from events v where v.entry_id = f.id and v.kind = 'merge'
                or v.entry_id = e.id and v.kind = 'absorb')
        union select e.superseded_by from entries e join family f on e.id = f.id
            and exists(select 1 from events v where v.entry_id = e.superseded_by and v.kind = 'merge'
                or v.entry_id = e.id and v.kind = 'absorb')
        union select e.id from entries o join family f on o.id = f.id join entries e on e.digest = o.digest
        union select v.entry_id from family f join events s on s.entry_id = f.id and s.kind = 'supersede'
            join events v on v.change = s.change and v.after is not null and s.after like '%' || v.entry_id || '%'
            and (v.kind = 'merge' or not exists(select 1 from entries e where e.id = v.entry_id))"""

# What an undo has removed: the last event has the entry before it, and none after it.
_UNDONE = """
    select v.before from events v where v.kind = 'undo' and v.after is null and v.before is not null
    and not exists(select 1 from entries e where e.id = v.entry_id)
    and v.seq = (select max(n.seq) from events n where n.entry_id = v.entry_id) order by v.seq desc"""

_CHANGED = """
    select count(*) from events where seq > ? and (kind in ('forget', 'purge')
    or entry_id in (select value from json_each(?)))"""

_UNFINISHED = "insert into unfinished(hash) values(?) on conflict do nothing"
_TOMBSTONE = """
    insert into tombstones(digest, at, seq) values(?, ?, ?)
    on conflict(digest) do update set at = excluded.at, seq = excluded.seq"""
# A cleanup erases what was hidden before. Who hid it decides who may say it again.
_TOMBSTONE_IF_NEW = "insert into tombstones(digest, at, seq) values(?, ?, ?) on conflict do nothing"
_RESTORE = """
    update entries set state = 'active', superseded_by = null, updated_at = ?, seq = ? where id = ?"""


class Erasure(ABC):
    """Removes entries from one database."""

    database: Transactions

    @abstractmethod
    def digest(self, text: str) -> str:
        """Return a keyed digest, for places where the text itself must not be stored."""

    def family(self, ids: Iterable[str]) -> list[str]:
        """Return these entries and the versions merged with them."""
        with self.database.read() as connection:
            found = list(dict.fromkeys(ids))
            new = found
            while new:
                rows = connection.execute(_RELATIVES, (json.dumps(new),)).fetchall()
                new = [str(row[0]) for row in rows if row[0] not in found]
                found = [*found, *new]
            return found

    def texts(self, ids: Iterable[str]) -> list[str]:
        """Return every text that these entries ever had."""
        with self.database.read() as connection:
            return sorted({text for id_ in ids for text in _texts(connection, id_)})

    def undone(self) -> list[Entry]:
        """Return the entries that were undone and are not erased, newest first. No list of entries has them."""
        with self.database.read() as connection:
            rows = connection.execute(_UNDONE)
            return [entry for row in rows if (entry := entry_rows.unpack_entry(str(row[0])))]

    def texts_without(self, ids: Iterable[str]) -> list[str]:
        """Return the texts of all entries but these, in any state."""
        with self.database.read() as connection:
            statement = "select text from entries where id not in (select value from json_each(?))"
            return [str(row[0]) for row in connection.execute(statement, (json.dumps(list(ids)),))]

    def erased_since(self, seq: int, ids: Iterable[str]) -> bool:
        """Return whether any entry was erased after the event with this number, or one of these was changed."""
        with self.database.read() as connection:
            return bool(value(connection, _CHANGED, (seq, json.dumps(list(ids)))))

    def add_tombstone(self, text: str, *, at: float, seq: int) -> None:
        """Prevent a text from being captured again. ``seq`` is the number of the event that forgot it."""
        with self.database.write() as connection:
            connection.execute(_TOMBSTONE, (self.digest(text), at, seq))

    def quotes(self, ids: Sequence[str], words: Iterable[str], known: Quotes = NO_QUOTES) -> Quotes:
        """Return what the ledger says about these entries or in these words, beyond what is known."""
        with self.database.snapshot() as connection:
            return ledger.find_quotes(connection, ids, words, known)

    def erase(self, ids: Iterable[str], quotes: Quotes, *, at: float, by: str, tombstones: bool) -> None:
        """Erase entries, their history, and what the ledger says about them.

        ``tombstones`` prevents the same texts from being captured again, and restores the entries that these had
        superseded.
        """
        with self.database.write() as connection:
            for entry_id in list(ids):
                self._erase(connection, entry_id, at=at, by=by, tombstones=tombstones)
                if tombstones:
                    _restore_older(connection, entry_id, at=at, by=by)
            ledger.clear_quotes(connection, quotes)

    def _erase(self, connection: Connection, entry_id: str, *, at: float, by: str, tombstones: bool) -> None:
        all_texts = _texts(connection, entry_id)
        seq = entry_rows.next_seq(connection)
        connection.execute("delete from entries where id = ?", (entry_id,))
        connection.execute(
            "update events set before = null, after = null, said = null, note = '' where entry_id = ?",
            (entry_id,),
        )
        kind = "forget" if tombstones else "purge"
        entry_rows.add_event(connection, EntryEvent(seq, seq, at, kind, entry_id, by, "", None, None))
        for text in all_texts:
            connection.execute(_UNFINISHED, (text_hash(text),))
            if tombstones:
                statement = _TOMBSTONE_IF_NEW if by == "cleanup" else _TOMBSTONE
                connection.execute(statement, (self.digest(text), at, seq))

    def erase_recalls(self, where: RecallFilter) -> None:
        """Clear the queries and the session of recalls."""
        with self.database.write() as connection:
            ledger.erase_recalls(connection, where)

    def unfinished(self) -> list[str]:
        """Return the names of vectors that are not erased yet."""
        with self.database.read() as connection:
            return [str(row[0]) for row in connection.execute("select hash from unfinished")]

    def finish(self, hashes: Iterable[str]) -> None:
        """Record that these vectors are erased."""
        with self.database.write() as connection:
            connection.executemany("delete from unfinished where hash = ?", [(hash_,) for hash_ in hashes])


def _texts(connection: Connection, entry_id: str) -> set[str]:
    """Return every text that an entry ever had."""
    events = entry_rows.events(connection, "entry_id = ?", entry_id)
    found = {state.text for event in events for state in (event.before, event.after) if state}
    found |= {event.said for event in events if event.said}
    return found | {entry.text for entry in entry_rows.load(connection, [entry_id]).values()}


def _restore_older(connection: Connection, entry_id: str, *, at: float, by: str) -> None:
    """Put the entries in force again that a forgotten one had superseded. Otherwise no entry would say either."""
    change = entry_rows.last_seq(connection)
    rows = connection.execute(f"{entry_rows.SELECT} where superseded_by = ?", (entry_id,)).fetchall()
    for old in map(entry_rows.entry_of, rows):
        seq = entry_rows.next_seq(connection)
        connection.execute(_RESTORE, (at, seq, old.id))
        new = replace(old, state="active", superseded_by=None, updated_at=at, seq=seq)
        entry_rows.add_event(connection, EntryEvent(seq, change, at, "restore", old.id, by, "", old, new))
