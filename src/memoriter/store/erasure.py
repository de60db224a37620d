"""Removes every copy of an entry from ``memory.db``: its row, its texts in the history, its traces in the ledger.

What remains is the fact and the time, and a keyed digest that recognises the same text. The bytes are gone because the
database overwrites what it deletes and its log is truncated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable

import apsw

from memoriter.records import EntryEvent
from memoriter.store import entry_rows
from memoriter.store.connection import value

# An entry and the version merged from it say the same, and so do two entries with one digest: forget them together.
# The last line covers a merge that was undone: its entry is gone, but its text is still in the history.
_FAMILY = """
    with recursive family(id) as (
        select value from json_each(?)
        union select e.id from entries e join family f on e.superseded_by = f.id
            and exists(select 1 from events v where v.entry_id = f.id and v.kind = 'merge'
                or v.entry_id = e.id and v.kind = 'absorb')
        union select e.superseded_by from entries e join family f on e.id = f.id
            and exists(select 1 from events v where v.entry_id = e.superseded_by and v.kind = 'merge'
                or v.entry_id = e.id and v.kind = 'absorb')
        union select e.id from entries o join family f on o.id = f.id join entries e on e.digest = o.digest
        union select v.entry_id from family f join events s on s.entry_id = f.id and s.kind = 'supersede'
            join events v on v.change = s.change and v.kind = 'merge' and v.after is not null
    ) select id from family"""

_UNLEDGER = """
    update recalls set query = '' where query <> '' and
    (id in (select recall_id from recalled where ref = ?1) or instr(lower(query), lower(?2)))"""
# A note that entered a prompt may say the same. The block shows its lines in another form, so both are compared.
_UNBLOCK = """
    update recalls set block = '' where block <> '' and (instr(lower(block), lower(?2)) or
    id in (select recall_id from recalled where ref = ?1 or instr(lower(text), lower(?2))))"""


def family(connection: apsw.Connection, ids: Iterable[str]) -> list[str]:
    """Return these entries and the versions merged with them."""
    return [str(row[0]) for row in connection.execute(_FAMILY, (json.dumps(list(ids)),))]


def texts(connection: apsw.Connection, entry_id: str) -> set[str]:
    """Return every text that an entry ever had."""
    events = entry_rows.events(connection, "entry_id = ?", entry_id)
    found = {state.text for event in events for state in (event.before, event.after) if state}
    found |= {event.said for event in events if event.said}
    return found | {entry.text for entry in entry_rows.load(connection, [entry_id]).values()}


def erase(
    connection: apsw.Connection,
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
        connection.execute(_UNLEDGER, (entry_id, text))
        connection.execute(_UNBLOCK, (entry_id, text))
        connection.execute("update recalled set text = '' where instr(lower(text), lower(?))", (text,))
        connection.execute("insert or ignore into unfinished(hash) values(?)", (vector_hash(text),))
        if digest is not None:
            connection.execute("insert or replace into tombstones values(?, ?, ?)", (digest(text), at, seq))
    connection.execute("update recalled set reason = '', parts = '[]', text = '' where ref = ?", (entry_id,))


def vector_hash(text: str) -> str:
    """Return the name of a text's vector in the derived index."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def unfinished(connection: apsw.Connection) -> list[str]:
    """Return the names of vectors that are not erased yet."""
    return [str(row[0]) for row in connection.execute("select hash from unfinished")]


def finish(connection: apsw.Connection, hashes: Iterable[str]) -> None:
    """Record that these vectors are erased."""
    connection.executemany("delete from unfinished where hash = ?", [(hash_,) for hash_ in hashes])


def count(connection: apsw.Connection) -> int:
    """Return how many vectors are not erased yet."""
    return int(value(connection, "select count(*) from unfinished"))
