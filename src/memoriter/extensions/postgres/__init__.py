"""Memory on a Postgres server, which many gateways share.

`PostgresServer` is one server: a pool of connections and the schema. `PostgresDatabase` is the part of it that belongs
to one agent of one tenant. Row-level security keeps the parts apart. `PostgresStore` is what the core uses of them.
"""

from memoriter.extension import Extension, Offer

_STORE = Offer(
    "memoriter.extensions.postgres.store:PostgresStore",
    extra="postgres",
    package="psycopg",
    summary="A Postgres server, which many gateways share.",
)

extension = Extension(
    name="postgres",
    stores={"postgresql": _STORE, "postgres": _STORE},
    settings={"store": "memoriter.extensions.postgres.settings:PostgresSettings"},
)
