"""Keyword search on Postgres: lists of the chunks that contain a term, ranked by BM25 as FTS5 ranks them.

A list covers 256 consecutive rows. Each of its entries says how often a chunk contains the term and how long the chunk
is. Frequencies and lengths are exact, so both stores give a chunk the same score.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from memoriter.extensions.postgres.chunks import PostgresDocuments, State
from memoriter.records import Chunk
from memoriter.store.keywords import TITLE_WEIGHT, KeywordMatch, Plan, columns, runs_of
from memoriter.store.protocol import NO_FILTER, Filter

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


class PostgresKeywords(PostgresDocuments):
    """The words of the chunks of one index."""

    # ---- writing ---------------------------------------------------------------------------------------------

    def _add_terms(self, chunks: Mapping[int, Chunk]) -> None:
        """Add the terms of chunks, by row."""
        lists: defaultdict[tuple[str, int], list[tuple[int, int, int, int]]] = defaultdict(list)
        for row, chunk in chunks.items():
            title, body = map(Counter, tokens_of(chunk))
            length = min(title.total() + body.total(), 0xFFFF)
            for term in title | body:
                counts = (min(title[term], 0xFF), min(body[term], 0xFF))
                lists[term, row // BLOCK].append((row % BLOCK, *counts, length))
        if lists:
            content = [np.array(entries, dtype=ENTRY).tobytes() for entries in lists.values()]
            self._change(_APPEND, *map(list, zip(*lists, strict=True)), content)

    def _remove_terms(self, chunks: Mapping[int, Chunk]) -> None:
        """Remove the terms of chunks, by row."""
        rows: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for row, chunk in chunks.items():
            for term in {*(tokens := tokens_of(chunk))[0], *tokens[1]}:
                rows[term, row // BLOCK].append(row % BLOCK)
        if not rows:
            return
        left = {
            (term, block): _without(content, rows[term, block])
            for term, block, content in self._fetch(_LISTS_OF, *map(list, zip(*rows, strict=True)))
        }
        shorter = {key: content for key, content in left.items() if content}
        if shorter:
            self._change(_WRITE, *map(list, zip(*shorter, strict=True)), list(shorter.values()))
        if empty := left.keys() - shorter.keys():
            self._change(_DELETE, *map(list, zip(*empty, strict=True)))

    # ---- searching -------------------------------------------------------------------------------------------

    def terms(self, terms: Sequence[str]) -> dict[str, int]:
        runs = {term: found[0] for term in terms if len(found := runs_of(term)) == 1}
        if not runs:
            return dict.fromkeys(terms, 0)
        wanted = list(set(runs.values()))
        with self._database.read() as connection:
            if connection.memo is not None and self._state().chunks <= MEMO_CHUNKS:
                # The search that follows needs the same lists.
                lists = connection.memo["lists", self.name] = self._read_lists(wanted)
                counts = {term: sum(len(content) for _, content in found) for term, found in lists.items()}
            else:
                counts = {row[0]: int(row[1]) for row in self._read(_FREQUENCIES, wanted)}
        return {term: counts.get(runs.get(term, ""), 0) // ENTRY.itemsize for term in terms}

    def total(self) -> int:
        return self._state().chunks

    def keyword(
        self,
        terms: Sequence[str],
        *,
        limit: int,
        where: Filter = NO_FILTER,
        known: Mapping[str, int] = MappingProxyType({}),
    ) -> list[KeywordMatch]:
        with self._database.snapshot():
            state = self._state()
            plan = Plan.of(terms, known, self.terms, lambda: state.chunks)
            if plan is None or limit <= 0:
                return []
            first = plan.first_row(lambda: state.next_row - 1)
            rows, scores, contained = _score(self._searched_lists(plan, first), plan, state, first)
            is_filtered = where.source is not None or bool(where.path_prefix)
            order = np.lexsort((rows, -scores))[: None if is_filtered else limit]
            ranked = (rows[order], scores[order], contained[order])
            matches = [
                KeywordMatch(*match) for match in zip(*(part.tolist() for part in ranked), strict=True)
            ]
            return self._filtered(matches, limit, where) if is_filtered else matches

    def _read_lists(self, terms: Sequence[str], first: int = 0) -> Lists:
        """Return the lists of each term, from the block of this row on."""
        found: Lists = {term: [] for term in terms}
        for term, block, content in self._fetch(_SEARCHED, list(terms), first // BLOCK):
            found[term].append((block, content))
        return found

    def _searched_lists(self, plan: Plan, first: int) -> Lists:
        """Return the lists that a search needs: all of rare terms, and those of common terms in the same blocks."""
        with self._database.read() as connection:
            known: Lists = (connection.memo or {}).get(("lists", self.name), {})
        if known.keys() >= {*plan.rare, *plan.common}:
            return {term: known[term] for term in (*plan.rare, *plan.common)}
        lists = self._read_lists(plan.rare, first)
        if plan.common:
            blocks = list({block for found in lists.values() for block, _ in found})
            lists |= {term: [] for term in plan.common}
            for term, block, content in self._fetch(_SEARCHED_BLOCKS, list(plan.common), blocks):
                lists[term].append((block, content))
        return lists

    def _filtered(self, matches: Sequence[KeywordMatch], limit: int, where: Filter) -> list[KeywordMatch]:
        """Look chunks up best first, and only until enough pass the filter."""
        conditions, bound = conditions_of(where, 3)
        statement = f"select rowid from index_chunks c where index_name = $1 and rowid = any($2){conditions}"  # noqa: S608 - constants
        passing: list[KeywordMatch] = []
        for start in range(0, len(matches), FILTERED_TOGETHER):
            group = matches[start : start + FILTERED_TOGETHER]
            allowed = {row[0] for row in self._read(statement, [match.rowid for match in group], *bound)}
            passing += [match for match in group if match.rowid in allowed]
            if len(passing) >= limit:
                break
        return passing[:limit]


Scores = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]


def tokens_of(chunk: Chunk) -> tuple[list[str], list[str]]:
    """Return the tokens of the title and of the body of a chunk."""
    title, body = columns(chunk)
    return runs_of(title), runs_of(body)


def _without(content: bytes, rows: Sequence[int]) -> bytes:
    entries = np.frombuffer(content, dtype=ENTRY)
    return entries[~np.isin(entries["at"], rows)].tobytes()


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
        idf = _weight(state.chunks, plan.counts[term])
        count = TITLE_WEIGHT * own["title"] + own["body"]
        norm = K1 * (1 - B + B * own["length"] / state.mean_length)
        scores[at] += idf * count * (K1 + 1) / (count + norm)
        contained[at] += idf
    return rows, scores, contained


def _weight(chunks: int, frequency: int) -> float:
    """Return the idf of a term as FTS5 computes it."""
    idf = math.log((max(0, chunks - frequency) + 0.5) / (frequency + 0.5))
    return idf if idf > 0 else 1e-6


def _decode(found: Sequence[tuple[int, bytes]]) -> tuple[npt.NDArray[np.int64], Entries]:
    """Return the rows of the lists of one term, and their entries."""
    entries = np.frombuffer(b"".join(content for _, content in found), dtype=ENTRY)
    sizes = [len(content) // ENTRY.itemsize for _, content in found]
    starts = np.repeat(np.array([block * BLOCK for block, _ in found], dtype=np.int64), sizes)
    return starts + entries["at"], entries


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
