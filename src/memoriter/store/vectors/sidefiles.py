"""Memory-mapped side files: sign bits twice, then int8, then float32, each stage for fewer rows.

A generation is a folder that never changes: ``ids`` (int64, ascending), ``full`` (float32), ``codes`` (int8), ``bits``
(uint64, columns of 64 signs) and ``manifest.json`` with their digests. The database stores a pointer with the name of
the folder and the digest of the manifest. Other folders are never read. ``verified`` records the stats of the files
when their digests were compared last, so that not every process reads all of them. A generation is built in blocks, so
that memory stays bounded.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from memoriter import logs
from memoriter.errors import StoreError
from memoriter.files.platform import sync_path
from memoriter.records import Identity
from memoriter.store.connection import make_private_folder
from memoriter.store.database import move_away
from memoriter.store.vectors import VERIFIED
from memoriter.store.vectors.nearest import best, largest, positions, products

if TYPE_CHECKING:
    import numpy.typing as npt

    from memoriter.store.vectors import Rows, Vector

log = logs.get("store")

#: Rows of one column that are compared together, so that the buffers stay in the processor cache.
SCAN_BLOCK = 32_768
#: int8 rows that are multiplied together.
CODE_BLOCK = 256
#: Distances from which the threshold is estimated.
HISTOGRAM_ROWS = 16_384
#: The size of a large component of a query, and the sizes at which its level rises, relative to the usual size.
LARGE, LEVELS = 0.7, (0.37, 1.1, 1.8)

FILES = ("ids", "full", "codes", "bits")


@dataclass(frozen=True, slots=True, eq=False)
class SideFiles:
    """The mapped files of one generation."""

    count: int
    #: The greatest rowid when the files were built.
    max_rowid: int
    mean: Vector
    ids: Rows
    full: Vector
    codes: npt.NDArray[np.int8]
    bits: npt.NDArray[np.uint64]

    def search(
        self, query: Vector, *, limit: int, allow: Rows | None, candidates: int, rescored: int
    ) -> tuple[Rows, Vector]:
        """Return the nearest rows and their cosines. A tenth of all rows passes the first stage, or ``candidates``."""
        at = None if allow is None else positions(self.ids, allow)
        wide = max(min(candidates, self.count // 10), 40 * limit)
        narrow = max(min(candidates // 2, self.count // 25), 16 * limit)
        last = max(rescored, 2 * limit)
        signs = QuerySigns.of(query, self.mean)
        if (self.count if at is None else len(at)) > wide:
            far = _distances(self.bits, signs.words, [signs.large])
            at = _closest(far, wide) if at is None else at[_closest(far[at], wide)]
        elif at is None:
            at = np.arange(self.count)
        if len(at) > narrow:
            far = _distances(self.bits.take(at, axis=1, mode="clip"), signs.words, signs.levels)
            at = at[_closest(far, narrow)]
        if len(at) > last:
            at = np.sort(at[largest(self._rough(query, at), last)])
        return best(self.ids[at], products(self.full[at], query), limit)

    def _rough(self, query: Vector, at: npt.NDArray[np.intp]) -> Vector:
        """Multiply the int8 rows at these positions with the query, in blocks that stay in the processor cache."""
        scores = np.empty(len(at), dtype=np.float32)
        codes = np.empty((min(len(at), CODE_BLOCK), len(query)), dtype=np.int8)
        floats = np.empty(codes.shape, dtype=np.float32)
        for start in range(0, len(at), CODE_BLOCK):
            part = at[start : start + CODE_BLOCK]
            size = len(part)
            # clip: positions are valid, and a check would cost a copy.
            self.codes.take(part, axis=0, out=codes[:size], mode="clip")
            floats[:size] = codes[:size]
            np.dot(floats[:size], query, out=scores[start : start + size])
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class QuerySigns:
    """The components of a query above the mean, and their distances from it. 64 components are in a word.

    A difference in a component that is near the mean says little. Of a million rows, 12,000 that differ least in the
    large components contain as many of the best ten as 20,000 that differ least in all. By level, 8,000 are enough.
    """

    words: npt.NDArray[np.uint64]
    #: The large components.
    large: npt.NDArray[np.uint64]
    #: The bits of each component's level, 0 to 3, the lower one first.
    levels: Sequence[npt.NDArray[np.uint64]]

    @classmethod
    def of(cls, query: Vector, mean: Vector) -> QuerySigns:
        """Return the signs of a query."""
        sizes = np.abs(query - mean)
        usual = math.sqrt(np.dot(sizes, sizes) / len(sizes))
        one, two, three = (sizes > level * usual for level in LEVELS)
        words, large, *levels = _packed(
            np.stack([query > mean, sizes > LARGE * usual, one ^ two ^ three, two])
        )
        return cls(words, large, levels)


def _distances(
    bits: npt.NDArray[np.uint64], words: npt.NDArray[np.uint64], masks: Sequence[npt.NDArray[np.uint64]]
) -> npt.NDArray[np.uint16]:
    """Count the signs in which each row differs from the query: those in the first mask once, in the second twice."""
    total = np.zeros(bits.shape[1], dtype=np.uint16)
    size = min(len(total), SCAN_BLOCK)
    words_buffer, masked_buffer = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.uint64)
    count_buffer = np.empty(size, dtype=np.uint8)
    for start in range(0, len(total), SCAN_BLOCK):
        block = total[start : start + SCAN_BLOCK]
        size = len(block)
        differing, masked, counted = words_buffer[:size], masked_buffer[:size], count_buffer[:size]
        for column, word, *parts in zip(bits[:, start : start + size], words, *masks, strict=True):
            np.bitwise_xor(column, word, out=differing)
            for times, part in enumerate(parts, 1):
                # The last mask needs no second buffer, which would compete for the processor cache.
                chosen = np.bitwise_and(differing, part, out=differing if times == len(parts) else masked)
                np.bitwise_count(chosen, out=counted)
                for _ in range(times):
                    np.add(block, counted, out=block)
    return total


def _closest(distances: npt.NDArray[np.uint16], wanted: int) -> npt.NDArray[np.intp]:
    """Return the positions of the smallest distances: about ``wanted``, at most four times as many."""
    stride = max(1, len(distances) // HISTOGRAM_ROWS)
    reached = np.cumsum(np.bincount(distances[::stride]))
    threshold = int(np.searchsorted(reached, max(1, wanted // stride)))
    near = np.flatnonzero(distances <= threshold)
    if len(near) > 4 * wanted:  # many rows at one distance, such as copies of one text
        closer = np.flatnonzero(distances < threshold)
        near = np.concatenate([closer, np.flatnonzero(distances == threshold)])[: 4 * wanted]
    return near


def sign_bits(matrix: Vector, mean: Vector) -> npt.NDArray[np.uint64]:
    """Return which components are above the mean, 64 in a word."""
    return _packed(matrix > mean)


def _packed(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    packed = np.packbits(flags, axis=1)
    words = -(-flags.shape[1] // 64)
    padded = np.zeros((len(flags), words * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


def quantised(ids: Rows, full: Vector) -> SideFiles:
    """Return the same in memory, without files."""
    mean, scale = _mean_and_scale(full)
    bits = np.empty((-(-full.shape[1] // 64), len(full)), dtype=np.uint64)
    codes = np.empty(full.shape, dtype=np.int8)
    for start in range(0, len(full), BUILD_BLOCK):
        block = full[start : start + BUILD_BLOCK]
        codes[start : start + len(block)] = _codes(block, scale)
        bits[:, start : start + len(block)] = sign_bits(block, mean).T
    return SideFiles(len(ids), int(ids[-1]) if len(ids) else 0, mean, ids, full, codes, bits)


def _mean_and_scale(full: Vector) -> tuple[Vector, np.float32]:
    sample = np.asarray(full[:: max(1, len(full) // SAMPLE_ROWS)])
    return sample.mean(axis=0, dtype=np.float32), np.float32(1.02) * np.abs(sample).max()


def _codes(block: Vector, scale: np.float32) -> npt.NDArray[np.int8]:
    codes: npt.NDArray[np.int8] = np.clip(np.rint(block * (127 / scale)), -127, 127).astype(np.int8)
    return codes


# ---- opening -------------------------------------------------------------------------------------------------


def open_files(folder: Path, pointer: str | None, identity: Identity) -> SideFiles | None:
    """Open the files that the pointer names, or return None if they are missing, damaged or of another identity."""
    if pointer is None:
        return None
    generation, _, digest = pointer.partition(" ")
    generation_folder = folder / generation
    try:
        raw = (generation_folder / "manifest.json").read_bytes()
        if hashlib.sha256(raw).hexdigest() != digest:
            return None
        manifest = json.loads(raw)
        if manifest["identity"] != identity_key(identity) or not _whole(
            generation_folder, manifest["digests"]
        ):
            return None
        return _map_files(generation_folder, manifest, identity.dimensions)
    except (OSError, ValueError):  # deleted or truncated since the pointer was read
        return None


def _whole(generation_folder: Path, digests: dict[str, str]) -> bool:
    """Return whether the files are as they were written. Unchanged files are read once."""
    stats = json.dumps([_stat_of(generation_folder / name) for name in FILES])
    stamp = generation_folder / VERIFIED
    if stamp.is_file() and stamp.read_text("utf-8", errors="replace") == stats:
        return True
    if any(_digest_of(generation_folder / name) != digests[name] for name in FILES):
        log.warning("the vector files in %s are damaged; vectors are read from the index", generation_folder)
        return False
    with contextlib.suppress(OSError), _private(stamp) as file:  # such as on a read-only disk
        file.write(stats.encode())
    return True


def _stat_of(file: Path) -> list[int]:
    found = file.stat()
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _map_files(generation_folder: Path, manifest: dict[str, Any], dimensions: int) -> SideFiles | None:
    count = int(manifest["count"])
    words = -(-dimensions // 64)
    ids = np.fromfile(generation_folder / "ids", dtype=np.int64)
    if len(ids) != count or not (np.diff(ids) > 0).all():
        return None
    return SideFiles(
        count=count,
        max_rowid=int(manifest["max_rowid"]),
        mean=np.array(manifest["mean"], dtype=np.float32),
        ids=ids,
        # asarray: a plain array over the same pages, since slices of a memmap are slow.
        full=np.asarray(
            np.memmap(generation_folder / "full", dtype=np.float32, mode="r", shape=(count, dimensions))
        ),
        codes=np.asarray(
            np.memmap(generation_folder / "codes", dtype=np.int8, mode="r", shape=(count, dimensions))
        ),
        bits=np.asarray(
            np.memmap(generation_folder / "bits", dtype=np.uint64, mode="r", shape=(words, count))
        ),
    )


def identity_key(identity: Identity) -> list[object]:
    return [identity.provider, identity.model, identity.dimensions, identity.key]


# ---- building -------------------------------------------------------------------------------------------------------

#: Rows that are quantised together.
BUILD_BLOCK = 16_384
#: Rows from which mean and scale are computed.
SAMPLE_ROWS = 20_000


def build(folder: Path, blocks: Iterable[tuple[int, Rows, Vector]], identity: Identity) -> str | None:
    """Write a new generation from (last rowid, rowids, matrix) blocks. Return its pointer, or None without rows."""
    if folder.exists() and not folder.is_dir():
        move_away(folder)
    make_private_folder(folder)
    generation = max(_generations(folder), default=0) + 1
    generation_folder = folder / str(generation)
    try:
        make_private_folder(generation_folder)
        count, max_rowid = _write_rows(generation_folder, blocks)
        if not count:
            shutil.rmtree(generation_folder)
            return None
        digest = _finish(generation_folder, count, max_rowid, identity)
    except OSError as error:
        # They keep files mapped, and Windows deletes no such file.
        traceback.clear_frames(error.__traceback__)
        shutil.rmtree(generation_folder, ignore_errors=True)
        raise StoreError(
            f"Cannot write {generation_folder}: {error.strerror}. Vectors are read from the index."
        ) from error
    return f"{generation} {digest}"


def remove_others(folder: Path, pointer: str | None) -> bool:
    """Delete every generation except the one that the pointer names. False: a process keeps one (Windows)."""
    current = pointer.partition(" ")[0] if pointer else None
    for generation in _generations(folder):
        if str(generation) != current:
            shutil.rmtree(folder / str(generation), ignore_errors=True)
    return {str(generation) for generation in _generations(folder)} <= {current}


def _generations(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return [
        int(generation_folder.name)
        for generation_folder in folder.iterdir()
        if generation_folder.name.isdecimal()
    ]


def _write_rows(generation_folder: Path, blocks: Iterable[tuple[int, Rows, Vector]]) -> tuple[int, int]:
    """Write rowids and vectors. Return how many there are, and the last rowid."""
    count = max_rowid = 0
    with _private(generation_folder / "ids") as ids_file, _private(generation_folder / "full") as full_file:
        for last, ids, matrix in blocks:
            ids_file.write(ids.tobytes())
            full_file.write(matrix.tobytes())
            count += len(ids)
            max_rowid = last
    return count, max_rowid


def _finish(generation_folder: Path, count: int, max_rowid: int, identity: Identity) -> str:
    """Write the quantised files and then the manifest. Return its digest."""
    full = np.memmap(
        generation_folder / "full", dtype=np.float32, mode="r", shape=(count, identity.dimensions)
    )
    mean, scale = _mean_and_scale(full)
    _quantise(generation_folder, full, mean, scale)
    manifest = {
        "identity": identity_key(identity),
        "count": count,
        "max_rowid": max_rowid,
        "scale": float(scale),
        "mean": [float(value) for value in mean],
        "digests": {name: _digest_of(generation_folder / name) for name in FILES},
    }
    raw = json.dumps(manifest).encode()
    with _private(generation_folder / "manifest.json") as file:
        file.write(raw)
    _sync(generation_folder)
    return hashlib.sha256(raw).hexdigest()


def _quantise(generation_folder: Path, full: Vector, mean: Vector, scale: np.float32) -> None:
    words = -(-full.shape[1] // 64)
    with _private(generation_folder / "bits") as file:
        file.truncate(words * len(full) * 8)
    bits = np.memmap(generation_folder / "bits", dtype=np.uint64, mode="r+", shape=(words, len(full)))
    with _private(generation_folder / "codes") as codes:
        for start in range(0, len(full), BUILD_BLOCK):
            block = np.asarray(full[start : start + BUILD_BLOCK])
            codes.write(_codes(block, scale).tobytes())
            bits[:, start : start + len(block)] = sign_bits(block, mean).T
    bits.flush()


def _private(path: Path) -> IO[bytes]:
    return open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600))


def _sync(generation_folder: Path) -> None:
    """Sync the files, so that a power cut cannot leave wrong content under a valid pointer."""
    for path in (*generation_folder.iterdir(), generation_folder):
        sync_path(path)
