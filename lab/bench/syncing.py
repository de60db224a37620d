"""The speed of indexing, and the time of a sync without changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.bench.built import GivenVectors
from lab.bench.corpus import Writer
from lab.bench.measure import Timing, median_of, timed
from memoriter import Memory
from memoriter.records import SyncReport

if TYPE_CHECKING:
    from memoriter.embedding import Embedder

KEYWORDS_ONLY: Mapping[str, object] = {"embedding.provider": "none"}
SHORT_CHUNKS: Mapping[str, object] = {"chunking.tokens": 128, "chunking.overlap": 0}


@dataclass(frozen=True, slots=True)
class Indexed:
    """One way to index the same notes."""

    how: str
    chunks: int
    took: Timing[SyncReport]
    bytes: int

    @property
    def per_second(self) -> float:
        """Chunks per CPU second."""
        return self.chunks / self.took.cpu_s

    @property
    def per_megabyte(self) -> float:
        """CPU seconds per megabyte of text."""
        return self.took.cpu_s / self.bytes * 1e6


def unchanged(root: Path, files: int) -> Timing[SyncReport]:
    """Measure a sync of this many unchanged files."""
    _write(root / "workspace", files, paragraphs=1)
    with _open(root, "home", KEYWORDS_ONLY) as memory:
        memory.sync()
        took = median_of(memory.sync, 5)
    assert took.result.unchanged == files, took.result
    return took


def indexing(root: Path, files: int, *, model: Path | None, with_model: int) -> list[Indexed]:
    """Measure first syncs: keywords only, with precomputed vectors, and with the local model."""
    _write(root / "workspace", files, paragraphs=20)
    runs = [
        _index(root, "keywords only", KEYWORDS_ONLY),
        _index(root, "with given vectors", {}, GivenVectors([])),
    ]
    few = root / "few"
    _write(few / "workspace", with_model, paragraphs=20)
    local = {"embedding.provider": "local", **({"embedding.model_path": str(model)} if model else {})}
    run = _index(few, "with the local model", local)
    return [*runs, run] if not run.took.result.pending and run.took.result.embedded else runs


def _index(
    root: Path, how: str, overrides: Mapping[str, object], embedder: Embedder | None = None
) -> Indexed:
    with _open(root, f"home {how}", {**SHORT_CHUNKS, **overrides}, embedder) as memory:
        took = timed(memory.sync)
        size = memory.status().details["source_bytes"]
    return Indexed(how, took.result.chunks, took, int(str(size)))


def _open(root: Path, home: str, overrides: Mapping[str, object], embedder: Embedder | None = None) -> Memory:
    config = root / "config.yaml"
    config.touch()
    return Memory.open(
        root / "workspace", home=root / home, config=config, overrides=overrides, embedder=embedder
    )


def _write(workspace: Path, files: int, *, paragraphs: int) -> None:
    writer = Writer(seed=5)
    for number in range(files):
        path = workspace / "memory" / f"{number % 100:02d}" / f"{number:06d}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(writer.note(paragraphs))
