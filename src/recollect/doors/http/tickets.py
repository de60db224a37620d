"""One-time links, and the browsers that came in by one.

A ticket is a file that says when it ends, named by the digest of its secret; taking the file away is using it, so no
ticket works twice, whichever gateway of the home is asked. The cookie that a browser gets for it lives in this
process: a gateway that ends forgets its browsers.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from recollect.doors.http import private
from recollect.doors.http.tokens import Caller, digest_of

TICKET_S = 600.0  #: a link that was printed and not followed ends by itself
BROWSER_S = 12 * 3600.0  #: a browser asks for a new link after so long
MOST_BROWSERS = 64


class Tickets:
    """The links that are not used yet, of one home."""

    def __init__(self, home: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = home / "gateway" / "tickets"
        self._clock = clock

    def issue(self) -> str:
        """A new ticket."""
        self._sweep()
        ticket = secrets.token_urlsafe(32)
        private.folder(self._folder)
        private.write(self._folder / digest_of(ticket), {"until": self._clock() + TICKET_S})
        return ticket

    def use(self, ticket: str) -> bool:
        """Whether it was good; it is not any more."""
        file = self._folder / digest_of(ticket)
        try:
            until = float(json.loads(file.read_text("utf-8"))["until"])
            file.unlink()  # of two who try, one fails here
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return self._clock() < until

    def _sweep(self) -> None:
        """Take away what nobody followed."""
        try:
            files = list(os.scandir(self._folder))
        except OSError:
            return
        for file in files:
            try:
                if file.stat().st_mtime < self._clock() - 2 * TICKET_S:
                    Path(file.path).unlink()
            except OSError:
                continue


class Browsers:
    """The browsers that came in by a link; each counts as the owner."""

    def __init__(self, home: Path, port: int, *, clock: Callable[[], float] = time.time) -> None:
        self.cookie = f"recollect-{port}"  #: browsers do not tell ports apart, and gateways must not mix
        self.tickets = Tickets(home, clock=clock)
        self._clock = clock
        self._until: dict[str, float] = {}  #: by the digest of the cookie

    def enter(self, ticket: str) -> str | None:
        """The cookie for a ticket; None when it is not good."""
        if not self.tickets.use(ticket):
            return None
        now = self._clock()
        self._until = {key: until for key, until in self._until.items() if until > now}
        while len(self._until) >= MOST_BROWSERS:
            del self._until[min(self._until, key=self._until.__getitem__)]
        value = secrets.token_urlsafe(32)
        self._until[digest_of(value)] = now + BROWSER_S
        return value

    def caller(self, value: str) -> Caller | None:
        """Who shows this cookie."""
        if not value:
            return None
        digest = digest_of(value)  # looked up by its digest: what a lookup's time tells is of no use
        until = self._until.get(digest, 0.0)
        return Caller(f"page-{digest[:8]}", "admin", by_cookie=True) if self._clock() < until else None

    def still(self, caller: Caller) -> bool:
        """Whether the browser of an earlier call is still let in."""
        now = self._clock()
        return any(caller.id == f"page-{key[:8]}" and until > now for key, until in self._until.items())
