"""The keyword leg: FTS5 over our own tokens, asked so that any query is bounded.

It ranks chunks by BM25. Which tokens a text or a question has is decided by ``memoriter.text``; how this leg is
weighed against the vectors is decided by retrieval.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import apsw

from memoriter.records import Chunk, Source
from memoriter.store.connection import value
from memoriter.text import date_tokens, tokenize

TITLE_WEIGHT = 2.0  #: of a match in headings, path and date, against 1 in the text
MAX_LENGTH = 64  #: characters of a token; no longer one is ever indexed
MAX_LOOKED_UP = 256  #: terms of one query whose frequency is asked for
SATURATED = 2.2  #: what FTS5's BM25 gives for a term's weight when it is there endlessly often: k1 + 1
MAX_TERMS = 64  #: of those, that are searched for; the rarest are kept
MIN_BUDGET = 5_000  #: matching rows that may always be ranked; each costs about 1 µs
COMMON = 2_000  #: chunks that hold a term, from which the number is remembered
BUDGET_SHARE = 0.2  #: of all rows, that may be ranked in a larger index

# What the FTS5 tokenizer of the schema keeps together: a token is one such run, any other text is its runs.
_RUN = re.compile(r"[0-9A-Za-z_\-./:@#+\u0080-\ud7ff\ue000-\U0010ffff]+")


_BM25 = f"bm25({TITLE_WEIGHT}, 1.0)"

# With huge column weights every count is as good as endless, and BM25 says only which terms are there.
_HELD = "bm25(f.chunks_fts, 1e6, 1e6)"

# Sorted by SQLite: to sort by itself, FTS5 runs a second statement, which weighs every term once more.
_UNFILTERED = f"""
    select f.rowid, bm25(f.chunks_fts, {TITLE_WEIGHT}, 1.0) as score, {_HELD} from chunks_fts f
    where f.chunks_fts match :query and f.rowid > :after order by score, f.rowid limit :limit"""  # noqa: S608 - constants

_TERMS = "select t.term, t.doc from json_each(?) wanted cross join chunks_terms t on t.term = wanted.value"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which chunks may be found."""

    source: Source | None = None
    path_prefix: str | None = None  #: compared letter by letter: end it with "/" to mean a folder


class KeywordMatch(NamedTuple):
    """A chunk that holds at least one of the terms."""

    rowid: int
    score: float  #: > 0, larger is better: BM25
    #: The summed weight (idf) of the terms that it contains, however often.
    contained: float


def columns(chunk: Chunk) -> tuple[str, str]:
    """What FTS5 reads of a chunk: its title (headings, words of the path, date) and its body."""
    return " ".join(_title(chunk)), " ".join(tokenize(chunk.text))


def all_tokens(chunk: Chunk) -> set[str]:
    """Every token by which a chunk can be found, of its title and of its body."""
    return {*_title(chunk), *tokenize(chunk.text)}


def _title(chunk: Chunk) -> list[str]:
    title = [token for text in (*chunk.headings, chunk.path.removesuffix(".md")) for token in tokenize(text)]
    return title + date_tokens(chunk.date) if chunk.date else title


class Frequencies:
    """How many chunks hold a term. FTS5 counts by walking the term's rows, so common terms are remembered."""

    def __init__(self) -> None:
        self._common: dict[
            str, tuple[int, int, int]
        ] = {}  # chunks that hold it; newest row and all rows then

    def of(self, connection: apsw.Connection, terms: Sequence[str]) -> dict[str, int]:
        """The number for each term, 0 for one that no chunk holds; of a common one it may be some percent old."""
        if not terms:
            return {}
        runs = {term: found[0].lower() for term in terms if len(found := _RUN.findall(term)) == 1}
        now = (value(connection, "select coalesce(max(rowid), 0) from chunks"), total(connection))
        counts = {run: self._remembered(run, *now) for run in runs.values()}
        unknown = [run for run, count in counts.items() if not count]
        for run, count in connection.execute(_TERMS, (json.dumps(unknown),)) if unknown else ():
            counts[run] = count
            if count >= COMMON:
                self._common[run] = (count, *now)
        return {term: counts[runs[term]] if term in runs else 0 for term in terms}

    def _remembered(self, run: str, newest: int, rows: int) -> int:
        """The number while hardly any row has come or gone; else 0."""
        count, newest_then, rows_then = self._common.get(run, (0, 0, 0))
        little = 0.02 * rows_then
        return count if 0 <= newest - newest_then <= little and abs(rows - rows_then) <= little else 0


