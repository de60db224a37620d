"""The keyword leg: FTS5 over our own tokens, asked so that any query is bounded.

It ranks chunks by BM25. Which tokens a text or a question has is decided by ``recollect.text``; how this leg is
weighed against the vectors is decided by retrieval.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from recollect.records import Chunk, Source
from recollect.store.connection import value
from recollect.text import date_tokens, tokenize

TITLE_WEIGHT = 2.0  #: of a match in headings, path and date, against 1 in the text
MAX_TERMS = 64  #: of one query; the rarest are kept
MIN_BUDGET = 20_000  #: matching rows that may always be ranked
BUDGET_SHARE = 0.2  #: of all rows, that may be ranked in a larger index

# What the FTS5 tokenizer of the schema keeps together: a token is one such run, any other text is its runs.
_RUN = re.compile(r"[0-9A-Za-z_\-./:@#+\u0080-\ud7ff\ue000-\U0010ffff]+")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which chunks may be found."""

    source: Source | None = None
    path_prefix: str | None = None  #: compared letter by letter: end it with "/" to mean a folder


@dataclass(frozen=True, slots=True)
class KeywordMatch:
    """A chunk that holds at least one of the terms."""

    rowid: int
    score: float  #: > 0, larger is better: BM25


def columns(chunk: Chunk) -> tuple[str, str]:
    """What FTS5 reads of a chunk: its title (headings, words of the path, date) and its body."""
    title = [token for text in (*chunk.headings, chunk.path.removesuffix(".md")) for token in tokenize(text)]
    title += date_tokens(chunk.date) if chunk.date else []
    return " ".join(title), " ".join(tokenize(chunk.text))


def frequencies(connection: apsw.Connection, terms: Sequence[str]) -> dict[str, int]:
    """How many chunks hold each term; 0 for one that none holds."""
    wanted = {term: runs[0] for term in terms if len(runs := _RUN.findall(term)) == 1}
    found = connection.execute(
        "select t.term, t.doc from json_each(?) wanted cross join chunks_terms t on t.term = wanted.value",
        (json.dumps([run.lower() for run in set(wanted.values())]),),
    )
    counts = dict(found)
    return {term: counts.get(wanted.get(term, "").lower(), 0) for term in terms}


def search(
    connection: apsw.Connection, terms: Sequence[str], *, limit: int, where: Filter
) -> list[KeywordMatch]:
    """The best chunks that hold any of the terms."""
    runs = list(dict.fromkeys(run for term in terms for run in _RUN.findall(term)))
    counts = {run: count for run, count in frequencies(connection, runs).items() if count}
    rarest_first = sorted(counts, key=counts.__getitem__)[:MAX_TERMS]
    if not rarest_first or limit <= 0:
        return []
    budget = _budget(connection, sum(counts[term] for term in rarest_first))
    rare = _within(budget, rarest_first, counts)
    found = connection.execute(
        _statement(where),
        {
            "query": _expression(rare, rarest_first[len(rare) :]),
            "rank": f"bm25({TITLE_WEIGHT}, 1.0)",
            "after": _first_row(connection, budget, counts[rare[0]]) if len(rare) == 1 else 0,
            "source": where.source,
            "prefix": where.path_prefix,
            "limit": limit,
        },
    )
    return [KeywordMatch(rowid, -rank) for rowid, rank in found]


def _statement(where: Filter) -> str:
    """FTS5 sorts by itself, so the chunks are looked up best first, and only until enough pass the filter."""
    filters = []
    if where.source is not None:
        filters.append(" and c.source = :source")
    if where.path_prefix:
        filters.append(" and substr(c.path, 1, length(:prefix)) = :prefix")
    join = " cross join chunks c on c.rowid = f.rowid" if filters else ""
    return (
        f"select f.rowid, f.rank from chunks_fts f{join}"  # noqa: S608 - made of constants
        " where f.chunks_fts match :query and f.rank match :rank and f.rowid > :after"
        f"{''.join(filters)} order by f.rank limit :limit"
    )


def _budget(connection: apsw.Connection, matching: int) -> int:
    """How many rows may be ranked: what costs is ranking, not matching."""
    if matching <= MIN_BUDGET:
        return MIN_BUDGET
    return max(MIN_BUDGET, int(BUDGET_SHARE * value(connection, "select count(*) from chunks")))


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
