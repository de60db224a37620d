"""One agent with very many chunks on SQLite: opening, searching with filters, adding, memory and disk.

Rows are inserted in bulk, as syncs would leave them: adding ten million chunks through the product would take a day.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab.bench.built import CHUNKS_PER_DOCUMENT, DIMS, IDENTITY, GivenVectors
from lab.bench.corpus import Writer
from lab.bench.loading import TEXTS
from lab.bench.measure import resident_mb, spread, timed
from lab.bench.vectors import Matrix, synthetic
from memoriter.records import Chunk, Document, Query
from memoriter.search import Options, Searcher
from memoriter.store import Index, SqliteIndex, open_index
from memoriter.store.keywords import columns

#: Larger indexes have vectors only: the texts and keywords of ten million chunks take 40 GB.
MAX_SIZE_WITH_TEXTS = 3_000_000
#: Folders over which the documents are spread. A filter by one of them passes this share of all chunks.
FOLDERS = 20


_VECTOR = """
    insert into embedding_cache(provider, model, provider_key, hash, dims, vector, used_at)
    values(?, ?, ?, ?, ?, ?, 0)"""
_CHUNK = """
    insert into chunks(rowid, id, path, source, start_line, end_line, headings, hash, model, text)
    values(?, ?, ?, 'memory', ?, ?, '[]', ?, ?, ?)"""
_KEYWORDS = "insert into chunks_fts(rowid, title, body) values(?, ?, ?)"
_FILE = "insert into files(path, source, mtime_ns, size, sha256, indexed_at) values(?, 'memory', 1, 1, ?, 0)"


def fill(index: SqliteIndex, size: int) -> None:
    """Insert rows with vectors, and up to some size with texts, which repeat, and their keywords."""
    has_texts = size <= MAX_SIZE_WITH_TEXTS
    texts = list(Writer(seed=1).texts(TEXTS)) if has_texts else [""] * TEXTS
    bodies = [columns(Chunk("", "", "memory", 1, 1, text))[1] for text in texts]
    number = 0
    for block in synthetic(size, DIMS, seed=1):
        with index._database.write() as connection:
            rows = range(number, number + len(block))
            connection.executemany(_VECTOR, _vector_rows(rows, block))
            connection.executemany(_CHUNK, (_chunk_row(row, texts[_pick(row)]) for row in rows))
            if has_texts:
                connection.executemany(
                    _KEYWORDS, ((row + 1, _title(row), bodies[_pick(row)]) for row in rows)
                )
            paths = {path_of(row) for row in rows if row % CHUNKS_PER_DOCUMENT == 0}
            connection.executemany(_FILE, ((path, "0" * 64) for path in sorted(paths)))
        number += len(block)
        if number % 100_000 == 0:
            print(f"{number:,} of {size:,} chunks", file=sys.stderr, flush=True)


def path_of(row: int) -> str:
    """Return the path of the document that contains a row."""
    document = row // CHUNKS_PER_DOCUMENT
    return f"memory/{document % FOLDERS:02d}/{document}.md"


def _title(row: int) -> str:
    return columns(Chunk("", path_of(row), "memory", 1, 1, ""))[0]


def _pick(row: int) -> int:
    return (row * 7919) % TEXTS


def _vector_rows(rows: range, block: Matrix) -> Iterator[tuple[object, ...]]:
    key = (IDENTITY.provider, IDENTITY.model, IDENTITY.key)
    return ((*key, f"{row:064x}", DIMS, vector.tobytes()) for row, vector in zip(rows, block, strict=True))


def _chunk_row(row: int, text: str) -> tuple[object, ...]:
    line = 2 * (row % CHUNKS_PER_DOCUMENT) + 1
    return (row + 1, f"{row:012d}", path_of(row), line, line, f"{row:064x}", str(IDENTITY), text)


# ---- measuring ----------------------------------------------------------------------------------------------------


def measure(folder: Path, size: int, questions: int) -> dict[str, Any]:
    """Fill an index unless it is there, then measure it in a new process."""
    record = folder / "built.json"
    if not record.exists():
        index = open_index(folder)
        filled = timed(partial(fill, index, size))
        built = timed(partial(index.refresh, IDENTITY))
        index.close()
        record.write_text(json.dumps({"fill_s": filled.cpu_s, "vector_files_s": built.cpu_s}))
    command = [sys.executable, "-m", "lab.bench.one_agent", str(folder), str(questions)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    files = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"chunks": size, **json.loads(record.read_text()), **json.loads(found), "disk_bytes": files}


def in_new_process(folder: Path, questions: int) -> dict[str, Any]:
    """Return the figures of an index that was just opened."""
    writer = Writer(seed=3)
    texts = [writer.question() for _ in range(questions)]
    embedder = GivenVectors(texts)
    started, wall = time.process_time(), time.perf_counter()
    index = open_index(folder)
    searcher = Searcher(index, embedder, Options(min_score=0.0))
    searcher.search(Query(texts[0]))
    first = {
        "first_ms": 1000 * (time.process_time() - started),
        "first_wall_ms": 1000 * (time.perf_counter() - wall),
    }
    inside = [partial(searcher.search, Query(text, path_prefix="memory/05/")) for text in texts]
    of_source = [partial(searcher.search, Query(text, source="memory")) for text in texts]
    near = [partial(index.nearest, embedder.embed_query(text), IDENTITY, limit=200) for text in texts]
    works: dict[str, Sequence[Any]] = {
        "search": [partial(searcher.search, Query(text)) for text in texts],
        "search in a folder": inside,
        "search in a source": of_source,
        "vector leg": near,
    }
    figures = {name: _figures(calls) for name, calls in works.items()}
    memory = resident_mb()
    vector = embedder.embed([""])[0]
    added = _figures([partial(_add, index, number, vector) for number in range(20)])
    after = timed(works["search"][0])
    index.close()
    return {**first, **figures, "add": added, "after_add_ms": 1000 * after.cpu_s, "resident_mb": memory}


def _figures(calls: Sequence[Any]) -> tuple[float, float]:
    found = spread(calls)
    return found.p50, found.p95


def _add(index: Index, number: int, vector: Matrix) -> None:
    text = f"A new memory with the number {number} of the process that started at {time.time_ns()}"
    chunk = Chunk(f"new-{number}", f"memory/new/{time.time_ns()}.md", "memory", 1, 1, text)
    document = Document(chunk.path, "memory", text, chunk.hash, 1, len(text))
    with index.transaction():
        index.save(IDENTITY, {chunk.hash: vector})
        index.replace(document, [chunk], identity=IDENTITY)


def table(figures: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table with a column for each size."""
    works = ("search", "search in a folder", "search in a source", "vector leg", "add")
    rows = [
        ("CPU ms, p50 / p95", [f"{found['chunks']:,} chunks" for found in figures]),
        ("open and first search", [f"{found['first_ms']:.0f}" for found in figures]),
        *(
            (name, [" / ".join(f"{value:.1f}" for value in found[name]) for found in figures])
            for name in works
        ),
    ]
    rows.append(("first search after adding", [f"{found['after_add_ms']:.1f}" for found in figures]))
    rows.append(("memory of the process, without mapped files, MB", [_memory(found) for found in figures]))
    rows.append(("disk, GB", [f"{found['disk_bytes'] / 1e9:.1f}" for found in figures]))
    rows.append(
        (
            "bytes of disk for each chunk",
            [f"{found['disk_bytes'] / found['chunks']:.0f}" for found in figures],
        )
    )
    rows.append(("CPU s to insert all, and to build the vector files", [_build(found) for found in figures]))
    lines = [f"| {name} | {' | '.join(values)} |" for name, values in rows]
    return "\n".join((lines[0], f"|---|{'--:|' * len(figures)}", *lines[1:]))


def _memory(found: dict[str, Any]) -> str:
    return f"{found['resident_mb']['all']:.0f}, {found['resident_mb']['own']:.0f}"


def _build(found: dict[str, Any]) -> str:
    return f"{found['fill_s']:.0f}, {found['vector_files_s']:.0f}"


if __name__ == "__main__":
    print(json.dumps(in_new_process(Path(sys.argv[1]), int(sys.argv[2]))))
