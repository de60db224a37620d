"""The recall ledger: what entered which prompt, as it was then, when and why.

Every write limits the number of recalls, and the cleanup of entries limits their age.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from memoriter.errors import NotFound
from memoriter.records import Considered, Part, Recall, RecallHead, RecallPage
from memoriter.sentences import pack, sentence, unpack
from memoriter.store.protocol import NO_LIMIT, Connection, Transactions, value
from memoriter.text.redaction import clean_name, stored_names

KEPT_QUERY_CHARS = 500
#: Maximum number of recalls, up to 25 KB each.
MAX_RECALLS = 5_000
#: Recalls that are read together when one of their entries is forgotten.
READ_RECALLS = 250

_OLDEST = "select id from recalls order by at desc, id desc limit ? offset ?"

_PUT_HEAD = """
    insert into recalls(id, at, interface, session, query, characters, tokens, block)
    values(?, ?, ?, ?, ?, ?, ?, ?)"""
_PUT_ROW = """
    insert into recalled(recall_id, position, kind, ref, entered, reason, score, parts, text)
    values(?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_HEADS = """
    select r.id, r.at, r.interface, r.session, r.query, r.characters, r.tokens,
    (select count(*) from recalled c where c.recall_id = r.id and c.entered),
    (select count(*) from recalled c where c.recall_id = r.id and not c.entered) from recalls r"""


_HAS_WORD = "lower(r.query || ' ' || r.block || ' ' || coalesce(r.session, '')) like ? escape '!'"


def _escaped(word: str) -> str:
    """Return a word for `like`, in which some characters have a meaning."""
    return re.sub("[!%_]", r"!\g<0>", word.lower())


@dataclass(frozen=True, slots=True)
class RecallFilter:
    """A filter of recalls."""

    session: str | None = None
    interface: str | None = None
    since: float | None = None
    until: float | None = None
    #: An entry that entered the prompt.
    entry: str | None = None
    #: Words that the query, the block or the name of the session all contain.
    words: str | None = None

    def clauses(self) -> tuple[str, list[object]]:
        """Return the filter as SQL, and its values."""
        given = (
            (
                "r.session in (select value from json_each(?))",
                None if self.session is None else json.dumps(stored_names(self.session)),
            ),
            ("r.interface = ?", self.interface),
            ("r.at >= ?", self.since),
            ("r.at < ?", self.until),
            ("r.id in (select c.recall_id from recalled c where c.ref = ? and c.entered)", self.entry),
            *((_HAS_WORD, f"%{_escaped(word)}%") for word in (self.words or "").split()),
        )
        found = [(clause, one) for clause, one in given if one is not None]
        return " and ".join(["true", *(clause for clause, _ in found)]), [one for _, one in found]


class Ledger:
    """The ledger of one agent."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def write(self, recall: Recall, used: Sequence[str], *, max_recalls: int = MAX_RECALLS) -> None:
        """Write a recall, and count the entries that entered the prompt. The oldest of too many recalls are deleted."""
        session = clean_name(recall.session) if recall.session else recall.session
        head = (recall.id, recall.at, recall.interface, session, recall.query[:KEPT_QUERY_CHARS])
        rows = [
            (
                recall.id,
                place,
                one.kind,
                one.ref,
                one.entered,
                pack(one.reason),
                one.score,
                json.dumps([asdict(part) for part in one.parts], ensure_ascii=False),
                one.text,
            )
            for place, one in enumerate(recall.considered)
        ]
        with self._database.write() as connection:
            connection.execute(_PUT_HEAD, (*head, recall.characters, recall.tokens, recall.block))
            connection.executemany(_PUT_ROW, rows)
            connection.executemany(
                "update entries set access_count = access_count + 1, last_accessed_at = ? where id = ?",
                [(recall.at, entry_id) for entry_id in used],
            )
            if value(connection, "select count(*) from recalls") > max_recalls:
                # A few more than necessary, so that this does not run at every write.
                _delete(connection, _OLDEST, NO_LIMIT, max_recalls - max_recalls // 16)

    def prune(self, before: float) -> int:
        """Delete the recalls before a time and return how many there were."""
        with self._database.write() as connection:
            return _delete(connection, "select id from recalls where at < ?", before)

    def get(self, recall_id: str) -> Recall:
        """Return a recall by its id or by a unique prefix of it."""
        head = "id, at, interface, session, query, characters, tokens, block"
        with self._database.snapshot() as connection:
            found: Any = connection.execute(
                f"select {head} from recalls where substr(id, 1, length(?1)) = ?1 limit 2",  # noqa: S608
                (recall_id.lower(),),
            ).fetchall()
            if not recall_id or not found:
                raise NotFound(sentence("recall.not_found", id=recall_id))
            if len(found) > 1:
                candidates = ", ".join(str(row[0]) for row in found)
                raise NotFound(sentence("recall.ambiguous", id=recall_id, candidates=candidates))
            rows: Any = connection.execute(
                "select kind, ref, entered, reason, score, parts, text from recalled where recall_id = ? "
                "order by position",
                (found[0][0],),
            )
            id_, at, interface, session, query, characters, tokens, block = found[0]
            considered = tuple(_parse_considered(*row) for row in rows)
            return Recall(id_, at, interface, session, query, characters, tokens, considered, block)

    def of_entry(self, entry_id: str, limit: int = NO_LIMIT) -> list[RecallHead]:
        """Return the recalls through which an entry entered a prompt, newest first."""
        return list(self.page(RecallFilter(entry=entry_id), limit).recalls)

    def page(
        self, where: RecallFilter, limit: int = NO_LIMIT, after: tuple[float, str] | None = None
    ) -> RecallPage:
        """Return one page of recalls, newest first. ``after`` is the end of the previous page."""
        clauses, bound = where.clauses()
        paging = " and (r.at, r.id) < (?, ?)" if after else ""
        with self._database.snapshot() as connection:
            counted: Any = connection.execute(
                f"select count(*) from recalls r where {clauses}",  # noqa: S608
                bound,
            ).fetchall()
            rows: list[Any] = connection.execute(
                f"{_HEADS} where {clauses}{paging} order by r.at desc, r.id desc limit ?",
                (*bound, *(after or ()), limit + 1),
            ).fetchall()
        heads = tuple(RecallHead(*row) for row in rows[:limit])
        more = limit < len(rows)
        return RecallPage(heads, int(counted[0][0]), (heads[-1].at, heads[-1].id) if more else None)


@dataclass(frozen=True, slots=True)
class Quotes:
    """The places in recalls that repeat forgotten texts: rows, queries and blocks."""

    #: The recalls that were read. A recall is written once and does not change.
    read: frozenset[str] = frozenset()
    rows: tuple[tuple[str, int], ...] = ()
    queries: tuple[tuple[str], ...] = ()
    blocks: tuple[tuple[str], ...] = ()


def find_quotes(connection: Connection, ids: Sequence[str], words: Iterable[str], known: Quotes) -> Quotes:
    """Find what recalls say about forgotten entries: their own rows, and all that contains one of the words.

    Queries, blocks, quoted lines, and the matching words of notes can all repeat a forgotten text. The recalls of
    ``known`` are not read again.
    """
    wanted = tuple(word.casefold() for word in words)

    def repeats(*texts: str) -> bool:
        return any(word in text for text in map(str.casefold, texts) for word in wanted)

    new = [str(row[0]) for row in connection.execute("select id from recalls") if row[0] not in known.read]
    rows, queries, blocks = list(known.rows), list(known.queries), list(known.blocks)
    for start in range(0, len(new), READ_RECALLS):
        some = (json.dumps(new[start : start + READ_RECALLS]),)
        found: Any = connection.execute(_ROWS_OF, some).fetchall()
        named = {row[0] for row in found if row[2] in ids}
        repeating = [(one, at) for one, at, ref, *texts in found if ref in ids or repeats(*texts)]
        # The block shows lines in another form than the rows, so a row that repeats the text clears it too.
        quoting = {one for one, _ in repeating}
        heads: Any = connection.execute(_HEADS_OF, some).fetchall()
        rows += repeating
        queries += [(one,) for one, query, _ in heads if one in named or repeats(query)]
        blocks += [(one,) for one, _, block in heads if one in quoting or repeats(block)]
    return Quotes(known.read.union(new), tuple(rows), tuple(queries), tuple(blocks))


def clear_quotes(connection: Connection, quotes: Quotes) -> None:
    """Clear the places that were found."""
    connection.executemany(_CLEAR_ROW, quotes.rows)
    connection.executemany("update recalls set query = '' where id = ?", quotes.queries)
    connection.executemany("update recalls set block = '' where id = ?", quotes.blocks)


def erase_recalls(connection: Connection, where: RecallFilter) -> None:
    """Clear the queries and the session of recalls, together with the entries of that session or time."""
    clauses, bound = where.clauses()
    found = f"select r.id from recalls r where {clauses}"  # noqa: S608
    connection.execute(
        f"update recalled set reason = '', parts = '[]', text = '' where recall_id in ({found})",  # noqa: S608
        bound,
    )
    connection.execute(
        f"update recalls set session = null, query = '', block = '' where id in ({found})",  # noqa: S608
        bound,
    )


_ROWS_OF = """
    select recall_id, position, ref, reason, parts, text from recalled
    where recall_id in (select value from json_each(?))"""
_HEADS_OF = "select id, query, block from recalls where id in (select value from json_each(?))"
_CLEAR_ROW = "update recalled set reason = '', parts = '[]', text = '' where recall_id = ? and position = ?"


def _delete(connection: Connection, which: str, *bound: float) -> int:
    connection.execute(f"delete from recalled where recall_id in ({which})", bound)  # noqa: S608
    connection.execute(f"delete from recalls where id in ({which})", bound)  # noqa: S608
    return connection.changes()


def _parse_considered(
    kind: str, ref: str, entered: int, reason: str, score: float, parts: str, text: str
) -> Considered:
    found = tuple(Part(**part) for part in json.loads(parts))
    return Considered(kind, ref, bool(entered), unpack(reason), score, found, text)
