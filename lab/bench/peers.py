"""The same work with plain tools: the KNN of sqlite-vec, and FTS5 as in its documentation.

Each replaces one leg, without filters, snippets or explanations, as a first version would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import apsw

from lab.bench.built import DIMS
from lab.bench.vectors import Matrix, synthetic
from memoriter.extensions.sqlite_vec.table import load_vec0

TOP = 50


def plain_fts5(path: Path, texts: Iterable[str]) -> Callable[[str], list[int]]:
    """FTS5 with its default tokenizer. A query is the OR of its words, including stop words."""
    connection = apsw.Connection(str(path))
    connection.execute("create virtual table t using fts5(text)")
    with connection:
        connection.executemany("insert into t(text) values(?)", ((text,) for text in texts))

    def search(question: str) -> list[int]:
        expression = " OR ".join(f'"{word}"' for word in question.split())
        found = connection.execute(
            "select rowid from t where t match ? order by rank limit ?", (expression, TOP)
        )
        return [int(str(row[0])) for row in found]

    return search


def sqlite_vec(path: Path, size: int) -> Callable[[Matrix], list[int]]:
    """sqlite-vec with float32 and cosine."""
    connection = apsw.Connection(str(path))
    load_vec0(connection)
    connection.execute(f"create virtual table v using vec0(embedding float[{DIMS}] distance_metric=cosine)")
    with connection:
        rows = (row.tobytes() for block in synthetic(size, DIMS, seed=1) for row in block)
        connection.executemany("insert into v(embedding) values(?)", ((row,) for row in rows))

    def search(query: Matrix) -> list[int]:
        found = connection.execute(
            "select rowid from v where embedding match ? and k = ? order by distance", (query.tobytes(), TOP)
        )
        return [int(str(row[0])) for row in found]

    return search
