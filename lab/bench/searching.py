"""The time of a search in a large index, as a whole and by leg, compared with plain engines."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from lab.bench import peers
from lab.bench.built import IDENTITY, Built, GivenVectors, texts
from lab.bench.measure import Spread, spread
from memoriter.store import Index, open_index
from memoriter.text import query_terms

#: As many as a search requests from each leg.
CANDIDATES = 200


@dataclass(frozen=True, slots=True)
class Timed:
    """One kind of work at one size."""

    size: int
    work: str
    took: Spread
    #: The engine of the next figure.
    peer_name: str = ""
    peer: Spread | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """Whole searches at one size, with and without the two models."""

    size: int
    plain: Spread
    embedded: Spread
    reranked: Spread
    both: Spread


def whole_searches(built: Built) -> Whole:
    """Measure searches with every combination of the models."""

    def measured(*, embeds: bool, reranks: bool) -> Spread:
        with built.open(embeds=embeds, reranks=reranks) as memory:
            return spread([partial(memory.search, text) for text in built.questions])

    return Whole(
        built.size,
        plain=measured(embeds=False, reranks=False),
        embedded=measured(embeds=True, reranks=False),
        reranked=measured(embeds=False, reranks=True),
        both=measured(embeds=True, reranks=True),
    )


def searches(built: Built, *, peer_questions: int, keywords: bool = True) -> Iterator[Timed]:
    """Measure whole searches, then each leg and its plain counterpart."""
    with built.open() as memory:
        name = "search" if keywords else "search, vectors only"
        yield Timed(built.size, name, spread([partial(memory.search, text) for text in built.questions]))
        folder = memory.settings.index_folder
    few = built.questions[:peer_questions]
    with open_index(folder) as index:
        yield _vector_leg(index, built, few)
        if keywords:
            yield _keyword_leg(index, built, few)


def _vector_leg(index: Index, built: Built, few: Sequence[str]) -> Timed:
    given = GivenVectors(built.questions)
    vectors = [given.embed_query(text) for text in built.questions]
    ours = spread([partial(index.nearest, vector, IDENTITY, limit=CANDIDATES) for vector in vectors])
    knn = peers.sqlite_vec(built.root / "vec.db", built.size)
    theirs = spread([partial(knn, given.embed_query(text)) for text in few])
    return Timed(built.size, "vector leg", ours, "sqlite-vec KNN", theirs)


def _keyword_leg(index: Index, built: Built, few: Sequence[str]) -> Timed:
    queries = [query_terms(text) for text in built.questions]
    ours = spread([partial(index.keyword, terms, limit=CANDIDATES) for terms in queries])
    plain = peers.plain_fts5(built.root / "fts.db", texts(built.size))
    theirs = spread([partial(plain, text) for text in few])
    return Timed(built.size, "keyword leg", ours, "plain FTS5", theirs)


def resident(built: Built) -> dict[str, float]:
    """Return the megabytes of a new process after some searches."""
    code = (
        "import json, sys; from pathlib import Path; from lab.bench.built import Built; from lab.bench.measure import "
        "resident_mb; root, size, *questions = sys.argv[1:]; built = Built(Path(root), int(size), "
        "tuple(questions))\nwith built.open() as memory:\n    [memory.search(q) for q in questions]\n"
        "    print(json.dumps(resident_mb()))"
    )
    command = [sys.executable, "-c", code, str(built.root), str(built.size), *built.questions]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    megabytes: dict[str, float] = json.loads(process.stdout)
    return megabytes
