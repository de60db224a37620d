"""Removes every copy of an entry from ``memory.db``: its row, its texts in the history, its traces in the ledger.

What remains is the fact and the time, and a keyed digest that recognises the same text. The bytes are gone because the
database overwrites what it deletes and its log is truncated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import replace

from memoriter.records import Entry, EntryEvent
from memoriter.store import entry_rows
from memoriter.store.protocol import Connection, value

# An entry and the version merged from it say the same, and so do two entries with one digest: forget them together.
# The last line covers a change that was undone: its entry is gone, but its text is still in the history.
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
            join events v on v.change = s.change and v.after is not null
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


def family(connection: Connection, ids: Iterable[str]) -> list[str]:
    """Return these entries and the versions merged with them."""
    found = list(dict.fromkeys(ids))
    new = found
    while new:
        rows = connection.execute(_RELATIVES, (json.dumps(new),)).fetchall()
        new = [str(row[0]) for row in rows if row[0] not in found]
        found = [*found, *new]
    return found


def undone(connection: Connection) -> list[Entry]:
    """Return the entries that were undone and are not erased, newest first. No list of entries has them."""
    rows = connection.execute(_UNDONE)
    return [entry for row in rows if (entry := entry_rows.unpack_entry(str(row[0])))]


def texts(connection: Connection, entry_id: str) -> set[str]:
    """Return every text that an entry ever had."""
    events = entry_rows.events(connection, "entry_id = ?", entry_id)
    found = {state.text for event in events for state in (event.before, event.after) if state}
    found |= {event.said for event in events if event.said}
    return found | {entry.text for entry in entry_rows.load(connection, [entry_id]).values()}


def texts_without(connection: Connection, ids: Iterable[str]) -> list[str]:
    """Return the texts of all entries but these, in any state."""
    statement = "select text from entries where id not in (select value from json_each(?))"
    return [str(row[0]) for row in connection.execute(statement, (json.dumps(list(ids)),))]


def is_changed(connection: Connection, seq: int, ids: Iterable[str]) -> bool:
    """Return whether any entry was erased after the event with this number, or one of these was changed."""
    return bool(value(connection, _CHANGED, (seq, json.dumps(list(ids)))))


def erase(
    connection: Connection,
    entry_id: str,
    *,
    at: float,
    by: str,
    kind: str,
    digest: Callable[[str], str] | None,
) -> None:
    """Erase one entry. ``digest`` makes the tombstones; None leaves none."""
    all_texts = texts(connection, entry_id)
    seq = entry_rows.next_seq(connection)
    connection.execute("delete from entries where id = ?", (entry_id,))
    connection.execute(
        "update events set before = null, after = null, said = null, note = '' where entry_id = ?",
        (entry_id,),
    )
    entry_rows.add_event(connection, EntryEvent(seq, seq, at, kind, entry_id, by, "", None, None))
    for text in all_texts:
        connection.execute(_UNFINISHED, (vector_hash(text),))
        if digest is not None:
            statement = _TOMBSTONE_IF_NEW if by == "cleanup" else _TOMBSTONE
            connection.execute(statement, (digest(text), at, seq))


def add_tombstone(connection: Connection, digest: str, *, at: float, seq: int) -> None:
    """Record that the text with this digest is forgotten, by the event with this number."""
    connection.execute(_TOMBSTONE, (digest, at, seq))


def restore_older(connection: Connection, entry_id: str, *, at: float, by: str) -> None:
    """Put the entries in force again that a forgotten one had superseded. Otherwise no entry would say either."""
    change = entry_rows.last_seq(connection)
    rows = connection.execute(f"{entry_rows.SELECT} where superseded_by = ?", (entry_id,)).fetchall()
    for old in map(entry_rows.entry_of, rows):
        seq = entry_rows.next_seq(connection)
        connection.execute(_RESTORE, (at, seq, old.id))
        new = replace(old, state="active", superseded_by=None, updated_at=at, seq=seq)
        entry_rows.add_event(connection, EntryEvent(seq, change, at, "restore", old.id, by, "", old, new))


def vector_hash(text: str) -> str:
    """Return the name of a text's vector in the derived index."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def unfinished(connection: Connection) -> list[str]:
    """Return the names of vectors that are not erased yet."""
    return [str(row[0]) for row in connection.execute("select hash from unfinished")]


def finish(connection: Connection, hashes: Iterable[str]) -> None:
    """Record that these vectors are erased."""
    connection.executemany("delete from unfinished where hash = ?", [(hash_,) for hash_ in hashes])
