"""Fixtures for the tests of entries: a clock that a test can set, and entries that need no model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opened_entries import open_entries

from memoriter.entries import Entries, EntryOptions
from memoriter.entries.collection import connect_entries
from memoriter.store import open_index
from memoriter.testing import HashEmbedder

if TYPE_CHECKING:
    from memoriter.extensions.postgres.database import PostgresDatabase

    OpenDatabase = Callable[..., PostgresDatabase]


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


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def open_(tmp_path: Path, clock: Clock, request: pytest.FixtureRequest) -> Iterator[OpenEntries]:
    """Return a function that opens the entries of one agent; close all of them at the end."""
    opened: list[Entries] = []
    connect: OpenDatabase | None = None
    if request.param == "postgres":
        connect = request.getfixturevalue("postgres_database")

    def open_one(
        embedder: object = None, *, engine: str = "scan", options: EntryOptions | None = None
    ) -> Entries:
        chosen: Any = HashEmbedder() if embedder is None else embedder
        if connect is None:
            entries = open_entries(tmp_path / "agent", chosen, engine=engine, options=options, clock=clock)
        else:
            index = open_index(tmp_path / "agent" / "entries", engine=engine)
            entries = connect_entries(connect, index, chosen, options=options, clock=clock)
        opened.append(entries)
        return entries

    yield open_one
    for entries in opened:
        entries.close()


@pytest.fixture
def open_in_files(tmp_path: Path, clock: Clock) -> Iterator[OpenEntries]:
    """Return a function that opens the entries of one folder, for tests of the files themselves."""
    opened: list[Entries] = []

    def open_one(embedder: object = None, *, engine: str = "scan") -> Entries:
        chosen: Any = HashEmbedder() if embedder is None else embedder
        opened.append(open_entries(tmp_path / "agent", chosen, engine=engine, clock=clock))
        return opened[-1]

    yield open_one
    for entries in opened:
        entries.close()


@pytest.fixture
def entries(open_: OpenEntries) -> Entries:
    return open_()
