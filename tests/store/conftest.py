"""An index in each store that can hold one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from store_samples import OpenIndex

from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.store import Index
from memoriter.store import open_index as open_sqlite

OpenDatabase = Callable[..., PostgresDatabase]


@pytest.fixture(params=["sqlite", "postgres"])
def open_index(request: pytest.FixtureRequest, tmp_path: Path) -> OpenIndex:
    """Return a function that opens the same index again, or another one by its name."""
    if request.param == "sqlite":
        return lambda name="notes": open_sqlite(tmp_path / name)
    from memoriter.extensions.postgres.index import PostgresIndex

    open_database: OpenDatabase = request.getfixturevalue("postgres_database")
    return lambda name="notes": PostgresIndex(open_database(area=name), name, tmp_path / name)


@pytest.fixture
def index(open_index: OpenIndex) -> Index:
    """An empty index."""
    return open_index()
