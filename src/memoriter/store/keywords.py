"""Keyword search: FTS5 over the tokens of ``memoriter.text``, ranked by BM25, with a bounded cost for any query."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw

from memoriter.records import Chunk
from memoriter.store.protocol import Filter, RowCache, row_set, value
from memoriter.text import date_tokens, token_set, tokenize

#: The weight of a match in headings, path and date, relative to 1 in the text.
TITLE_WEIGHT = 2.0
#: Longer tokens are not indexed.
MAX_TOKEN_CHARS = 64
#: The frequencies of at most this many terms of a query are looked up.
MAX_LOOKUPS = 256
#: At most this many terms are searched. The rarest are kept.
MAX_TERMS = 64
#: This many matching rows are always ranked. Each costs about 1 µs.
MIN_BUDGET = 5_000
#: The share of all rows that is ranked in a larger index.
BUDGET_SHARE = 0.2
#: The frequency of a term is cached from this many chunks on.
COMMON_TERM_CHUNKS = 2_000
#: The frequencies of at most this many other terms are kept until rows change.
MAX_FREQUENCIES = 8_192
#: The limit of BM25 in FTS5 for a term that occurs infinitely often, relative to its idf: k1 + 1.
SATURATION = 2.2

# The FTS5 tokenizer of the schema keeps such a run of characters together as one token.
_RUN = re.compile(r"[0-9A-Za-z_\-./:@#+\u0080-\ud7ff\ue000-\U0010ffff]+")


# It lowercases only ASCII. The casefolded form of some other letters, such as Cherokee, is upper case.
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

_BM25 = f"bm25({TITLE_WEIGHT}, 1.0)"

# With huge column weights every term counts as infinitely frequent, so BM25 is the idf of the terms that occur.
# Asking FTS5 for the rows of each term instead takes twice as long: 4.8 ms instead of 2.3 ms for a query of six terms
# in 10,000 chunks, 46 ms instead of 23 ms in 100,000. Looking up each row by term takes 66 ms and 208 ms.
_CONTAINED = f"-bm25(f.chunks_fts, 1e6, 1e6) / {SATURATION}"

# SQLite sorts: to sort by rank, FTS5 runs a second statement that weighs every term again.
_UNFILTERED = f"""
    select f.rowid, -bm25(f.chunks_fts, {TITLE_WEIGHT}, 1.0) as score, {_CONTAINED} from chunks_fts f
    where f.chunks_fts match :query and f.rowid > :after order by score desc, f.rowid limit :limit"""  # noqa: S608 - constants

_TERMS = "select t.term, t.doc from json_each(?) wanted cross join chunks_terms t on t.term = wanted.value"


class KeywordMatch(NamedTuple):
    """A chunk that contains at least one of the terms."""

    rowid: int
    #: BM25: greater than 0, larger is better.
    score: float
    #: The summed weight (idf) of the terms that it contains, however often.
    contained: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The rows of a query that are ranked. Ranking is expensive, so its cost has a limit for any query."""

    #: Rows with any of these terms are ranked.
    rare: Sequence[str]
    #: These terms only add to the score of rows that have a rare one.
    common: Sequence[str]
    #: The frequency of each term.
    counts: Mapping[str, int]
    #: The maximum number of rows to rank.
    budget: int

    @classmethod
    def of(
        cls,
        terms: Sequence[str],
        known: Mapping[str, int],
        look_up: Callable[[Sequence[str]], Mapping[str, int]],
        total: Callable[[], int],
    ) -> Plan | None:
        """Return the plan for these terms, or None if no chunk contains any of them."""
        runs = list(
            dict.fromkeys(run for term in terms for run in runs_of(term) if len(run) <= MAX_TOKEN_CHARS)
        )[:MAX_LOOKUPS]
        unknown = look_up([run for run in runs if run not in known])
        counts = {run: count for run in runs if (count := known[run] if run in known else unknown[run])}
        rarest_first = sorted(counts, key=counts.__getitem__)[:MAX_TERMS]
        if not rarest_first:
            return None
        matching = sum(counts[term] for term in rarest_first)
        budget = MIN_BUDGET if matching <= MIN_BUDGET else max(MIN_BUDGET, int(BUDGET_SHARE * total()))
        rare = _within(budget, rarest_first, counts)
        return cls(rare, rarest_first[len(rare) :], counts, budget)

    def first_row(self, newest: Callable[[], int]) -> int:
        """Return the row to start after. If even the rarest term exceeds the budget, only the newest are ranked."""
        count = self.counts[self.rare[0]]
        if len(self.rare) > 1 or count <= self.budget:
            return 0
        last = newest()
        return int(last - last * self.budget / count)


def runs_of(text: str) -> list[str]:
    """Return the tokens of a text that consists of tokens, as FTS5 reads them."""
    return _RUN.findall(text.translate(_ASCII_LOWER))


def _within(budget: int, rarest_first: Sequence[str], counts: dict[str, int]) -> list[str]:
    """Return the rarest terms whose rows fit the budget together, and at least one."""
    terms, spent = [rarest_first[0]], counts[rarest_first[0]]
    for term in rarest_first[1:]:
        spent += counts[term]
        if spent > budget:
            break
        terms.append(term)
    return terms


