"""A browser for all tests of the page, gateways to visit, and visits that end in a check of what the page did."""

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

PATIENCE_MS = 30_000  #: what a busy machine may take until something is seen


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; one at a time."""
    import browsing

    if browsing.chromium() is None:
        pytest.skip("chromium is not installed: `make integration` installs it")
    browsing.expect.set_options(timeout=PATIENCE_MS)
    with browsing.browser() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway over the sample; tests of one module share it, and say what they change."""
    with served(tmp_path_factory.mktemp("gateway")) as running:
        sample.fill(running)
        yield running


@pytest.fixture
def empty_gateway(tmp_path: Path) -> Iterator[Served]:
    """A gateway over nothing."""
    with served(tmp_path) as running:
        yield running


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Opens a gateway's page in a browser of its own; then no script may have failed, no other host been asked."""
    import browsing

    opened: list[Watched] = []

    def open_(gateway: Served, place: str = "", **context: Any) -> Watched:
        context = {"viewport": {"width": 1280, "height": 860}, "locale": "en-GB"} | context
        fresh = browser.new_context(**context)
        fresh.set_default_timeout(PATIENCE_MS)
        page = fresh.new_page()
        watched = browsing.watch(page, gateway.address)
        opened.append(watched)
        browsing.come_in(page, gateway, place)
        return watched

    yield open_
    for watched in opened:
        watched.page.context.close()
    assert [watched.wrong for watched in opened] == [[] for _ in opened]
    assert [watched.foreign for watched in opened] == [[] for _ in opened]
