"""Giving up: how a caller who no longer waits stops the outside program that works for it.

A thread cannot be cancelled, but what it waits for can. The caller's wish travels with the context, which
`asyncio.to_thread` carries into the thread, so no signature in between has to know of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from memoriter.errors import Cancelled

_given_up: ContextVar[threading.Event | None] = ContextVar("memoriter_given_up", default=None)


@contextmanager
def cancellable(event: threading.Event) -> Iterator[None]:
    """Within this context, setting the event makes outside calls end with `Cancelled`."""
    token = _given_up.set(event)
    try:
        yield
    finally:
        _given_up.reset(token)


def check() -> None:
    """Raise `Cancelled` when the caller has given up."""
    event = _given_up.get()
    if event is not None and event.is_set():
        raise Cancelled("The caller gave up waiting.")
