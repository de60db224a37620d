"""Keyword search on Postgres: lists of the chunks that contain a term, ranked by BM25 as FTS5 ranks them.

A list covers 256 consecutive rows. Each of its entries says how often a chunk contains the term and how long the chunk
is. Frequencies and lengths are exact, so both stores give a chunk the same score.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from memoriter.extensions.postgres.chunks import State
from memoriter.extensions.postgres.connection import PostgresConnection
from memoriter.records import Chunk
from memoriter.store.keywords import TITLE_WEIGHT, KeywordMatch, Plan, columns, runs_of
from memoriter.store.protocol import Filter

#: Rows that one list covers.
BLOCK = 256
#: One entry of a list: the row in the block, occurrences in the title and in the body, and the chunk's length.
ENTRY = np.dtype([("at", "u1"), ("title", "u1"), ("body", "u1"), ("length", "<u2")])
#: In an index of at most this many chunks, the frequencies of terms are counted in their lists, which are kept.
MEMO_CHUNKS = 20_000
#: The constants of BM25 in FTS5.
K1, B = 1.2, 0.75
#: Chunks that are checked against a filter together, best first.
FILTERED_TOGETHER = 1000

_APPEND = """
    insert into index_terms(index_name, term, block, list)
    select $1, * from unnest($2::text[], $3::integer[], $4::bytea[])
    on conflict(index_name, term, block) do update set list = index_terms.list || excluded.list"""

_LISTS_OF = """
    select w.term, w.block, t.list from unnest($2::text[], $3::integer[]) w(term, block)
    join index_terms t on t.index_name = $1 and t.term = w.term and t.block = w.block"""

_WRITE = """
    update index_terms t set list = w.list from unnest($2::text[], $3::integer[], $4::bytea[]) w(term, block, list)
    where t.index_name = $1 and t.term = w.term and t.block = w.block"""

_DELETE = """
    delete from index_terms t using unnest($2::text[], $3::integer[]) w(term, block)
    where t.index_name = $1 and t.term = w.term and t.block = w.block"""

_FREQUENCIES = """
    select term, sum(octet_length(list)) from index_terms where index_name = $1 and term = any($2) group by term"""

_SEARCHED = """
    select term, block, list from index_terms where index_name = $1 and term = any($2) and block >= $3"""
_SEARCHED_BLOCKS = """
    select term, block, list from index_terms where index_name = $1 and term = any($2) and block = any($3)"""

Entries = npt.NDArray[np.void]
Lists = dict[str, list[tuple[int, bytes]]]
"""By term: the blocks in which it occurs, and the list of each."""


# ---- writing ------------------------------------------------------------------------------------------------------


def tokens_of(chunk: Chunk) -> tuple[list[str], list[str]]:
    """Return the tokens of the title and of the body of a chunk."""
    title, body = columns(chunk)
    return runs_of(title), runs_of(body)


def length(chunk: Chunk) -> int:
    """Return the number of tokens of a chunk."""
    return sum(map(len, tokens_of(chunk)))


def add(connection: PostgresConnection, index: str, chunks: Mapping[int, Chunk]) -> None:
    """Add the terms of chunks, by row."""
    lists: defaultdict[tuple[str, int], list[tuple[int, int, int, int]]] = defaultdict(list)
    for row, chunk in chunks.items():
        title, body = map(Counter, tokens_of(chunk))
        length = min(title.total() + body.total(), 0xFFFF)
        for term in title | body:
            counts = (min(title[term], 0xFF), min(body[term], 0xFF))
            lists[term, row // BLOCK].append((row % BLOCK, *counts, length))
    if lists:
        terms, blocks = zip(*lists, strict=True)
        content = [np.array(entries, dtype=ENTRY).tobytes() for entries in lists.values()]
        connection.execute(_APPEND, (index, list(terms), list(blocks), content))


def remove(connection: PostgresConnection, index: str, chunks: Mapping[int, Chunk]) -> None:
    """Remove the terms of chunks, by row."""
    rows: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for row, chunk in chunks.items():
        for term in {*(tokens := tokens_of(chunk))[0], *tokens[1]}:
            rows[term, row // BLOCK].append(row % BLOCK)
    if not rows:
        return
    terms, blocks = zip(*rows, strict=True)
    left = {
        (term, block): _without(content, rows[term, block])
        for term, block, content in connection.fetch(_LISTS_OF, (index, list(terms), list(blocks)))
    }
    shorter = {key: content for key, content in left.items() if content}
    if shorter:
        terms, blocks = zip(*shorter, strict=True)
        connection.execute(_WRITE, (index, list(terms), list(blocks), list(shorter.values())))
    if empty := left.keys() - shorter.keys():
        terms, blocks = zip(*empty, strict=True)
        connection.execute(_DELETE, (index, list(terms), list(blocks)))


def _without(content: bytes, rows: Sequence[int]) -> bytes:
    entries = np.frombuffer(content, dtype=ENTRY)
    return entries[~np.isin(entries["at"], rows)].tobytes()


# ---- searching ----------------------------------------------------------------------------------------------------


def frequencies(
    connection: PostgresConnection, index: str, state: State, terms: Sequence[str]
) -> dict[str, int]:
    """Return how many chunks contain each term."""
    runs = {term: found[0] for term in terms if len(found := runs_of(term)) == 1}
    if not runs:
        return dict.fromkeys(terms, 0)
    wanted = list(set(runs.values()))
    if connection.memo is not None and state.chunks <= MEMO_CHUNKS:
        # The search that follows needs the same lists.
        lists = connection.memo["lists", index] = _read_lists(connection, index, wanted)
        counts = {term: sum(len(content) for _, content in found) for term, found in lists.items()}
    else:
        counts = {row[0]: int(row[1]) for row in connection.execute(_FREQUENCIES, (index, wanted))}
    return {term: counts.get(runs.get(term, ""), 0) // ENTRY.itemsize for term in terms}


def _read_lists(connection: PostgresConnection, index: str, terms: Sequence[str], first: int = 0) -> Lists:
    """Return the lists of each term, from the block of this row on."""
    found: Lists = {term: [] for term in terms}
    for term, block, content in connection.fetch(_SEARCHED, (index, list(terms), first // BLOCK)):
        found[term].append((block, content))
    return found


def _searched_lists(connection: PostgresConnection, index: str, plan: Plan, first: int) -> Lists:
    """Return the lists that a search needs: all of rare terms, and those of common terms in the same blocks."""
    known: Lists = (connection.memo or {}).get(("lists", index), {})
    if known.keys() >= {*plan.rare, *plan.common}:
        return {term: known[term] for term in (*plan.rare, *plan.common)}
    lists = _read_lists(connection, index, plan.rare, first)
    if plan.common:
        blocks = list({block for found in lists.values() for block, _ in found})
        lists |= {term: [] for term in plan.common}
        for term, block, content in connection.fetch(_SEARCHED_BLOCKS, (index, list(plan.common), blocks)):
            lists[term].append((block, content))
    return lists


def search(
    connection: PostgresConnection,
    index: str,
    state: State,
    terms: Sequence[str],
    *,
    limit: int,
    where: Filter,
    known: Mapping[str, int],
) -> list[KeywordMatch]:
    """Return the best chunks that contain any of the terms. ``known`` has frequencies that are looked up already."""
    plan = Plan.of(
        terms, known, lambda runs: frequencies(connection, index, state, runs), lambda: state.chunks
    )
    if plan is None or limit <= 0:
        return []
    first = plan.first_row(lambda: state.next_row - 1)
    rows, scores, contained = _score(_searched_lists(connection, index, plan, first), plan, state, first)
    is_filtered = where.source is not None or bool(where.path_prefix)
    order = np.lexsort((rows, -scores))[: None if is_filtered else limit]
    ranked = (rows[order], scores[order], contained[order])
    matches = [KeywordMatch(*match) for match in zip(*(part.tolist() for part in ranked), strict=True)]
    return _filtered(connection, index, matches, limit, where) if is_filtered else matches


Scores = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]


def _score(lists: Lists, plan: Plan, state: State, first: int) -> Scores:
    """Return the rows that contain a rare term, with their BM25 and the summed weight of their terms."""
    parts = {term: _decode(found) for term, found in lists.items() if found}
    rare = [parts[term][0] for term in plan.rare if term in parts]
    rows = np.unique(np.concatenate(rare)) if rare else np.empty(0, dtype=np.int64)
    rows = rows[rows > first] if first else rows
    scores, contained = np.zeros(len(rows)), np.zeros(len(rows))
    for term, (ids, entries) in parts.items():
        at = np.searchsorted(rows, ids)
        inside = at < len(rows)
        inside[inside] = rows[at[inside]] == ids[inside]
        at, own = at[inside], entries[inside]
        idf = weight(state.chunks, plan.counts[term])
        count = TITLE_WEIGHT * own["title"] + own["body"]
        norm = K1 * (1 - B + B * own["length"] / state.mean_length)
        scores[at] += idf * count * (K1 + 1) / (count + norm)
        contained[at] += idf
    return rows, scores, contained


def weight(chunks: int, frequency: int) -> float:
    """Return the idf of a term as FTS5 computes it."""
    idf = math.log((max(0, chunks - frequency) + 0.5) / (frequency + 0.5))
    return idf if idf > 0 else 1e-6


def _decode(found: Sequence[tuple[int, bytes]]) -> tuple[npt.NDArray[np.int64], Entries]:
    """Return the rows of the lists of one term, and their entries."""
    entries = np.frombuffer(b"".join(content for _, content in found), dtype=ENTRY)
    sizes = [len(content) // ENTRY.itemsize for _, content in found]
    starts = np.repeat(np.array([block * BLOCK for block, _ in found], dtype=np.int64), sizes)
    return starts + entries["at"], entries


def _filtered(
    connection: PostgresConnection, index: str, matches: Sequence[KeywordMatch], limit: int, where: Filter
) -> list[KeywordMatch]:
    """Look chunks up best first, and only until enough pass the filter."""
    passing: list[KeywordMatch] = []
    for start in range(0, len(matches), FILTERED_TOGETHER):
        group = matches[start : start + FILTERED_TOGETHER]
        allowed = filter_rows(connection, index, [match.rowid for match in group], where)
        passing += [match for match in group if match.rowid in allowed]
        if len(passing) >= limit:
            break
    return passing[:limit]


def filter_rows(connection: PostgresConnection, index: str, rows: Sequence[int], where: Filter) -> set[int]:
    """Return the rows that pass the filter."""
    conditions, bound = conditions_of(where, 3)
    statement = f"select rowid from index_chunks c where index_name = $1 and rowid = any($2){conditions}"  # noqa: S608 - constants
    return {row[0] for row in connection.execute(statement, (index, list(rows), *bound))}


def conditions_of(where: Filter, number: int) -> tuple[str, list[str]]:
    """Return the conditions of a filter on chunks ``c``, and their values from placeholder ``number`` on."""
    conditions, bound = "", []
    if where.source is not None:
        conditions += f" and c.source = ${number}"
        bound.append(str(where.source))
    if where.path_prefix:
        conditions += f" and starts_with(c.path, ${number + len(bound)})"
        bound.append(where.path_prefix)
    return conditions, bound
