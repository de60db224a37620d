"""How long does a search take in a large index, whole and leg by leg, and beside plain engines?"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bench import peers
from bench.built import IDENTITY, Built, GivenVectors, texts
from bench.measure import Spread, spread
from memoriter.store import Index, open_index
from memoriter.text import query_terms

CANDIDATES = 200  #: as a search asks of each leg


@dataclass(frozen=True, slots=True)
class Timed:
    """One kind of work at one size."""

    size: int
    work: str
    took: Spread
    beside: str = ""  #: whose work the next figure is
    peer: Spread | None = None


def searches(built: Built, *, peer_questions: int, keywords: bool = True) -> Iterator[Timed]:
    """Whole searches, then each leg beside its plain counterpart."""
    with built.open() as memory:
        name = "search" if keywords else "search, vectors only"
        yield Timed(built.size, name, spread([partial(memory.search, text) for text in built.questions]))
        folder = memory.settings.agent_folder
    few = built.questions[:peer_questions]
    with open_index(folder) as index:
        yield _vector_leg(index, built, few)
        if keywords:
            yield _keyword_leg(index, built, few)


def _vector_leg(index: Index, built: Built, few: Sequence[str]) -> Timed:
    given = GivenVectors(built.questions)
    vectors = [given.embed_query(text) for text in built.questions]
    ours = spread([partial(index.nearest, vector, IDENTITY, limit=CANDIDATES) for vector in vectors])
    knn = peers.sqlite_vec(built.place / "vec.db", built.size)
    theirs = spread([partial(knn, given.embed_query(text)) for text in few])
    return Timed(built.size, "vector leg", ours, "sqlite-vec KNN", theirs)


def _keyword_leg(index: Index, built: Built, few: Sequence[str]) -> Timed:
    asked = [query_terms(text) for text in built.questions]
    ours = spread([partial(index.keyword, terms, limit=CANDIDATES) for terms in asked])
    plain = peers.plain_fts5(built.place / "fts.db", texts(built.size))
    theirs = spread([partial(plain, text) for text in few])
    return Timed(built.size, "keyword leg", ours, "plain FTS5", theirs)


def resident(built: Built) -> dict[str, float]:
    """Megabytes that a fresh process holds after some searches."""
    code = (
        "import json, sys; from pathlib import Path; from bench.built import Built; from bench.measure import "
        "resident_mb; place, size, *questions = sys.argv[1:]; built = Built(Path(place), int(size), "
        "tuple(questions))\nwith built.open() as memory:\n    [memory.search(q) for q in questions]\n"
        "    print(json.dumps(resident_mb()))"
    )
    command = [sys.executable, "-c", code, str(built.place), str(built.size), *built.questions]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
