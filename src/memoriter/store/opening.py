"""Open an agent's rows on a Postgres server. The packages for Postgres are an extra and load only here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memoriter.errors import StoreError

if TYPE_CHECKING:
    from pydantic import SecretStr

    from memoriter.store import Index
    from memoriter.store.postgres import PostgresDatabase


@contextlib.contextmanager
def needing_extra() -> Iterator[None]:
    """Import the packages for Postgres inside. If they are missing, the error says how to install them."""
    try:
        yield
    except ImportError as error:
        raise StoreError("Postgres needs an extra. Run `pip install 'memoriter[postgres]'`.") from error


class ServerSettings(Protocol):
    """The settings that name a server."""

    @property
    def url(self) -> SecretStr | None: ...

    @property
    def tenant(self) -> str: ...

    @property
    def connections(self) -> int: ...


def open_rows(store: ServerSettings, agent: str, area: str) -> PostgresDatabase | None:
    """Open this agent's rows on the server that the settings name; None if they name none.

    ``area`` names what is written, such as "entries". Writers of one area wait for each other.
    """
    if store.url is None:
        return None
    with needing_extra():
        from memoriter.store.postgres import PostgresDatabase, open_server
    server = open_server(store.url.get_secret_value(), connections=store.connections)
    return PostgresDatabase(server, agent=agent, tenant=store.tenant, area=area)


def open_server_index(store: ServerSettings, agent: str, name: str, folder: Path) -> Index | None:
    """Open an index of this agent on the server that the settings name; None if they name none.

    ``folder`` is for files of this machine that are derived from the index.
    """
    rows = open_rows(store, agent, f"index {name}")
    if rows is None:
        return None
    from memoriter.store.postgres.index import PostgresIndex

    return PostgresIndex(rows, name, folder)
