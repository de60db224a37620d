"""The map: entries as points in two dimensions, similar entries near each other.

The axes are the two principal components of the entries' vectors. The positions are stored in a file beside the derived
index, with the number of the newest change. The file holds ids and numbers, no text. It is rebuilt when it is missing
or outdated, and forgetting an entry deletes it.

Embedding thousands of entries, such as after an import, takes minutes. The map therefore shows the entries that have a
vector after a short time and says how many are missing. The next request continues.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from memoriter.entries.regions import name_regions
from memoriter.index.follow import Follower
from memoriter.records import EntryMap, Point
from memoriter.sentences import sentence
from memoriter.store.entry_rows import chunk_of
from memoriter.store.entry_store import EntryStore

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix

#: Maximum number of points.
MAX_POINTS = 50_000
#: Number of points used to fit the axes, if there are more points and dimensions than this.
MAX_FITTED = 512
NAME = "map.json"
#: Seconds that a request may spend on embedding.
MAX_EMBED_S = 2.0
#: Number of entries that are embedded between two looks at the clock.
BLOCK = 64

Positions = dict[str, tuple[float, float]]


class MapBuilder:
    """Builds the map of one store's entries."""

    def __init__(
        self,
        store: EntryStore,
        follower: Follower,
        clock: Callable[[], float],
        *,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self.follower = follower
        self.store = store
        self.path = follower.index.folder / NAME
        self._clock = clock
        self._elapsed = elapsed

    def build(self, limit: int = MAX_POINTS) -> EntryMap:
        """Return the entries in force as points; an even sample if there are more than the limit."""
        return self.follower.healing(lambda: self._build(limit))

    def _build(self, limit: int) -> EntryMap:
        embedder = self.follower.embedder
        seq = self.store.seq()
        if embedder is None:
            return EntryMap((), 0, seq, degraded=sentence("map.no_embedder"))
        sample, total = self.store.sample(MAX_POINTS, self._clock())
        places = self._load(seq)
        if places is None or not places.keys() >= set(sample):
            hashes = {id_: chunk_of(entry).hash for id_, entry in self.store.load(sample).items()}
            self._embed_some(hashes)
            places = self._positions(hashes)
            if len(places) == len(sample):
                self._store(seq, places)
        drawn = [id_ for id_ in sample if id_ in places]
        missing = len(sample) - len(drawn)
        degraded = sentence("map.missing", n=missing) if missing else None
        entries = self.store.load(drawn[:limit])
        points = tuple(Point(entries[id_], *places[id_]) for id_ in drawn[:limit] if id_ in entries)
        return EntryMap(points, total, seq, degraded=degraded, regions=name_regions(points))

    def delete(self) -> None:
        """Delete the stored positions."""
        for path in (self.path, self.path.with_suffix(".new")):
            with contextlib.suppress(IsADirectoryError):
                path.unlink(missing_ok=True)

    def _embed_some(self, hashes: Mapping[str, str]) -> None:
        """Embed entries without a vector until the time is up. If all are done, update the whole index."""
        embedder, until = self.follower.embedder, self._elapsed() + MAX_EMBED_S
        assert embedder is not None
        known = self.follower.index.known(embedder.identity, hashes.values())
        waiting = iter([id_ for id_, hash_ in hashes.items() if hash_ not in known])
        while block := list(islice(waiting, BLOCK)):
            if self._elapsed() > until:
                return
            self.follower.prepare(block)
        self.follower.follow()

    def _positions(self, hashes: Mapping[str, str]) -> Positions:
        embedder = self.follower.embedder
        assert embedder is not None
        vectors = self.follower.index.load(embedder.identity, hashes.values())
        ids = [id_ for id_ in hashes if hashes[id_] in vectors]
        if not ids:
            return {}
        import numpy as np

        flat = project(np.stack([vectors[hashes[id_]] for id_ in ids]))
        return {id_: (round(float(x), 5), round(float(y), 5)) for id_, (x, y) in zip(ids, flat, strict=True)}

    def _name(self, seq: int) -> list[object]:
        return [self.store.store_id, self.follower.model, seq]

    def _load(self, seq: int) -> Positions | None:
        """Return the stored positions if they belong to this state of the entries."""
        try:
            kept: Any = json.loads(self.path.read_bytes())
            if kept["of"] != self._name(seq):
                return None
            return {str(id_): (float(x), float(y)) for id_, (x, y) in kept["places"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _store(self, seq: int, places: Positions) -> None:
        """Store the positions, unless the entries changed: a forgotten entry must not come back this way."""
        new = self.path.with_suffix(".new")
        with contextlib.suppress(OSError):
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump({"of": self._name(seq), "places": places}, file)
            with self.store.transaction():
                if self.store.seq() == seq:
                    new.replace(self.path)
            new.unlink(missing_ok=True)


def project(vectors: Matrix) -> Matrix:
    """Project vectors onto their two principal axes, scaled to -1..1. Equal vectors give equal results."""
    import numpy as np

    rows = np.asarray(vectors, dtype=np.float64)
    centred = rows - rows.mean(axis=0)
    some = np.linspace(0, len(centred) - 1, MAX_FITTED).astype(int)
    axes = _axes(centred[some] if min(centred.shape) > MAX_FITTED else centred)
    flat = centred @ axes.T
    if flat.shape[1] < 2:
        flat = np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))
    size = float(np.abs(flat).max(initial=0.0))
    return flat / size if size > 1e-9 else np.zeros_like(flat)


def _axes(centred: Matrix) -> Matrix:
    """Return the two principal axes. Their sign is arbitrary, so the largest component is made positive."""
    import numpy as np

    count, width = centred.shape
    if width <= count:
        _, found = np.linalg.eigh(centred.T @ centred)
        axes = found[:, ::-1][:, :2].T
    else:  # fewer points than dimensions: the smaller matrix has the same axes
        sizes, found = np.linalg.eigh(centred @ centred.T)
        best = found[:, ::-1][:, :2].T @ centred
        lengths = np.sqrt(np.maximum(sizes[::-1][:2], 1e-30))[:, None]
        axes = best / lengths
    largest = np.abs(axes).argmax(axis=1)
    signs = np.sign(axes[np.arange(len(axes)), largest])
    return axes * np.where(signs == 0, 1.0, signs)[:, None]
