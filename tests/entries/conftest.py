"""Fixtures for the tests of entries: a clock that a test can set, and entries that need no model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoriter.entries import Entries, EntryOptions
from memoriter.entries.collection import open_entries
from memoriter.testing import HashEmbedder


class Clock:
    """A clock that advances by one second each time it is read."""

    def __init__(self, at: float = 1_000_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        self.at += 1
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


OpenEntries = Callable[..., Entries]


@pytest.fixture
def open_(tmp_path: Path, clock: Clock) -> Iterator[OpenEntries]:
    """Return a function that opens the entries of one folder; close all of them at the end."""
    opened: list[Entries] = []

    def open_one(
        embedder: object = None, *, engine: str = "scan", options: EntryOptions | None = None
    ) -> Entries:
        chosen = HashEmbedder() if embedder is None else embedder
        opened.append(open_entries(tmp_path / "agent", chosen, engine=engine, options=options, clock=clock))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for entries in opened:
        entries.close()


@pytest.fixture
def entries(open_: OpenEntries) -> Entries:
    return open_()
