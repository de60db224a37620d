"""Connections whose request does not come are closed: uvicorn itself waits for a head for ever.

After an answer uvicorn's own timer runs; it is stopped by the first byte of what follows, and ours begins.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 30.0  #: from the connection, or from the first byte of another request, until the end of the head


class Protocol(H11Protocol):
    """Uvicorn's protocol, with a limit on how long a head may take."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Somebody is there: they have so long to say what they want."""
        super().connection_made(transport)
        self._late = self.loop.call_later(HEAD_S, transport.close)

    def data_received(self, data: bytes) -> None:
        """Take bytes in; the time runs while they make no whole head."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._in_time()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        self._in_time()
        super().connection_lost(exc)

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
