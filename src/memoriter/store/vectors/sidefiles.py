"""Memory-mapped side files: sign bits, then int8, then float32, each stage looking at fewer rows.

One generation is one folder, written once and never changed: ``ids`` (int64, ascending), ``full`` (float32),
``codes`` (int8), ``bits`` (uint64, one column of 64 signs after another) and ``manifest.json``. The database keeps
a pointer, which names the folder and the manifest's digest; a folder that it does not name is never read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from memoriter.errors import StoreError
from memoriter.records import Identity
from memoriter.store.connection import make_private_folder

if TYPE_CHECKING:
    import numpy.typing as npt

    from memoriter.store.vectors import Rows, Vector

SCAN_BLOCK = (
    32_768  #: rows of one column that are compared at once: the buffers stay in the processor's cache
)
CODE_BLOCK = 256  #: int8 rows that are multiplied at once
HISTOGRAM = 65_536  #: distances from which the threshold is guessed


@dataclass(frozen=True, slots=True, eq=False)
class SideFiles:
    """The files of one generation, mapped."""

    count: int
    max_rowid: int  #: the greatest rowid that was looked at when the files were made
    mean: Vector
    ids: Rows
    full: Vector
    codes: npt.NDArray[np.int8]
    bits: npt.NDArray[np.uint64]

    def search(
        self, query: Vector, *, limit: int, allow: Rows | None, candidates: int, rescored: int
    ) -> tuple[Rows, Vector]:
        """The nearest rows and their cosines."""
        at = None if allow is None else positions(self.ids, allow)
        among = self.count if at is None else len(at)
        if among > max(candidates, 40 * limit):
            at = self._by_bits(query, at, max(candidates, 40 * limit))
        elif at is None:
            at = np.arange(self.count)
        if len(at) > max(rescored, 4 * limit):
            at = np.sort(at[_largest(self._rough(query, at), max(rescored, 4 * limit))])
        return best(self.ids[at], self.full[at] @ query, limit)

    def _rough(self, query: Vector, at: npt.NDArray[np.intp]) -> Vector:
        """The int8 rows at these positions times the query, in blocks that stay in the processor's cache."""
        scores = np.empty(len(at), dtype=np.float32)
        codes = np.empty((min(len(at), CODE_BLOCK), len(query)), dtype=np.int8)
        floats = np.empty(codes.shape, dtype=np.float32)
        for start in range(0, len(at), CODE_BLOCK):
            part = at[start : start + CODE_BLOCK]
            size = len(part)
            # clip: positions are good, and to look for bad ones first costs a copy.
            np.take(self.codes, part, axis=0, out=codes[:size], mode="clip")
            floats[:size] = codes[:size]
            np.dot(floats[:size], query, out=scores[start : start + size])
        return scores

    def _by_bits(self, query: Vector, at: npt.NDArray[np.intp] | None, wanted: int) -> npt.NDArray[np.intp]:
        """Positions of the rows whose signs differ least: about ``wanted``, at most four times as many."""
        distances = self._distances(query)
        if at is not None:
            distances = distances[at]
        threshold = _threshold(distances, wanted)
        near = np.flatnonzero(distances <= threshold)
        if len(near) > 4 * wanted:  # many rows at one distance, such as copies of one text
            closer = np.flatnonzero(distances < threshold)
            near = np.concatenate([closer, np.flatnonzero(distances == threshold)])[: 4 * wanted]
        return near if at is None else at[near]

    def _distances(self, query: Vector) -> npt.NDArray[np.uint16]:
        words = sign_bits(query[None, :], self.mean)[0]
        total = np.zeros(self.count, dtype=np.uint16)
        differing = np.empty(SCAN_BLOCK, dtype=np.uint64)
        counted = np.empty(SCAN_BLOCK, dtype=np.uint8)
        for start in range(0, self.count, SCAN_BLOCK):
            block = total[start : start + SCAN_BLOCK]
            size = len(block)
            for column, word in zip(self.bits, words, strict=True):
                np.bitwise_xor(column[start : start + size], word, out=differing[:size])
                np.bitwise_count(differing[:size], out=counted[:size])
                np.add(block, counted[:size], out=block)
        return total


