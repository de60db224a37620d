"""`PostgresStore`: the memory of one agent on a Postgres server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.extensions.postgres.health import examine_server
from memoriter.extensions.postgres.index import PostgresIndex
from memoriter.extensions.postgres.server import open_server
from memoriter.extensions.postgres.settings import PostgresSettings
from memoriter.extensions.postgres.working_copy import open_working_copy
from memoriter.records import Finding
from memoriter.store.opening import Store, StoreContext
from memoriter.store.protocol import Index


class PostgresStore(Store):
    """Rows, indexes and files of one agent. Several stores of a process share the connections to a server."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context
        self._connections = context.settings.section(PostgresSettings).connections

    def open_rows(self, area: str, index: Index | None = None) -> PostgresDatabase:  # noqa: ARG002 - a protocol
        """Open the rows of an area. Writers of one area wait for each other."""
        context = self._context
        server = open_server(context.url, connections=self._connections)
        return PostgresDatabase(server, agent=context.settings.agent, tenant=context.tenant, area=area)

    def open_index(self, name: str, folder: Path, engine: str) -> PostgresIndex:  # noqa: ARG002 - the server has one
        """Open an index on the server. The folder is for files of this machine."""
        return PostgresIndex(self.open_rows(f"index {name}"), name, folder)

    def share_files(self, folder: Path, names: Sequence[str], owner: str) -> Callable[[], None]:
        """Keep a working copy of the files with these names, which all machines share. Return what ends this."""
        return open_working_copy(
            folder,
            names,
            url=self._context.url,
            tenant=self._context.tenant,
            agent=owner,
            connections=self._connections,
        )

    def check(self) -> list[Finding]:
        with closing(self.open_rows("entries")) as rows:
            return examine_server(rows.server)
