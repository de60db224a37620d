"""Settings that only a Postgres server needs. They are part of the section `store`."""

from __future__ import annotations

from memoriter.config.fields import Section, Whole, described


class PostgresSettings(Section):
    """Connections to a Postgres server."""

    connections: Whole = described(
        16, "Connections to the server that one process opens at most.", ge=2, le=1000
    )
