"""Fixtures of the page tests: a browser, gateways, and visits that check at the end what the page did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sample
from serving import Served, served

if TYPE_CHECKING:
    from browsing import Watched
    from playwright.sync_api import Browser

Visit = Callable[..., "Watched"]

#: A busy machine may take this long to show something.
TIMEOUT_MS = 120_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; one at a time."""
    import browsing

    if browsing.chromium() is None:
        pytest.skip("chromium is not installed: `make integration` installs it")
    browsing.expect.set_options(timeout=TIMEOUT_MS)
    with browsing.browser() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with the sample memory. The tests of a module share it."""
    with served(tmp_path_factory.mktemp("gateway")) as running:
        sample.fill(running)
        yield running


@pytest.fixture
def empty_gateway(tmp_path: Path) -> Iterator[Served]:
    """A gateway with an empty memory."""
    with served(tmp_path) as running:
        yield running


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Open the page in its own browser context. At the end, check for script errors and requests to other hosts.

    A page that is not live receives no events. The gateway sends some on its own, and each lets the page load parts
    again, so a test that counts requests needs such a page.
    """
    import browsing

    opened: list[Watched] = []

    def open_(gateway: Served, place: str = "", *, live: bool = True, **context: Any) -> Watched:
        context = {"viewport": {"width": 1280, "height": 860}, "locale": "en-GB"} | context
        fresh = browser.new_context(**context)
        fresh.set_default_timeout(TIMEOUT_MS)
        fresh.add_init_script(browsing.MESSAGES_STAY)
        page = fresh.new_page()
        watched = browsing.watch(page, gateway.address)
        opened.append(watched)
        if not live:
            watched.hold("**/v1/events?**")
        browsing.come_in(page, gateway, place)
        return watched

    yield open_
    for watched in opened:
        watched.page.context.close()
    assert [watched.wrong for watched in opened] == [[] for _ in opened]
    assert [watched.foreign for watched in opened] == [[] for _ in opened]
