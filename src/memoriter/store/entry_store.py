"""The source of truth for entries: ``memory.db``, or tables on a server. A change is durable before its method returns.

Every change is an event with the entry before and after it, so it can be shown and undone. Keywords and vectors are not
stored here: an index follows the sequence numbers of the events.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from memoriter.errors import EditConflict, NotFound
from memoriter.records import Chunk, Document, Entry, EntryEvent, EntryState, referenced_id
from memoriter.sentences import sentence
from memoriter.store import entry_rows
from memoriter.store.database import Database
from memoriter.store.entry_lists import EntryLists
from memoriter.store.entry_rows import APPLICATION_ID, MIGRATIONS, EntryFilter
from memoriter.store.erasure import Erasure
from memoriter.store.ledger import Ledger
from memoriter.store.protocol import NO_LIMIT, Connection, Transactions, value
from memoriter.store.retention import Retention
from memoriter.text.words import normal_form

#: Maximum number of ids that the error for an ambiguous prefix lists.
MAX_CANDIDATES = 5

#: Number of steps that one statement reads.
STEPS_AT_ONCE = 200

IN_FORCE = EntryFilter()
#: The states of entries in the index. What is not in force leads to what is, or answers about an earlier day.
INDEXED: tuple[EntryState, ...] = ("active", "superseded", "expired")

#: The work after which no entry that was added by hand expires unless its owner wants that.
LASTING = "by hand lasts"
_IDENTITY = "insert into meta(key, value) values(?, ?) on conflict do nothing"


class Tombstone(NamedTuple):
    """The mark of a forgotten text."""

    #: The number of the event that forgot it.
    seq: int
    by_agent: bool


def _in_chain(known: Mapping[str, Entry], entry: Entry | None, at: float | None) -> Entry | None:
    """Return the entry of a chain that was valid at a time, or the last one."""
    seen = set[str]()
    while entry and entry.id not in seen:
        seen.add(entry.id)
        after = known.get(entry.superseded_by or "")
        if not entry.superseded_by if at is None else entry.was_valid(at, after):
            return entry
        entry = after
    return None


class Step(NamedTuple):
    """An event without its texts."""

    seq: int
    change: int
    entry_id: str
    kind: str
    #: Whether the event removed the entry.
    removed: bool
    #: Whether the change had to do with an entry that is erased now.
    erased: bool


@dataclass(frozen=True, slots=True)
class Edit:
    """One entry's part of a change."""

    kind: str
    #: None removes the entry; its history stays.
    after: Entry | None
    #: The entry as the caller knows it. If it was changed meanwhile, the edit is a conflict.
    before: Entry | None = None
    note: str = ""
    #: The words of a repetition, if they differ from the text of the entry.
    said: str | None = None

    @property
    def entry_id(self) -> str:
        entry = self.after or self.before
        assert entry is not None
        return entry.id


def open_file(path: Path, *, timeout_s: float = 30.0) -> Database:
    """Open the ``memory.db`` at this path."""
    return Database(
        path, application_id=APPLICATION_ID, migrations=MIGRATIONS, synchronous="FULL", timeout_s=timeout_s
    )


