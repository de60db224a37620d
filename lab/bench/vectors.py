"""Speed and recall of the vector engines, compared with sqlite-vec and plain numpy in one run.

    python -m lab.bench.vectors --sizes 10000,100000

Times are CPU milliseconds of one thread, which a busy machine changes less than wall time. Vectors are synthetic:
clusters of Zipf sizes around a common mean, like those of text encoders. Recall is relative to an exact float32 scan.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the engines are compared on one core

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from memoriter.extensions.sqlite_vec.table import load_vec0
from memoriter.records import Identity
from memoriter.store import Filter, SqliteIndex, open_index

Matrix = npt.NDArray[np.float32]
CLUSTERS = 3_000
BLOCK = 10_000
TOP = 50


@dataclass(frozen=True, slots=True)
class Row:
    """One engine at one size."""

    engine: str
    size: int
    #: CPU seconds.
    build_s: float
    #: Of the files that searches need.
    megabytes: float
    #: CPU milliseconds of the first search.
    first_ms: float
    p50_ms: float
    p95_ms: float
    recall_10: float
    recall_50: float


@dataclass(frozen=True, slots=True)
class Engine:
    """One compared engine: how it is built and searched."""

    name: str
    build_s: float
    megabytes: float
    search: Callable[[Matrix], list[int]]


# ---- vectors -------------------------------------------------------------------------------------------------


def synthetic(count: int, dims: int, seed: int) -> Iterator[Matrix]:
    """Yield unit vectors in blocks. Two random ones have a cosine of about 0.15, two of one cluster about 0.5."""
    fixed = np.random.default_rng(0)
    mean = _unit(fixed.normal(size=(1, dims)))
    centres = _unit(fixed.normal(size=(CLUSTERS, dims)))
    shares = 1 / np.arange(1, CLUSTERS + 1)
    chance = np.random.default_rng(seed)
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        of = chance.choice(CLUSTERS, size=size, p=shares / shares.sum())
        noise = _unit(chance.normal(size=(size, dims)))
        yield _unit(0.39 * mean + 0.6 * centres[of] + 0.7 * noise)


def _unit(matrix: npt.NDArray[np.floating[Any]]) -> Matrix:
    scaled: Matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    return scaled


# ---- engines -------------------------------------------------------------------------------------------------


def scan(folder: Path, size: int, identity: Identity) -> Engine:
    """The default engine, through the index as in a search."""
    index = open_index(folder)
    _fill(index, size, identity)
    started = time.process_time()
    index.refresh(identity)
    built = time.process_time() - started

    def search(query: Matrix) -> list[int]:
        return [rowid for rowid, _ in index.nearest(query, identity, limit=TOP)]

    megabytes = sum(file.stat().st_size for file in folder.glob("vectors/*/*")) / 1e6
    return Engine("memoriter scan", built, megabytes, search)


def scan_filtered(folder: Path, identity: Identity) -> Engine:
    """The default engine with a filter that one row in twenty passes."""
    index = open_index(folder)
    where = Filter(path_prefix="05/")

    def search(query: Matrix) -> list[int]:
        return [rowid for rowid, _ in index.nearest(query, identity, limit=TOP, where=where)]

    return Engine("memoriter scan, 5 % filter", 0.0, 0.0, search)


def _fill(index: SqliteIndex, size: int, identity: Identity) -> None:
    """Insert rows in bulk, as a sync would leave them. Only the vectors matter here."""
    key = (identity.provider, identity.model, identity.key)
    with index._database.write() as connection:
        number = 0
        for block in synthetic(size, identity.dimensions, seed=1):
            names = [f"{at:012d}" for at in range(number, number + len(block))]
            connection.executemany(
                "insert into embedding_cache(provider, model, provider_key, hash, dims, vector, used_at)"
                " values(?, ?, ?, ?, ?, ?, 0)",
                (
                    (*key, name, identity.dimensions, row.tobytes())
                    for name, row in zip(names, block, strict=True)
                ),
            )
            connection.executemany(
                "insert into chunks(id, path, source, start_line, end_line, headings, hash, model, text)"
                " values(?, ?, 'memory', 1, 1, '[]', ?, ?, '')",
                ((name, f"{int(name) % 20:02d}/{name}", name, str(identity)) for name in names),
            )
            number += len(block)


def sqlite_vec(folder: Path, size: int, dims: int) -> Engine:
    """sqlite-vec as in its documentation."""
    folder.mkdir()
    connection = apsw.Connection(str(folder / "vec.db"))
    load_vec0(connection)
    started = time.process_time()
    connection.execute(f"create virtual table v using vec0(embedding float[{dims}] distance_metric=cosine)")
    connection.execute("begin")
    number = 1
    for block in synthetic(size, dims, seed=1):
        rows = ((at, row.tobytes()) for at, row in enumerate(block, start=number))
        connection.executemany("insert into v(rowid, embedding) values(?, ?)", rows)
        number += len(block)
    connection.execute("commit")
    built = time.process_time() - started

    def search(query: Matrix) -> list[int]:
        found: Any = connection.execute(
            "select rowid from v where embedding match ? and k = ? order by distance", (query.tobytes(), TOP)
        )
        return [row[0] for row in found]

    return Engine("sqlite-vec", built, (folder / "vec.db").stat().st_size / 1e6, search)


def plain_numpy(matrix: Matrix) -> Engine:
    """One product with a float32 matrix in memory: exact, and the reference for recall."""

    def search(query: Matrix) -> list[int]:
        scores = matrix @ query
        top = np.argpartition(scores, len(scores) - TOP)[-TOP:]
        return [int(row) + 1 for row in top[np.argsort(-scores[top])]]

    return Engine("numpy float32", 0.0, matrix.nbytes / 1e6, search)


# ---- measuring -----------------------------------------------------------------------------------------------


def measure(engine: Engine, size: int, queries: Matrix, truth: Sequence[list[int]] | None) -> Row:
    """Run every query, once to warm up and once to measure."""
    first = _timed(engine, queries[0])[1]
    answers, times = zip(*(_timed(engine, query) for query in queries), strict=True)
    ordered = sorted(times)
    recall = [_recall(answers, truth, at) if truth else float("nan") for at in (10, 50)]
    return Row(
        engine.name,
        size,
        round(engine.build_s, 2),
        round(engine.megabytes, 1),
        round(first, 2),
        round(ordered[len(ordered) // 2], 2),
        round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 2),
        *recall,
    )


def _timed(engine: Engine, query: Matrix) -> tuple[list[int], float]:
    started = time.process_time()
    rows = engine.search(query)
    return rows, (time.process_time() - started) * 1000


def _recall(answers: Sequence[list[int]], truth: Sequence[list[int]], at: int) -> float:
    found = sum(len(set(mine[:at]) & set(true[:at])) for mine, true in zip(answers, truth, strict=True))
    return round(found / (at * len(truth)), 4)


def compare(size: int, dims: int, count: int, folder: Path) -> Iterator[Row]:
    """Measure every engine at one size, one after another, so that only one is in memory."""
    identity = Identity("bench", "synthetic", dims)
    queries = np.concatenate(list(synthetic(count, dims, seed=2)))
    matrix = np.concatenate(list(synthetic(size, dims, seed=1)))
    exact = plain_numpy(matrix)
    truth = [exact.search(query) for query in queries]
    yield measure(exact, size, queries, truth)
    inside = matrix[5::20]  # the rows that pass the filter
    filtered = [[5 + 20 * (row - 1) + 1 for row in plain_numpy(inside).search(query)] for query in queries]
    del matrix, exact, inside
    yield measure(scan(folder / "scan", size, identity), size, queries, truth)
    yield measure(scan_filtered(folder / "scan", identity), size, queries, filtered)
    yield measure(sqlite_vec(folder / "vec", size, dims), size, queries, truth)


def table(rows: Sequence[Row]) -> str:
    """Return a Markdown table, with the speed of each engine relative to sqlite-vec at the same size."""
    base = {row.size: row.p50_ms for row in rows if row.engine == "sqlite-vec"}
    lines = [
        "| vectors | engine | p50 ms | p95 ms | first ms | × sqlite-vec | recall@10 | recall@50 | build s | MB |",
        "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        ratio = f"{base[row.size] / row.p50_ms:.1f}" if row.size in base and row.p50_ms else ""
        lines.append(
            f"| {row.size:,} | {row.engine} | {row.p50_ms} | {row.p95_ms} | {row.first_ms} | {ratio}"
            f" | {row.recall_10:.3f} | {row.recall_50:.3f} | {row.build_s} | {row.megabytes} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--sizes", default="10000,100000", help="Comma-separated numbers of vectors.")
    parser.add_argument("--dims", type=int, default=384)
    parser.add_argument("--queries", type=int, default=25)
    parser.add_argument("--json", action="store_true", help="Print JSON instead of a table.")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows += compare(size, options.dims, options.queries, Path(folder))
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
