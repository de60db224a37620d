"""Measure the CPU time of the page's main thread, which does not depend on the load of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


@contextmanager
def cpu_seconds(page: Page) -> Iterator[Callable[[], float]]:
    """Yield a function that returns the CPU seconds since the start of the block."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked() -> float:
        told = session.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in told if one["name"] == "TaskDuration"))

    before = worked()
    try:
        yield lambda: worked() - before
    finally:
        session.send("Performance.disable")
