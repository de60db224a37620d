"""Making a generation of side files: in blocks, so that memory stays bounded; whole before anybody is told.

What the files are for is said in ``sidefiles``. Nothing here is put in force: the pointer is the caller's.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from memoriter.errors import StoreError
from memoriter.records import Identity
from memoriter.store.files import make_private_folder
from memoriter.store.vectors.sidefiles import identity_key, sign_bits

if TYPE_CHECKING:
    from memoriter.store.vectors import Rows, Vector

BLOCK = 16_384  #: rows that are quantised at once
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
        for start in range(0, len(full), BLOCK):
            block = np.asarray(full[start : start + BLOCK])
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
