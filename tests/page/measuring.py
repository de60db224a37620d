"""What the page's own thread has worked: seconds of the processor, which do not grow on a busy machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


@contextmanager
def cpu_seconds(page: Page) -> Iterator[Callable[[], float]]:
    """Gives a function that says how long the page has worked since."""
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
