"""Settings that only a Postgres server needs. They are part of the section `store`."""

from __future__ import annotations

from pydantic import Field

from memoriter.config.fields import Section, Whole


class PostgresSettings(Section):
    """Connections to a Postgres server."""

    connections: Whole = Field(
        default=16, ge=2, le=1000, description="Connections to the server that one process opens at most."
    )