def positions(ids: Rows, allow: Rows) -> npt.NDArray[np.intp]:
    """Where the allowed rows stand in ``ids``; both ascend."""
    if not len(ids):
        return np.empty(0, dtype=np.intp)
    at: npt.NDArray[np.intp] = np.searchsorted(ids, allow)
    at[at == len(ids)] = 0
    present: npt.NDArray[np.intp] = at[ids[at] == allow]
    return present


def best(ids: Rows, scores: Vector, limit: int) -> tuple[Rows, Vector]:
    """The rows with the largest scores, in no order; a damaged vector's score is no number and never wins."""
    ids, scores = finite(ids, scores)
    top = _largest(scores, limit)
    return ids[top], scores[top]


def finite(ids: Rows, scores: Vector) -> tuple[Rows, Vector]:
    """The rows whose scores are numbers."""
    good = np.isfinite(scores)
    return (ids, scores) if good.all() else (ids[good], scores[good])


def _largest(scores: Vector, wanted: int) -> npt.NDArray[np.intp]:
    if len(scores) <= wanted:
        return np.arange(len(scores))
    order: npt.NDArray[np.intp] = np.argpartition(scores, len(scores) - wanted)
    return order[len(scores) - wanted :]


def _threshold(distances: npt.NDArray[np.uint16], wanted: int) -> int:
    """The distance within which about ``wanted`` rows lie, from a sample of them."""
    stride = max(1, len(distances) // HISTOGRAM)
    reached = np.cumsum(np.bincount(distances[::stride]))
    return int(np.searchsorted(reached, max(1, wanted // stride)))


def sign_bits(matrix: Vector, mean: Vector) -> npt.NDArray[np.uint64]:
    """Which components lie above the mean, 64 to a word."""
    packed = np.packbits(matrix > mean, axis=1)
    words = -(-matrix.shape[1] // 64)
    padded = np.zeros((len(matrix), words * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


# ---- opening -------------------------------------------------------------------------------------------------


def open_files(folder: Path, pointer: str | None, identity: Identity) -> SideFiles | None:
    """The files that the pointer names; None when they are not there, not whole, or of another identity."""
    if pointer is None:
        return None
    generation, _, digest = pointer.partition(" ")
    place = folder / generation
    try:
        raw = (place / "manifest.json").read_bytes()
        if hashlib.sha256(raw).hexdigest() != digest:
            return None
        manifest = json.loads(raw)
        if manifest["identity"] != identity_key(identity) or not _whole(place, manifest["sizes"]):
            return None
        return _mapped(place, manifest, identity.dimensions)
    except (OSError, ValueError):  # removed since the pointer was read, or shorter than when it was measured
        return None


def _whole(place: Path, sizes: dict[str, int]) -> bool:
    return all((place / name).stat().st_size == size for name, size in sizes.items())


def _mapped(place: Path, manifest: dict[str, Any], dimensions: int) -> SideFiles | None:
    count = int(manifest["count"])
    words = -(-dimensions // 64)
    ids = np.fromfile(place / "ids", dtype=np.int64)
    if len(ids) != count or not (np.diff(ids) > 0).all():
        return None
    return SideFiles(
        count=count,
        max_rowid=int(manifest["max_rowid"]),
        mean=np.array(manifest["mean"], dtype=np.float32),
        ids=ids,
        # asarray: a plain array over the same pages, for memmap's own slices are slow.
        full=np.asarray(np.memmap(place / "full", dtype=np.float32, mode="r", shape=(count, dimensions))),
        codes=np.asarray(np.memmap(place / "codes", dtype=np.int8, mode="r", shape=(count, dimensions))),
        bits=np.asarray(np.memmap(place / "bits", dtype=np.uint64, mode="r", shape=(words, count))),
    )


def identity_key(identity: Identity) -> list[object]:
    return [identity.provider, identity.model, identity.dimensions, identity.key]


# ---- building -------------------------------------------------------------------------------------------------------

BUILD_BLOCK = 16_384  #: rows that are quantised at once
SAMPLE = 20_000  #: rows from which mean and scale are taken
FILES = ("ids", "full", "codes", "bits")


def build(folder: Path, blocks: Iterable[tuple[int, Rows, Vector]], identity: Identity) -> str | None:
    """Write a new generation from (last rowid, rowids, matrix) blocks; its pointer, None without rows."""
    make_private_folder(folder)
    generation = max(_generations(folder), default=0) + 1
    place = folder / str(generation)
    try:
        make_private_folder(place)
        count, max_rowid = _write_rows(place, blocks)
        if not count:
            shutil.rmtree(place)
            return None
        digest = _finish(place, count, max_rowid, identity)
    except OSError as error:
        shutil.rmtree(place, ignore_errors=True)
        raise StoreError(
            f"{place}: cannot be written ({error.strerror}); vectors are read from the index"
        ) from error
    return f"{generation} {digest}"


def remove_others(folder: Path, pointer: str | None) -> None:
    """Remove every generation but the one that the pointer names. What cannot go now will go later."""
    kept = pointer.partition(" ")[0] if pointer else None
    for generation in _generations(folder):
        if str(generation) != kept:
            shutil.rmtree(folder / str(generation), ignore_errors=True)


def _generations(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return [int(place.name) for place in folder.iterdir() if place.name.isdecimal()]


def _write_rows(place: Path, blocks: Iterable[tuple[int, Rows, Vector]]) -> tuple[int, int]:
    """Rowids and vectors as they come; how many, and the last rowid."""
    count = max_rowid = 0
    with _private(place / "ids") as ids_file, _private(place / "full") as full_file:
        for last, ids, matrix in blocks:
            ids_file.write(ids.tobytes())
            full_file.write(matrix.tobytes())
            count += len(ids)
            max_rowid = last
    return count, max_rowid


def _finish(place: Path, count: int, max_rowid: int, identity: Identity) -> str:
    """The quantised files and, last, the manifest; its digest."""
    full = np.memmap(place / "full", dtype=np.float32, mode="r", shape=(count, identity.dimensions))
    sample = np.asarray(full[:: max(1, count // SAMPLE)])
    mean = sample.mean(axis=0, dtype=np.float32)
    scale = np.float32(1.02) * np.abs(sample).max()
    _quantise(place, full, mean, scale)
    manifest = {
        "identity": identity_key(identity),
        "count": count,
        "max_rowid": max_rowid,
        "scale": float(scale),
        "mean": [float(value) for value in mean],
        "sizes": {name: (place / name).stat().st_size for name in FILES},
    }
    raw = json.dumps(manifest).encode()
    with _private(place / "manifest.json") as file:
        file.write(raw)
    _sync(place)
    return hashlib.sha256(raw).hexdigest()


def _quantise(place: Path, full: Vector, mean: Vector, scale: np.float32) -> None:
    words = -(-full.shape[1] // 64)
    with _private(place / "bits") as file:
        file.truncate(words * len(full) * 8)
    bits = np.memmap(place / "bits", dtype=np.uint64, mode="r+", shape=(words, len(full)))
    with _private(place / "codes") as codes:
        for start in range(0, len(full), BUILD_BLOCK):
            block = np.asarray(full[start : start + BUILD_BLOCK])
            codes.write(np.clip(np.rint(block * (127 / scale)), -127, 127).astype(np.int8).tobytes())
            bits[:, start : start + len(block)] = sign_bits(block, mean).T
    bits.flush()


def _private(path: Path) -> IO[bytes]:
    return open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600))


def _sync(place: Path) -> None:
    """A power cut must not leave files of the right size and the wrong content under a valid pointer."""
    for path in (*place.iterdir(), place):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
