"""How long does a search take in a large index, whole and leg by leg, and beside plain engines?"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bench import peers
from bench.built import IDENTITY, Built, GivenVectors, texts
from bench.measure import Spread, spread
from recollect.store import open_index
from recollect.text import query_terms

CANDIDATES = 200  #: as a search asks of each leg


@dataclass(frozen=True, slots=True)
class Timed:
    """One kind of work at one size."""

    size: int
    work: str
    took: Spread
    beside: str = ""  #: whose work the next figure is
    peer: Spread | None = None


def searches(built: Built, *, peer_questions: int) -> Iterator[Timed]:
    """Whole searches, then each leg beside its plain counterpart."""
    place, size = built.place, built.size
    with built.open() as memory:
        yield Timed(size, "search", spread([partial(memory.search, text) for text in built.questions]))
        folder = memory.settings.agent_folder
    given = GivenVectors(built.questions)
    few = built.questions[:peer_questions]
    vectors = [given.embed_query(text) for text in built.questions]
    with open_index(folder) as index:
        nearest = spread([partial(index.nearest, vector, IDENTITY, limit=CANDIDATES) for vector in vectors])
        keyword = spread(
            [partial(index.keyword, query_terms(text), limit=CANDIDATES) for text in built.questions]
        )
    knn = peers.sqlite_vec(place / "vec.db", size)
    yield Timed(
        size,
        "vector leg",
        nearest,
        "sqlite-vec KNN",
        spread([partial(knn, given.embed_query(t)) for t in few]),
    )
    plain = peers.plain_fts5(place / "fts.db", texts(size))
    yield Timed(size, "keyword leg", keyword, "plain FTS5", spread([partial(plain, t) for t in few]))


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