def columns(chunk: Chunk) -> tuple[str, str]:
    """Return the FTS5 columns of a chunk: title (headings, words of the path, date) and body."""
    title = [token for text in _titles(chunk) for token in tokenize(text)]
    dates = date_tokens(chunk.date) if chunk.date else []
    return " ".join(title + dates), " ".join(tokenize(chunk.text))


def contained(terms: Sequence[str], chunk: Chunk) -> tuple[str, ...]:
    """Return the terms that occur in the title or the body of a chunk."""
    texts = [token_set(text) for text in (*_titles(chunk), chunk.text)]
    dates = date_tokens(chunk.date) if chunk.date else ()
    return tuple(term for term in terms if term in dates or any(term in tokens for tokens in texts))


def _titles(chunk: Chunk) -> tuple[str, ...]:
    # The path of an entry is its random id, which would make texts of one length differ in length.
    return chunk.headings if chunk.source == "entries" else (*chunk.headings, chunk.path.removesuffix(".md"))


class Frequencies:
    """Number of chunks for each term. FTS5 counts by reading all rows of the term, so common terms are cached."""

    def __init__(self) -> None:
        #: By term: its frequency, and the newest row and the number of rows at that time.
        self._common: dict[str, tuple[int, int, int]] = {}
        self._exact = RowCache[str, int](limit=MAX_FREQUENCIES)

    def of(self, connection: apsw.Connection, terms: Sequence[str]) -> dict[str, int]:
        """Return the frequency of each term. That of a common term may be a few percent out of date."""
        if not terms:
            return {}
        runs = {term: found[0] for term in terms if len(found := runs_of(term)) == 1}
        _, newest, rows = row_set(connection)
        exact = self._exact.of(connection)
        counts = {run: self._get_cached(run, newest, rows) or exact.get(run) for run in runs.values()}
        if unknown := [run for run, count in counts.items() if count is None]:
            counted: Any = connection.execute(_TERMS, (json.dumps(unknown),))
            looked_up: dict[str, int] = dict.fromkeys(unknown, 0) | dict(counted)
            self._common |= {
                run: (count, newest, rows) for run, count in looked_up.items() if count >= COMMON_TERM_CHUNKS
            }
            exact |= looked_up
            counts |= looked_up
        return {term: counts[runs[term]] or 0 if term in runs else 0 for term in terms}

    def _get_cached(self, run: str, newest: int, rows: int) -> int:
        """Return the cached frequency if few rows were added or deleted since, else 0."""
        count, newest_then, rows_then = self._common.get(run, (0, 0, 0))
        few = 0.02 * rows_then
        return count if 0 <= newest - newest_then <= few and abs(rows - rows_then) <= few else 0


def total(connection: apsw.Connection) -> int:
    """Return the number of chunks."""
    return row_set(connection).total


def search(
    connection: apsw.Connection,
    frequencies: Frequencies,
    terms: Sequence[str],
    *,
    limit: int,
    where: Filter,
    known: Mapping[str, int],
) -> list[KeywordMatch]:
    """Return the best chunks that contain any of the terms. ``known`` has frequencies that are looked up already."""
    plan = Plan.of(terms, known, lambda runs: frequencies.of(connection, runs), lambda: total(connection))
    if plan is None or limit <= 0:
        return []
    found: Any = connection.execute(
        _statement(where),
        {
            "query": _expression(plan.rare, plan.common),
            "after": plan.first_row(lambda: int(value(connection, "select max(rowid) from chunks"))),
            "source": where.source,
            "prefix": where.path_prefix,
            "limit": limit,
        },
    )
    return list(map(KeywordMatch._make, found))


def _statement(where: Filter) -> str:
    if where.source is None and not where.path_prefix:
        return _UNFILTERED
    return _filtered_statement(where)


def _filtered_statement(where: Filter) -> str:
    """Let FTS5 sort, so that chunks are looked up best first, and only until enough pass the filter."""
    filters = []
    if where.source is not None:
        filters.append(" and c.source = :source")
    if where.path_prefix:
        filters.append(" and substr(c.path, 1, length(:prefix)) = :prefix")
    return (
        f"select f.rowid, -f.rank, {_CONTAINED} from chunks_fts f cross join chunks c on c.rowid = f.rowid"  # noqa: S608 - constants
        f" where f.chunks_fts match :query and f.rank match '{_BM25}' and f.rowid > :after"
        f"{''.join(filters)} order by f.rank limit :limit"
    )


def _expression(rare: Sequence[str], common: Sequence[str]) -> str:
    """Match any of the rare terms. Common terms only add to the score of rows that have a rare one.

    Beside common terms, a rare one is in the expression twice and counts twice. This is intended: in a large index the
    rare words of a question say most. Counted once, nDCG@10 in 18,851 chunks is 51.6 instead of 53.3.
    """
    any_rare = " OR ".join(f'"{term}"' for term in rare)
    if not common:
        return any_rare
    any_term = " OR ".join(f'"{term}"' for term in (*rare, *common))
    return f"({any_rare}) AND ({any_term})"
