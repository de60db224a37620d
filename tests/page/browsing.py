"""Debian's chromium, driven by playwright: one browser for all tests, and pages that record what should not happen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Cookie, Page, Request, Route, expect, sync_playwright
from serving import Served

#: As root there is no sandbox. The other options stop chromium's background requests.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
)
#: Lets messages in the corner stay. A busy machine may need longer than ten seconds to read or use one.
MESSAGES_STAY = """(() => {
  const plain = setTimeout;
  window.setTimeout = (act, wait, ...more) => plain(act, wait === 10_000 ? 3_600_000 : wait, ...more);
})()"""


def chromium() -> str | None:
    """Return the path of chromium."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def browser() -> Iterator[Browser]:
    """Open a browser and close it at the end."""
    program = chromium()
    assert program, "chromium is not installed: run `make chromium`"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, headless=True, args=list(FLAGS))
        try:
            yield running
        finally:
            running.close()


class Held:
    """Requests that wait until the test lets them continue."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._page = page
        self._routes: list[Route] = []
        self._is_open = False
        page.route(pattern, self._hold)

    def _hold(self, route: Route) -> None:
        if self._is_open:
            route.continue_()
        else:
            self._routes.append(route)

    def wait_for(self, count: int = 1) -> list[Route]:
        """Wait until this many requests were made, and return them."""
        while len(self._routes) < count:
            self._page.wait_for_timeout(20)  # lets the handler run
        return self._routes

    def release(self) -> None:
        """Let the newest request, if there is one, and all later ones continue. The page has aborted those before."""
        self._is_open = True
        for route in self._routes[-1:]:
            route.continue_()


@dataclass
class Watched:
    """A page and a record of what it did."""

    page: Page
    address: str
    requests: list[Request] = field(default_factory=list)
    #: Requests to other hosts.
    foreign: list[str] = field(default_factory=list)
    #: Script errors, policy violations, dialogs.
    wrong: list[str] = field(default_factory=list)

    def data_requests(self) -> list[str]:
        """Return the requests to the gateway, without the event stream."""
        paths = [urlsplit(request.url).path for request in self.requests]
        return [path for path in paths if path.startswith("/v1/") and path != "/v1/events"]

    def hold(self, pattern: str) -> Held:
        """Hold the requests to addresses that match a pattern."""
        return Held(self.page, pattern)


def watch(page: Page, address: str) -> Watched:
    """Record from now on what the page does."""
    watched = Watched(page, address)

    def requested(request: Request) -> None:
        watched.requests.append(request)
        if not request.url.startswith((f"{address}/", "data:", "blob:")):
            watched.foreign.append(request.url)

    def said(kind: str, text: str) -> None:
        if kind == "error" and "Failed to load resource" not in text:
            watched.wrong.append(text)

    page.on("request", requested)
    page.on("console", lambda message: said(message.type, message.text))
    page.on("pageerror", lambda error: watched.wrong.append(str(error)))
    page.on("dialog", lambda dialog: (watched.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    return watched


_cookies: dict[str, list[Cookie]] = {}  # a link works once, so later visits reuse its cookies


def come_in(page: Page, gateway: Served, place: str = "") -> None:
    """Open the page at a place, such as ``#/notes``, and wait until it shows something."""
    known = _cookies.get(gateway.link)
    if known is None:
        page.goto(gateway.link)
        page.wait_for_url(lambda url: "/open?" not in url)  # the link redirects
        _cookies[gateway.link] = page.context.cookies()
        if not place:
            return
    else:
        page.context.add_cookies(known)  # type: ignore[arg-type]  cookies that the context returned
    page.goto(f"{gateway.address}/{place}")
    expect(page.locator("main")).to_be_visible()


def go(page: Page, place: str) -> None:
    """Go to a place of the page that is open."""
    page.evaluate("place => { location.hash = place; }", place)
