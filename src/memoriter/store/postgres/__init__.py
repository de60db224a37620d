"""Memory on a Postgres server, which many gateways share. Needs the extra ``memoriter[postgres]``.

`PostgresServer` is one server: a pool of connections and the schema. `PostgresDatabase` is the part of it that belongs
to one agent of one tenant. Row-level security keeps the parts apart.
"""

from memoriter.store.postgres.database import PostgresDatabase
from memoriter.store.postgres.server import PostgresServer, open_server

__all__ = ["PostgresDatabase", "PostgresServer", "open_server"]