def total(connection: apsw.Connection) -> int:
    """How many chunks there are. FTS5 keeps the number: a varint at the head of its record of averages."""
    number = 0
    for byte in value(connection, "select block from chunks_fts_data where id = 1") or b"":
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return number


def search(
    connection: apsw.Connection,
    frequencies: Frequencies,
    terms: Sequence[str],
    *,
    limit: int,
    where: Filter,
    known: Mapping[str, int],
) -> list[KeywordMatch]:
    """The best chunks that hold any of the terms; ``known``: in how many chunks each is, where that was asked."""
    runs = list(dict.fromkeys(run for term in terms for run in _RUN.findall(term) if len(run) <= MAX_LENGTH))
    runs = runs[:MAX_LOOKED_UP]
    asked = frequencies.of(connection, [run for run in runs if run not in known])
    counts = {run: count for run in runs if (count := known[run] if run in known else asked[run])}
    rarest_first = sorted(counts, key=counts.__getitem__)[:MAX_TERMS]
    if not rarest_first or limit <= 0:
        return []
    budget = _budget(connection, sum(counts[term] for term in rarest_first))
    rare = _within(budget, rarest_first, counts)
    found = connection.execute(
        _statement(where),
        {
            "query": _expression(rare, rarest_first[len(rare) :]),
            "after": _first_row(connection, budget, counts[rare[0]]) if len(rare) == 1 else 0,
            "source": where.source,
            "prefix": where.path_prefix,
            "limit": limit,
        },
    )
    return [KeywordMatch(rowid, -rank, -saturated / SATURATED) for rowid, rank, saturated in found]


def _statement(where: Filter) -> str:
    if where.source is None and not where.path_prefix:
        return _UNFILTERED
    return _filtered(where)


def _filtered(where: Filter) -> str:
    """FTS5 sorts by itself, so the chunks are looked up best first, and only until enough pass the filter."""
    filters = []
    if where.source is not None:
        filters.append(" and c.source = :source")
    if where.path_prefix:
        filters.append(" and substr(c.path, 1, length(:prefix)) = :prefix")
    return (
        f"select f.rowid, f.rank, {_HELD} from chunks_fts f cross join chunks c on c.rowid = f.rowid"  # noqa: S608 - constants
        f" where f.chunks_fts match :query and f.rank match '{_BM25}' and f.rowid > :after"
        f"{''.join(filters)} order by f.rank limit :limit"
    )


def _budget(connection: apsw.Connection, matching: int) -> int:
    """How many rows may be ranked: what costs is ranking, not matching."""
    if matching <= MIN_BUDGET:
        return MIN_BUDGET
    return max(MIN_BUDGET, int(BUDGET_SHARE * total(connection)))


def _within(budget: int, rarest_first: Sequence[str], counts: dict[str, int]) -> list[str]:
    """The rarest terms whose rows fit the budget together; always one."""
    kept, spent = [rarest_first[0]], counts[rarest_first[0]]
    for term in rarest_first[1:]:
        spent += counts[term]
        if spent > budget:
            break
        kept.append(term)
    return kept


def _expression(rare: Sequence[str], common: Sequence[str]) -> str:
    """Any of the rare terms; the common ones only add to the score of rows that have a rare one."""
    any_rare = " OR ".join(f'"{term}"' for term in rare)
    if not common:
        return any_rare
    any_term = " OR ".join(f'"{term}"' for term in (*rare, *common))
    return f"({any_rare}) AND ({any_term})"


def _first_row(connection: apsw.Connection, budget: int, count: int) -> int:
    """Where to begin when even the rarest term alone passes the budget: only the newest rows are ranked."""
    if count <= budget:
        return 0
    newest = value(connection, "select max(rowid) from chunks")
    return int(newest - newest * budget / count)
