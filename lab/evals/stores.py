"""The same search on SQLite and on Postgres: nDCG@10 on labelled sets, and how often the first ten are the same.

    python -m lab.evals.stores --url postgresql://postgres@localhost/evals --sets lab/evals/sets data --queries 100

Both stores get the same chunks and the same vectors of the bundled model, so only the stores can make a difference.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import mean

from lab.evals.metrics import ndcg
from lab.evals.sets import EvalSet, Item, Query, find_sets, load_set
from memoriter.embedding import Embedder, EmbedderSpec, resolve
from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.extensions.postgres.index import PostgresIndex
from memoriter.extensions.postgres.server import open_server
from memoriter.records import Chunk, Document
from memoriter.records import Query as Search
from memoriter.search import Options, Searcher
from memoriter.store import Index, open_index


def fill(index: Index, items: Sequence[Item], embedder: Embedder, vectors: dict[str, object]) -> None:
    """Index every item as a document of one chunk. Each text is embedded once for all stores."""
    chunks = [Chunk(item.id, item.id, "memory", 1, 1, item.text, (), item.day) for item in items]
    missing = [chunk for chunk in chunks if chunk.hash not in vectors]
    if missing:
        rows = embedder.embed([chunk.embedding_text for chunk in missing])
        vectors.update(zip((chunk.hash for chunk in missing), rows, strict=True))
    with index.transaction():
        index.save(embedder.identity, {chunk.hash: vectors[chunk.hash] for chunk in chunks})  # type: ignore[misc]
        for chunk in chunks:
            document = Document(chunk.path, "memory", chunk.text, chunk.hash, 1, len(chunk.text))
            index.replace(document, [chunk], identity=embedder.identity)


def ranked(index: Index, embedder: Embedder, queries: Sequence[Query]) -> list[list[str]]:
    """Return the ids that each query finds, best first."""
    searcher = Searcher(index, embedder, Options(max_results=10, min_score=0.0))
    return [[hit.path for hit in searcher.search(Search(query.text)).hits] for query in queries]


def compare(found: EvalSet, url: str, embedder: Embedder, count: int, folder: Path) -> str:
    """Return the row of one set."""
    scores: dict[str, list[float]] = {"sqlite": [], "postgres": []}
    same = []
    server, tenant = open_server(url), uuid.uuid4().hex
    groups = [(name, items, [q for q in queries if q.relevant]) for name, items, queries in found.groups()]
    step = max(1, sum(len(queries) for _, _, queries in groups) // count)
    for number, (_, items, queries) in enumerate(groups):
        asked = queries[::step]
        if not items or not asked:
            continue
        vectors: dict[str, object] = {}
        database = PostgresDatabase(server, agent=f"group-{number}", tenant=tenant, area="notes")
        place = folder / found.name / str(number)
        answers = {}
        for name, index in (
            ("sqlite", open_index(place)),
            ("postgres", PostgresIndex(database, "notes", place)),
        ):
            with closing(index):
                fill(index, items, embedder, vectors)
                answers[name] = ranked(index, embedder, asked)
        for name, lists in answers.items():
            scores[name] += [ndcg(ids, query.relevant) for ids, query in zip(lists, asked, strict=True)]
        same += [one == two for one, two in zip(answers["sqlite"], answers["postgres"], strict=True)]
    figures = {name: 100 * mean(values) for name, values in scores.items()}
    difference = figures["postgres"] - figures["sqlite"]
    return (
        f"| {found.name} | {len(same)} | {figures['sqlite']:.2f} | {figures['postgres']:.2f} | {difference:+.2f}"
        f" | {100 * mean(same):.0f} % |"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the stores and print a table."""
    parser = argparse.ArgumentParser(prog="python -m lab.evals.stores", description=__doc__)
    parser.add_argument("--url", required=True, help="URL of a Postgres server.")
    parser.add_argument("--sets", type=Path, nargs="+", required=True, help="Folders of sets.")
    parser.add_argument("--names", nargs="*", help="Names of the sets (default: all).")
    parser.add_argument("--queries", type=int, default=100, help="Queries of each set (default: about 100).")
    options = parser.parse_args(arguments)
    embedder = resolve(EmbedderSpec("local")).embedder
    assert embedder is not None
    print(
        "| set | queries | SQLite nDCG@10 | Postgres nDCG@10 | difference | same ten |\n|---|--:|--:|--:|--:|--:|"
    )
    for name, files in itertools.chain.from_iterable(find_sets(folder).items() for folder in options.sets):
        if not options.names or name in options.names:
            with tempfile.TemporaryDirectory(prefix="memoriter-stores-") as folder:
                row = compare(load_set(name, *files), options.url, embedder, options.queries, Path(folder))
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