class EntryStore(EntryLists, Erasure):
    """The entries in one database. Safe to use from several threads and processes."""

    def __init__(self, database: Transactions) -> None:
        self.database = database
        self.ledger = Ledger(database)
        self.retention = Retention(database)
        if not self._read_identity():
            with database.write() as connection:  # the first use by this agent
                for name, size in (("store", 16), ("key", 32)):
                    connection.execute(_IDENTITY, (name, secrets.token_hex(size)))
                connection.execute(_IDENTITY, (LASTING, ""))
            self._read_identity()

    def is_first(self, work: str) -> bool:
        """Return whether this work on the entries of earlier versions has not been done, and record that it is."""
        with self.database.write() as connection:
            if value(connection, "select 1 from meta where key = ?", (work,)):
                return False
            connection.execute(_IDENTITY, (work, ""))
            return True

    def _read_identity(self) -> bool:
        with self.database.read() as connection:  # converts the error of a damaged value
            meta = dict(connection.execute("select key, value from meta where key in ('store', 'key')"))
            if not meta:
                return False
            #: An id that no other store has, and the key of the digests.
            self.store_id, self._key = str(meta["store"]), bytes.fromhex(str(meta["key"]))
            return True

    # ---- reading ---------------------------------------------------------------------------------------------

    def get(self, entry_id: str) -> Entry:
        """Return the entry with this id."""
        found = self.load([entry_id])
        if entry_id not in found:
            raise NotFound(sentence("entry.not_found", id=entry_id))
        return found[entry_id]

    def load(self, ids: Iterable[str]) -> dict[str, Entry]:
        """Return the entries with these ids that exist, by id."""
        with self.database.read() as connection:
            return entry_rows.load(connection, ids)

    def find(
        self,
        where: EntryFilter = IN_FORCE,
        limit: int | None = None,
        sort: Literal["updated", "importance"] = "updated",
    ) -> list[Entry]:
        """Return the entries that match the filter, newest first, or the most important first."""
        with self.database.read() as connection:
            narrowed, bound = entry_rows.clauses(where)
            first = "importance desc, " if sort == "importance" else ""
            rows = connection.execute(
                f"{entry_rows.SELECT} where {' and '.join(narrowed)} order by {first}updated_at desc, seq desc limit ?",
                (*bound, NO_LIMIT if limit is None else limit),
            )
            return [entry_rows.entry_of(row) for row in rows]

    def same_text(self, text: str) -> list[Entry]:
        """Return the entries with exactly this text, in any state."""
        with self.database.read() as connection:
            rows = connection.execute(f"{entry_rows.SELECT} where digest = ?", (self.digest(text),))
            return [entry_rows.entry_of(row) for row in rows]

    def complete_id(self, beginning: str) -> str:
        """Return the one id that starts with a prefix, with or without ``entry:`` before it.

        People type eight characters of thirty-six, and agents repeat an id as an answer showed it.
        """
        prefix = (referenced_id(beginning) or beginning).strip().lower()
        statement = "select id from entries where substr(id, 1, length(?1)) = ?1 union"
        statement += " select entry_id from events where substr(entry_id, 1, length(?1)) = ?1 limit ?2"
        with self.database.read() as connection:
            found = [str(row[0]) for row in connection.execute(statement, (prefix, MAX_CANDIDATES + 1))]
        if not prefix or not found:
            raise NotFound(sentence("entry.not_found", id=beginning))
        if len(found) > 1:
            shown = [*found[:MAX_CANDIDATES], *(["…"] if len(found) > MAX_CANDIDATES else [])]
            raise NotFound(sentence("entry.ambiguous", id=beginning, candidates=", ".join(shown)))
        return found[0]

    # ---- changing --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything inside in one transaction: all of it is on disk at the end, or nothing."""
        with self.database.write():
            yield

    def apply(self, edits: Sequence[Edit], *, at: float, by: str) -> tuple[Entry, ...]:
        """Make a change, all of it or nothing, and return the changed entries. It is on disk when this returns."""
        with self.database.write() as connection:
            first = entry_rows.next_seq(connection)
            made = [self._edit(connection, edit, at=at, by=by, change=first) for edit in edits]
        return tuple(entry for entry in made if entry is not None)

    def _edit(self, connection: Connection, edit: Edit, *, at: float, by: str, change: int) -> Entry | None:
        stored = entry_rows.load(connection, [edit.entry_id]).get(edit.entry_id)
        if (stored.seq if stored else None) != (edit.before.seq if edit.before else None):
            raise EditConflict(sentence("entry.changed", id=edit.entry_id))
        seq = entry_rows.next_seq(connection)
        after = replace(edit.after, seq=seq) if edit.after else None
        if after is None:
            connection.execute("delete from entries where id = ?", (edit.entry_id,))
        else:
            entry_rows.put(connection, after, self.digest(after.text))
        event = EntryEvent(seq, change, at, edit.kind, edit.entry_id, by, edit.note, stored, after, edit.said)
        entry_rows.add_event(connection, event)
        return after

    def import_entry(
        self, entry: Entry, history: Sequence[EntryEvent], numbers: dict[int, int], *, at: float, by: str
    ) -> int:
        """Add an entry and its events under new numbers, and return the newest number.

        Without a history, the import is the first event.

        ``numbers`` maps the old number of a change to the new one, because several entries can share a change.
        """
        arrival = EntryEvent(0, 0, at, "import", entry.id, by, "from another program", None, entry)
        with self.database.write() as connection:
            seq = 0
            for event in history or (arrival,):
                seq = entry_rows.next_seq(connection)
                change = numbers.setdefault(event.change, seq) if history else seq
                after = replace(event.after, seq=seq) if event.after else None
                entry_rows.add_event(connection, replace(event, seq=seq, change=change, after=after))
            entry_rows.put(connection, replace(entry, seq=seq), self.digest(entry.text))
        return seq

    def touch(self, ids: Iterable[str], at: float) -> None:
        """Count that these entries were used. This adds no event, because the entries do not change."""
        with self.database.write() as connection:
            connection.executemany(
                "update entries set access_count = access_count + 1, last_accessed_at = ? where id = ?",
                [(at, entry_id) for entry_id in ids],
            )

    # ---- history ---------------------------------------------------------------------------------------------

    def seq(self) -> int:
        """Return the number of the newest event; 0 before the first."""
        with self.database.read() as connection:
            return entry_rows.last_seq(connection)

    def mark(self, seq: int) -> str:
        """Return a digest of the event with this number. A diverged copy of the database has another event there.

        Erasing a text does not change the mark.
        """
        with self.database.read() as connection:
            rows: Any = connection.execute(
                "select at, kind, entry_id from events where seq = ?", (seq,)
            ).fetchall()
        return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]

    def changed_since(self, seq: int) -> list[str]:
        """Return the ids of the entries that changed after this event, in the order of their last change."""
        with self.database.read() as connection:
            rows = connection.execute(
                "select entry_id from events where seq > ? group by entry_id order by max(seq)", (seq,)
            )
            return [str(row[0]) for row in rows]

    def documents(self, ids: Sequence[str]) -> dict[str, tuple[Document, list[Chunk]]]:
        """Return the entries with these ids that have a state in `INDEXED`, as the index stores them."""
        entries = self.load(ids)
        return {
            id_: entry_rows.document_of(entry) for id_, entry in entries.items() if entry.state in INDEXED
        }

    def successors(self, entries: Mapping[str, Entry], at: float | None = None) -> dict[str, Entry]:
        """Return for each entry the one that says now what it said: itself, or the end of a chain of superseded ones.

        A chain that ends in an entry that was removed leads nowhere. ``at`` asks for the one that was valid then.
        """
        known = dict(entries)
        while ahead := {one.superseded_by for one in known.values() if one.superseded_by} - known.keys():
            loaded = self.load(ahead)
            if not loaded:
                break
            known |= loaded
        return {id_: found for id_, entry in entries.items() if (found := _in_chain(known, entry, at))}

    def history(self, entry_id: str) -> list[EntryEvent]:
        """Return every event of an entry, oldest first."""
        with self.database.read() as connection:
            return entry_rows.events(connection, "entry_id = ?", entry_id)

    def newest_steps(self, entry_id: str | None = None) -> Iterator[Step]:
        """Yield the steps of one entry or of all, newest first. They are read in parts as the caller needs them."""
        only, bound = ("", ()) if entry_id is None else (" and entry_id = ?", (entry_id,))
        erased = "exists(select 1 from events e where e.change = v.change and e.before is null and e.after is null)"
        statement = (
            f"select seq, change, entry_id, kind, after is null, {erased} from events v where seq < ?{only}"  # noqa: S608
        )
        before = self.seq() + 1
        while before:
            with self.database.read() as connection:
                rows: Any = connection.execute(
                    f"{statement} order by seq desc limit {STEPS_AT_ONCE}", (before, *bound)
                ).fetchall()
            yield from (Step(*row) for row in rows)
            before = rows[-1][0] if len(rows) == STEPS_AT_ONCE else 0

    def change(self, number: int) -> list[EntryEvent]:
        """Return the events of a change."""
        with self.database.read() as connection:
            return entry_rows.events(connection, "change = ?", number)

    # ---- digests and tombstones ------------------------------------------------------------------------------

    def digest(self, text: str) -> str:
        """Return a keyed digest, for places where the text itself must not be stored."""
        return digest(self._key, text)

    def tombstone(self, text: str) -> Tombstone | None:
        """Return the tombstone of a text; None if it was not forgotten."""
        asked = "select t.seq, e.by from tombstones t left join events e on e.seq = t.seq where t.digest = ?"
        with self.database.read() as connection:
            found: Any = connection.execute(asked, (self.digest(text),)).fetchall()
        return Tombstone(int(found[0][0]), found[0][1] == "agent") if found else None

    def clear_tombstone(self, text: str) -> None:
        """Delete the tombstone of a text that was stored again on purpose."""
        with self.database.write() as connection:
            connection.execute("delete from tombstones where digest = ?", (self.digest(text),))

    # ---- health ----------------------------------------------------------------------------------------------

    def check(self, *, deep: bool = False) -> list[str]:
        """Return what is wrong with the database, one sentence each. ``deep`` compares rows with their checksums."""
        return self.database.check(deep=deep)

    def external_changes(self) -> int:
        """Return a number that changes whenever another process changes the entries."""
        number = self.database.changes_of_others()
        return self.seq() if number is None else number

    def close(self) -> None:
        """Close every connection."""
        self.database.close()

    def __enter__(self) -> EntryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Clock = Callable[[], float]


def digest(key: bytes, text: str) -> str:
    """Return a keyed digest of the text's normal form.

    It shows whether two texts are the same without storing either, as a tombstone requires.
    """
    return hmac.new(key, normal_form(text).encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
